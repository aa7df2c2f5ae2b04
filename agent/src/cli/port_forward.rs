//! `drover alloc port-forward`: ports of an allocation on this machine.
//!
//! Each connection to the local port is a websocket to the agent, which connects to the allocation's port.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::args::PortForwardArgs;
use super::client::{Client, Socket};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;
use crate::http::dto::Alloc;
use crate::http::port_forward::{END, PortNames, no_port};

/// How much is read at once.
const CHUNK: usize = 32 << 10;
/// The most bytes of a message that an agent sends.
const MAX_MESSAGE: usize = 1 << 20;

/// One port that is forwarded.
struct Forward {
    client: Client,
    /// The agent's route.
    path: String,
    /// The port's label or number there.
    port: String,
    /// What went wrong with its connections.
    troubles: mpsc::Sender<String>,
}

/// How many troubles may wait to be shown.
const TROUBLES: usize = 16;

/// Runs the command, until it is ended by a signal.
///
/// # Errors
/// The allocation cannot be found or has no such port, or nothing can listen here.
pub(super) async fn run(cx: &mut Context, args: PortForwardArgs) -> Outcome {
    let alloc = lookup::alloc_or_job(cx, &args.id, args.job, args.group.as_deref()).await?;
    let ports: Result<Vec<_>, _> = args.ports.iter().map(|wanted| split(wanted)).collect();
    let ports = ports?;
    check(cx, &alloc.id, &ports).await?;
    let path = format!("/v1/client/allocation/{}/port-forward", alloc.id);
    let mut serving = JoinSet::new();
    let (troubles, mut shown) = mpsc::channel(TROUBLES);
    for (local, port) in ports {
        let address = format!("{}:{local}", args.bind);
        let listener = TcpListener::bind(&address).await;
        let busy = |error| Failure::new(format!("cannot listen at {address}: {error}"));
        let listener = listener.map_err(busy)?;
        let here = listener.local_addr().map_err(busy)?;
        let line = format!("Forwarding from {here} to {port} of {}", alloc.name);
        cx.screen.print_line(&line)?;
        let forward = Arc::new(Forward {
            client: cx.client.clone(),
            path: path.clone(),
            port,
            troubles: troubles.clone(),
        });
        serving.spawn(serve(listener, forward));
    }
    loop {
        tokio::select! {
            Some(trouble) = shown.recv() => cx.screen.complain(&trouble),
            Some(ended) = serving.join_next() => {
                let why = ended.unwrap_or_else(|lost| lost.to_string());
                return Err(Failure::new(why));
            }
        }
    }
}

/// The local port and the allocation's: `8080:http`, or one that is both. The local one of a label is any that
/// is free.
fn split(wanted: &str) -> Result<(u16, String), Failure> {
    let unusable = || Failure::new(format!("{wanted}: a port is [LOCAL:]PORT"));
    let (local, port) = match wanted.split_once(':') {
        Some((local, port)) => (local.parse().map_err(|_| unusable())?, port),
        None => (wanted.parse().unwrap_or(0), wanted),
    };
    match port {
        "" => Err(unusable()),
        port => Ok((local, port.to_owned())),
    }
}

/// Whether the allocation has all of these ports: nothing is to listen here for one that can never be reached.
///
/// # Errors
/// It has not, or cannot be asked for.
async fn check(cx: &Context, id: &str, ports: &[(u16, String)]) -> Result<(), Failure> {
    let alloc: Alloc = cx.client.get(&format!("/v1/allocation/{id}"), &[]).await?;
    let known = alloc.allocated_resources.shared.ports.into_iter();
    let known = known.map(|own| PortNames {
        label: own.label,
        value: own.value,
        to: own.to,
    });
    let known: Vec<PortNames> = known.collect();
    let unknown = ports
        .iter()
        .find(|(_, port)| !known.iter().any(|own| own.fit(port)));
    match unknown {
        None => Ok(()),
        Some((_, port)) => Err(Failure::new(no_port(port, &known))),
    }
}

