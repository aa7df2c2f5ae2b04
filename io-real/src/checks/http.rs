//! Asking by HTTP: one request over a connection of its own.

use std::pin::pin;

use bytes::Bytes;
use drover_core::effect::Probe;
use drover_core::input::ProbeAnswer;
use drover_core::model::check::HttpRequest;
use http::Request;
use http::header::{HOST, USER_AGENT};
use http::request::Builder;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{MAX_BODY, authority, words};
use crate::http_client::whole_reason;

/// The name that services see.
pub(super) const AGENT: &str = concat!("drover/", env!("CARGO_PKG_VERSION"));

/// The most bytes of an answer's headers.
const MAX_HEADERS: usize = 16 * 1024;

pub(super) async fn ask(
    stream: TcpStream,
    probe: &Probe,
    asked: &HttpRequest,
) -> Result<ProbeAnswer, String> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEADERS);
    let shaking = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaking.map_err(|error| whole_reason(&error))?;
    let request = request(probe, asked)?;
    let mut asking = pin!(async move {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| whole_reason(&error))?;
        let code = answer.status().as_u16();
        // Of what works nobody reads more.
        let body = match code {
            ..400 => String::new(),
            _ => beginning(answer.into_body()).await,
        };
        Ok(ProbeAnswer::Http { code, body })
    });
    // In one task, so that the connection ends with whoever asks.
    tokio::select! {
        answer = &mut asking => return answer,
        // What breaks is seen by who waits for the answer.
        _ = connection => {}
    }
    asking.await
}

fn request(probe: &Probe, asked: &HttpRequest) -> Result<Request<Full<Bytes>>, String> {
    let own = |name: &http::HeaderName| {
        let mut names = asked.headers.iter().map(|(name, _)| name);
        names.any(|given| given.eq_ignore_ascii_case(name.as_str()))
    };
    let mut request = Builder::new()
        .method(asked.method.as_str())
        .uri(asked.path.as_str());
    if !own(&HOST) {
        request = request.header(HOST, authority(probe));
    }
    if !own(&USER_AGENT) {
        request = request.header(USER_AGENT, AGENT);
    }
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    let body = Bytes::copy_from_slice(asked.body.as_bytes());
    request.body(Full::new(body)).map_err(words)
}

/// The beginning of a body, as text; what breaks off is read as far as it came.
async fn beginning(mut body: Incoming) -> String {
    let mut read = Vec::new();
    while read.len() < MAX_BODY
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            let remaining = MAX_BODY - read.len();
            read.extend_from_slice(data.get(..remaining).unwrap_or(data));
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}
