//! Connections to an allocation's ports over websockets. Drover's own route.
//!
//! Each websocket is one connection. Binary messages are its bytes; a text message `{"close":true}` says, in
//! either direction, that no more bytes follow.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use drover_core::agent::View;
use drover_core::ids::AllocId;
use drover_core::store::record::AssignedPort;
use drover_core::text::quote;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::exec::alloc_id;
use super::params::Params;
use super::websocket::{self, Closing};

/// How much is read at once.
const CHUNK: usize = 32 << 10;
/// That no more bytes follow.
pub(crate) const END: &str = r#"{"close":true}"#;

pub(super) async fn forward(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let none = |_| ApiError::failed("websocket connection not found in context");
    let upgrade = websocket::bounded(upgrade.map_err(none)?);
    let port = params.get("port").unwrap_or_default().to_owned();
    let place = match alloc_id(&id) {
        Ok(alloc) => {
            api.agent_handle
                .ask(move |view| find(view, alloc, &port))
                .await?
        }
        Err(closing) => Err(closing),
    };
    let upgraded = params.caller.upgrade()?;
    let principal = params.principal.clone();
    Ok(upgrade.on_upgrade(async move |socket| {
        tokio::select! {
            () = serve(socket, place) => {}
            () = principal.revoked(&api) => {}
        }
        drop(upgraded);
    }))
}

/// What a port of an allocation may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortNames {
    pub(crate) label: String,
    /// Its number on the host.
    pub(crate) value: i64,
    /// Its number in the network of the allocation's own; 0 if it has none there.
    pub(crate) to: i64,
}

impl PortNames {
    /// Whether this port is meant.
    pub(crate) fn fit(&self, asked: &str) -> bool {
        let number = asked.parse::<u16>().ok().map(i64::from);
        let is_number = |own: i64| own > 0 && number == Some(own);
        self.label == asked || is_number(self.value) || is_number(self.to)
    }
}

/// That none of the ports of an allocation is the one that is asked for, in words.
pub(crate) fn no_port(asked: &str, known: &[PortNames]) -> String {
    let known = known
        .iter()
        .map(|own| format!("{} ({})", own.label, own.value));
    let known: Vec<String> = known.collect();
    let known = match known.as_slice() {
        [] => "it has none".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    format!("the allocation has no port {}: {known}", quote(asked))
}

/// Where a port of an allocation is, which is given by its label or number.
fn find(view: View<'_>, id: AllocId, port: &str) -> Result<SocketAddr, Closing> {
    let Some(alloc) = view.alloc(id) else {
        return Err(Closing::refused(ApiError::no_alloc(view, id).message));
    };
    let ports = &alloc.record().ports;
    let names = |own: &AssignedPort| PortNames {
        label: own.label.clone(),
        value: own.value.into(),
        to: own.to.into(),
    };
    let Some(found) = ports.iter().find(|own| names(own).fit(port)) else {
        let known: Vec<PortNames> = ports.iter().map(names).collect();
        return Err(Closing::refused(no_port(port, &known)));
    };
    let host = found.host_ip.parse::<IpAddr>().ok();
    let host = host.filter(|host| !host.is_unspecified());
    let host = host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(SocketAddr::new(host, found.value))
}

type Sink = SplitSink<WebSocket, Message>;
type Stream = SplitStream<WebSocket>;

async fn serve(socket: WebSocket, place: Result<SocketAddr, Closing>) {
    let (mut sink, mut stream) = socket.split();
    let closing = match connect(place).await {
        Ok(connection) => converse(&mut sink, &mut stream, connection).await,
        Err(closing) => Some(closing),
    };
    if let Some(closing) = closing {
        // Who is gone need not hear it.
        let _ = sink.send(closing.message()).await;
    }
}

/// Passes on what both sides send until both have said that it is all. Nothing is to be said to a client that
/// is gone.
async fn converse(sink: &mut Sink, stream: &mut Stream, connection: TcpStream) -> Option<Closing> {
    // What a program sends shall leave at once.
    let _ = connection.set_nodelay(true);
    let (from, to) = connection.into_split();
    let mut speaking = pin!(speak(sink, from));
    let first = tokio::select! {
        closing = &mut speaking => Err(closing),
        client_end = listen(stream, to) => Ok(client_end),
    };
    match first {
        Ok(ClientEnd::All) => tokio::select! {
            closing = speaking => Some(closing),
            () = gone(stream) => None,
        },
        Ok(ClientEnd::Gone) => None,
        // What the client still sends has nobody to go to, once the port has ended the connection.
        Err(closing) => Some(closing),
    }
}

/// How a client ended.
enum ClientEnd {
    /// It sent all that it wanted to.
    All,
    /// It is gone.
    Gone,
}

async fn gone(stream: &mut Stream) {
    while let Some(Ok(_)) = stream.next().await {}
}

async fn connect(place: Result<SocketAddr, Closing>) -> Result<TcpStream, Closing> {
    let place = place?;
    let connected = TcpStream::connect(place).await;
    connected.map_err(|error| {
        Closing::failed(match error.kind() {
            ErrorKind::ConnectionRefused => {
                format!("nobody listens at {place}, the port of the allocation")
            }
            _ => format!("cannot connect to {place}: {error}"),
        })
    })
}

/// Passes on what comes from the port, as fast as the client reads it.
async fn speak(sink: &mut Sink, mut from: OwnedReadHalf) -> Closing {
    let mut chunk = vec![0; CHUNK];
    loop {
        let message = match from.read(&mut chunk).await {
            Ok(0) => Message::Text(END.into()),
            Ok(count) => {
                let bytes = chunk.get(..count).unwrap_or_default();
                Message::Binary(bytes::Bytes::copy_from_slice(bytes))
            }
            Err(error) => return Closing::failed(error.to_string()),
        };
        let is_last = matches!(message, Message::Text(_));
        if sink.send(message).await.is_err() || is_last {
            return Closing::done();
        }
    }
}

/// Passes on what a client sends, as fast as the port takes it.
async fn listen(stream: &mut Stream, mut to: OwnedWriteHalf) -> ClientEnd {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            // That the port takes no more is told by what comes from it.
            Message::Binary(bytes) => drop(to.write_all(&bytes).await),
            Message::Text(_) => {
                drop(to.shutdown().await);
                return ClientEnd::All;
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return ClientEnd::Gone,
        }
    }
    ClientEnd::Gone
}
