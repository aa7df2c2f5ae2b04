//! The way to an engine: one connection of a Unix socket for each request, so that no long answer stands in the way
//! of another, and an engine that died is noticed by whoever waits for it.
//!
//! bollard writes and reads the calls; what flows for long (output, sessions, events) is read here, because it comes
//! from hostile tasks: bollard keeps what it cannot read yet in memory. So its answers have a bound ([`Bounded`]).

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bollard::errors::Error;
use bollard::{BollardRequest, ClientVersion, Docker};
use bytes::Bytes;
use http::Uri;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, UPGRADE};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::bounded::Bounded;
use super::trouble::Trouble;
use crate::http_client::whole;

/// How much of an answer is read ahead. A connection of each task's output has so much.
const BUFFER: usize = 16 * 1024;

/// bollard's own limit, in seconds, for answers to begin: ours are shorter, or wait for a pull.
const LONGEST: u64 = 24 * 60 * 60;

/// The most bytes of a refusal.
const REFUSAL: usize = 64 * 1024;

/// The most bytes of an answer that is read as a whole.
pub(super) const WHOLE: u64 = 32 << 20;

/// The most bytes that an engine may say while images come. It says a little of each piece of them.
const IMAGES: u64 = 256 << 20;

/// What is read piece by piece may go on for ever.
const ENDLESS: u64 = u64::MAX;

/// A client of the engine behind this socket that speaks this version.
pub(super) fn client(socket: Arc<Path>, version: &ClientVersion) -> Result<Docker, Error> {
    type Answer = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Error>> + Send>>;
    let transport = move |request: BollardRequest| -> Answer {
        let socket = socket.clone();
        let most = match request.uri().path() {
            path if path.ends_with("/images/create") || path.ends_with("/images/load") => IMAGES,
            _ => WHOLE,
        };
        Box::pin(async move { send(&socket, request, most).await })
    };
    Docker::connect_with_custom_transport(transport, Some("http://docker"), LONGEST, version)
}

/// Asks the engine for something that flows: the body of the answer.
///
/// # Errors
/// There is no connection, or the engine refuses.
pub(super) async fn stream(socket: &Path, path: &str) -> Result<Incoming, Trouble> {
    let request = Request::get(path).body(Full::new(Bytes::new()));
    let answer = send(socket, request.map_err(Error::from)?, ENDLESS).await?;
    match answer.status() {
        StatusCode::OK => Ok(answer.into_body()),
        status => Err(refusal(status, answer).await),
    }
}

/// Sends a request after which the connection carries what both sides say.
///
/// # Errors
/// As [`stream`].
pub(super) async fn upgrade(
    socket: &Path,
    path: &str,
    body: String,
) -> Result<TokioIo<Upgraded>, Trouble> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "tcp")
        .body(Full::new(Bytes::from(body)));
    let answer = send(socket, request.map_err(Error::from)?, ENDLESS).await?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS | StatusCode::OK => {
            let upgraded = hyper::upgrade::on(answer).await;
            Ok(TokioIo::new(upgraded.map_err(Error::from)?))
        }
        status => Err(refusal(status, answer).await),
    }
}

async fn refusal(status: StatusCode, answer: Response<Incoming>) -> Trouble {
    let body = whole(answer.into_body(), REFUSAL).await.unwrap_or_default();
    let message = serde_json::from_slice::<serde_json::Value>(&body);
    let message = message
        .ok()
        .and_then(|it| Some(it.get("message")?.as_str()?.to_owned()));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    Trouble::of_answer(status.as_u16(), message)
}

/// Sends a request of whose answer no more than `most` bytes are read.
async fn send<B>(socket: &Path, request: Request<B>, most: u64) -> Result<Response<Incoming>, Error>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(BUFFER)
        .handshake(TokioIo::new(Bounded::new(stream, most)))
        .await?;
    tokio::spawn(connection.with_upgrades());
    let (mut parts, body) = request.into_parts();
    // The engine wants a path and a host of any name.
    let path = parts.uri.path_and_query().cloned();
    parts.uri = path.map_or_else(Uri::default, Uri::from);
    parts
        .headers
        .insert(HOST, HeaderValue::from_static("docker"));
    Ok(sender
        .send_request(Request::from_parts(parts, body))
        .await?)
}