/// Serves connections to one local port. Why that ends.
async fn serve(listener: TcpListener, forward: Arc<Forward>) -> String {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((connection, peer)) => {
                    connections.spawn(pass_on(connection, peer, forward.clone()));
                }
                Err(error) => return format!("cannot accept connections: {error}"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass_on(connection: TcpStream, peer: SocketAddr, forward: Arc<Forward>) {
    let query = [("port", forward.port.as_str())];
    let opened = forward.client.websocket(&forward.path, &query, MAX_MESSAGE);
    let passed = match opened.await {
        Ok(socket) => converse(connection, socket).await,
        Err(failure) => Err(failure.message),
    };
    if let Err(why) = passed {
        // Who has more to say than can be read has said enough.
        let _ = forward
            .troubles
            .try_send(format!("connection of {peer}: {why}"));
    }
}

/// Passes on what both sides send, until both have said that it is all.
async fn converse(connection: TcpStream, socket: Socket) -> Result<(), String> {
    let _ = connection.set_nodelay(true);
    let (mut from, mut to) = connection.into_split();
    let (mut sink, mut stream) = socket.split();
    let up = async {
        let mut chunk = vec![0; CHUNK];
        loop {
            let message = match from.read(&mut chunk).await {
                Ok(0) | Err(_) => Message::Text(END.into()),
                Ok(count) => {
                    let bytes = chunk.get(..count).unwrap_or_default();
                    Message::Binary(Bytes::copy_from_slice(bytes))
                }
            };
            let is_last = matches!(message, Message::Text(_));
            if sink.send(message).await.is_err() || is_last {
                return;
            }
        }
    };
    let down = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Binary(bytes) => {
                    if to.write_all(&bytes).await.is_err() {
                        return Ok(());
                    }
                }
                Message::Text(_) => drop(to.shutdown().await),
                Message::Close(Some(frame)) if u16::from(frame.code) != 1000 => {
                    return Err(frame.reason.to_string());
                }
                Message::Close(_) => return Ok(()),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
        Ok(())
    };
    // The agent ends it when both sides are done, or when the port is.
    let mut down = std::pin::pin!(down);
    tokio::select! {
        ended = &mut down => ended,
        () = up => down.await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{alloc_of, file, run};
    use super::*;
    use crate::testing::{Rig, job};

    #[tokio::test]
    async fn port_that_the_allocation_does_not_have_is_refused_at_once() {
        let rig = Rig::start().await;
        let mut web = job("web", "service", None);
        web["TaskGroups"][0]["Networks"] = json!([{
            "ReservedPorts": [{ "Label": "admin", "Value": 18_124 }],
            "DynamicPorts": [{ "Label": "http" }],
        }]);
        let file = file(&web);
        run(&rig, &["job", "run", file.path().to_str().unwrap()]).await;
        let alloc = alloc_of(&rig, "web").await;
        for asked in ["0:nope", "0:18125"] {
            let ports = ["alloc", "port-forward", &alloc, "0:http", asked];
            let (code, out, err) = run(&rig, &ports).await;
            assert_eq!((code, out.as_str()), (1, ""), "{err}");
            let (_, port) = asked.split_once(':').unwrap();
            let words = format!("the allocation has no port \"{port}\": it has ");
            assert!(
                err.contains(&words) && err.contains("admin (18124)"),
                "{err}"
            );
            assert!(err.contains("http (2"), "{err}");
        }
    }

    #[test]
    fn port_is_meant_by_its_label_or_its_numbers() {
        let port = PortNames {
            label: "http".to_owned(),
            value: 20_000,
            to: 80,
        };
        assert!(
            ["http", "20000", "80"]
                .into_iter()
                .all(|asked| port.fit(asked))
        );
        assert!(
            ["", "0", "htt", "8", "-80"]
                .into_iter()
                .all(|asked| !port.fit(asked))
        );
        let host_only = PortNames { to: 0, ..port };
        assert!(!host_only.fit("0"));
    }

    #[test]
    fn local_port_may_be_left_out() {
        let own = |text| split(text).map_err(|failure| failure.message);
        assert_eq!(own("8080:http"), Ok((8080, "http".to_owned())));
        assert_eq!(own("http"), Ok((0, "http".to_owned())));
        assert_eq!(own("8080"), Ok((8080, "8080".to_owned())));
        assert!(own("x:http").is_err());
        assert!(own("8080:").is_err());
        assert!(own("99999999:http").is_err());
    }
}
