//! The program's HTTP client: with it commands ask an agent, and agents ask each other. One connection
//! for each request, which are few and seldom follow each other; deadlines are the asker's.
//!
//! Others do not share it. What fetches artifacts, what asks a cloud for its metadata and what checks
//! services over TLS block a process or a thread of their own and follow redirections by their own
//! rules: that is `ureq`. Plugins are spoken to by gRPC, one lasting HTTP/2 connection each (`plugin/wire.rs`).

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::request::Builder;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Response, body::Body};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;
use url::Url;

use crate::connect::Connect;

/// What is encoded in a part of a path or a query: everything but letters, digits and `-._~`.
pub(crate) const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// There is no connection.
    Unconnected(io::Error),
    /// The request cannot be written so.
    Request(http::Error),
    /// The connection broke off, or what came over it is no HTTP.
    Broken(hyper::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unconnected(error) => error.fmt(f),
            Trouble::Request(error) => write!(f, "no request: {error}"),
            Trouble::Broken(error) => f.write_str(&whole_reason(error)),
        }
    }
}

/// An error with those that led to it: those of HTTP say what was being done, and not what happened.
pub fn whole_reason(error: &(dyn Error + 'static)) -> String {
    let mut reasons = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        reasons.push(error.to_string());
        cause = error.source();
    }
    reasons.dedup();
    reasons.join(": ")
}

/// Sends a request to `HOST:PORT`, which it names as its host unless it has one, and gives back whatever comes.
///
/// # Errors
/// There is no answer.
pub async fn send(
    network: &dyn Connect,
    authority: &str,
    request: Builder,
    body: Bytes,
) -> Result<Response<Incoming>, Trouble> {
    let connected = timeout(CONNECT, network.connect(authority)).await;
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "it took too long");
    let stream = connected.map_err(slow).and_then(|connected| connected);
    let stream = TokioIo::new(stream.map_err(Trouble::Unconnected)?);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(Trouble::Broken)?;
    tokio::spawn(connection);
    let mut request = request.body(Full::new(body)).map_err(Trouble::Request)?;
    let host = HeaderValue::try_from(authority).map_err(|error| Trouble::Request(error.into()))?;
    request.headers_mut().entry(HOST).or_insert(host);
    sender.send_request(request).await.map_err(Trouble::Broken)
}

/// The whole body of an answer, which may have so many bytes.
///
/// # Errors
/// It breaks off, or is larger.
pub async fn whole<B>(body: B, most: usize) -> Result<Bytes, String>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(format!("it has more than {most} bytes"))
        }
        Err(error) => Err(whole_reason(&*error)),
    }
}

/// `HOST:PORT` of an agent's address, `http://HOST:PORT`; none of what is no such address.
pub fn authority(address: &str) -> Option<String> {
    authority_of("http", address)
}

/// `HOST:PORT` of an address of this scheme, `SCHEME://HOST:PORT`; none of what is no such address.
pub fn authority_of(scheme: &str, address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let nobody = url.username().is_empty() && url.password().is_none();
    if url.scheme() != scheme || !bare || !nobody {
        return None;
    }
    Some(format!(
        "{}:{}",
        url.host_str()?,
        url.port_or_known_default()?
    ))
}

/// A part of a path or a query, in which no character has a meaning of its own.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

#[cfg(test)]
mod tests {
    use super::authority;

    #[test]
    fn address_is_a_host_and_a_port() {
        for (address, expected) in [
            ("http://127.0.0.1:4646", Some("127.0.0.1:4646")),
            ("http://127.0.0.1:4646/", Some("127.0.0.1:4646")),
            ("http://[::1]:4646", Some("[::1]:4646")),
            ("http://box", Some("box:80")),
            ("https://box:4646", None),
            ("box:4646", None),
            ("http://", None),
            ("http://a@b", None),
            ("http://:secret@b", None),
            ("http://b/path", None),
            ("http://b?query", None),
            ("http://b:99999", None),
            ("http://a b", None),
        ] {
            assert_eq!(authority(address).as_deref(), expected, "{address}");
        }
    }
}
