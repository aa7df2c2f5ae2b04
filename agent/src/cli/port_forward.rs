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
use super::failure::Failure;
use super::lookup;
use crate::http::port_forward::END;

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
/// The allocation cannot be found, or nothing can listen here.
pub(super) async fn run(cx: &mut Context, args: PortForwardArgs) -> Outcome {
    let alloc = lookup::alloc_or_job(cx, &args.id, args.job, args.group.as_deref()).await?;
    let path = format!("/v1/client/allocation/{}/port-forward", alloc.id);
    let mut serving = JoinSet::new();
    let (troubles, mut shown) = mpsc::channel(TROUBLES);
    for wanted in &args.ports {
        let (local, port) = split(wanted)?;
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
    use super::*;

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
