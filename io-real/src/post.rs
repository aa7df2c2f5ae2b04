//! Handing something to a web server of the operator's: notices, logs. One request, one short answer; no
//! redirects, because what is posted is meant for this server alone, as are its headers.
//!
//! `http` goes over the program's own client, `https` over the one that fetches artifacts, which blocks a thread
//! for no longer than the request's time.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drover_core::text::quote;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use tokio::time::timeout;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::artifact::helper::http::roots;
use crate::connect::Tcp;
use crate::http_client::{self, whole_reason};

/// How much of an answer is read, in bytes.
const MAX_BODY: usize = 4 * 1024;
/// The most bytes of an answer's headers.
const MAX_HEADERS: usize = 16 * 1024;
/// The most bytes of a file of certificates.
const MAX_CERTIFICATES: u64 = 4 << 20;
/// What we call ourselves.
const AGENT: &str = concat!("drover/", env!("CARGO_PKG_VERSION"));

/// Where something is handed in, and what is said with it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostBox {
    /// `http` or `https`, with a host.
    pub url: Url,
    /// Headers, which may be secrets.
    pub headers: BTreeMap<String, String>,
    /// How long the whole exchange may take.
    pub timeout: Duration,
    /// A file with the certificates of who may sign the server's, instead of those that this machine trusts.
    pub ca_file: Option<PathBuf>,
}

impl fmt::Debug for PostBox {
    /// Without what may be a secret: the path of an address is one with many services.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        write!(f, "PostBox({}://{host}/…)", self.url.scheme())
    }
}

/// Why an address is none to post to.
///
/// # Errors
/// It is no URL, of another scheme, or has no host.
pub fn check_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("that is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("a URL of http or https is needed".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a name and password go into a header, not into the URL".to_owned());
    }
    match url.host_str() {
        Some(host) if !host.is_empty() => Ok(url),
        Some(_) | None => Err("the URL has no host".to_owned()),
    }
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How long to wait before the next request, if it says so.
    pub retry_after: Option<Duration>,
    /// The beginning of what it has to say.
    pub words: String,
}

impl PostBox {
    /// Hands `body` in.
    ///
    /// # Errors
    /// There is no answer; nothing of the address or the headers is in the words.
    pub async fn post(&self, kind: &str, body: Bytes) -> Result<Answer, String> {
        match self.url.scheme() {
            "https" => {
                let (this, kind) = (self.clone(), kind.to_owned());
                let work = tokio::task::spawn_blocking(move || this.post_encrypted(&kind, &body));
                work.await.map_err(|error| error.to_string())?
            }
            _ => match timeout(self.timeout, self.post_plain(kind, body)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {:?}", self.timeout)),
            },
        }
    }

    async fn post_plain(&self, kind: &str, body: Bytes) -> Result<Answer, String> {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(80);
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let request = http::Request::builder().method(Method::POST).uri(path);
        let mut request = request.header(CONTENT_TYPE, kind).header(USER_AGENT, AGENT);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let authority = format!("{host}:{port}");
        let answer = http_client::send(&Tcp, &authority, request, body).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let retry_after = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|it| it.to_str().ok());
        let retry_after = retry_after.and_then(seconds);
        Ok(Answer {
            status,
            retry_after,
            words: beginning(answer.into_body()).await,
        })
    }

    fn post_encrypted(&self, kind: &str, body: &[u8]) -> Result<Answer, String> {
        let trusted = match &self.ca_file {
            Some(file) => certificates(file)?,
            None => roots(),
        };
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .max_response_header_size(MAX_HEADERS)
            .timeout_global(Some(self.timeout))
            .user_agent(AGENT)
            .tls_config(TlsConfig::builder().root_certs(trusted).build())
            .build();
        let mut request = config
            .new_agent()
            .post(self.url.as_str())
            .content_type(kind);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = request.send(body).map_err(|error| match &error {
            // What is wrong with a header or an address may be a secret.
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => "it cannot be sent".to_owned(),
            other => whole_reason(other),
        })?;
        let retry_after = answer
            .headers()
            .get("retry-after")
            .and_then(|it| it.to_str().ok());
        let retry_after = retry_after.and_then(seconds);
        let mut words = Vec::new();
        let most = MAX_BODY as u64;
        // What breaks off is read as far as it came.
        let _ = answer
            .body_mut()
            .as_reader()
            .take(most)
            .read_to_end(&mut words);
        Ok(Answer {
            status: answer.status().as_u16(),
            retry_after,
            words: String::from_utf8_lossy(&words).into_owned(),
        })
    }
}

/// The certificates in a file. It is read for each request, so that another one takes effect at once.
///
/// # Errors
/// It cannot be read, or has none.
fn certificates(file: &Path) -> Result<RootCerts, String> {
    let about = |why: String| format!("ca_file {}: {why}", file.display());
    let opened = File::open(file).map_err(|error| about(error.to_string()))?;
    let mut pem = Vec::new();
    let read = opened.take(MAX_CERTIFICATES + 1).read_to_end(&mut pem);
    read.map_err(|error| about(error.to_string()))?;
    if pem.len() as u64 > MAX_CERTIFICATES {
        return Err(about(format!("it is larger than {MAX_CERTIFICATES} bytes")));
    }
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(about(error.to_string())),
        }
    }
    match found.is_empty() {
        true => Err(about("it has no certificate".to_owned())),
        false => Ok(RootCerts::Specific(Arc::new(found))),
    }
}

/// Whether a file has certificates.
///
/// # Errors
/// It cannot be read, or has none.
pub fn check_ca_file(file: &Path) -> Result<(), String> {
    certificates(file).map(|_| ())
}

/// A `Retry-After` in seconds; dates are not understood, and waited for as if nothing was said.
fn seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

async fn beginning(mut body: Incoming) -> String {
    let mut words = Vec::new();
    while words.len() < MAX_BODY {
        match body.frame().await {
            Some(Ok(frame)) => words.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Some(Err(_)) | None => break,
        }
    }
    words.truncate(MAX_BODY);
    String::from_utf8_lossy(&words).into_owned()
}

impl Answer {
    /// Whether it was taken.
    pub fn is_taken(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the same, sent again, cannot be taken either.
    pub fn is_final(&self) -> bool {
        (300..500).contains(&self.status) && !matches!(self.status, 408 | 425 | 429)
    }

    /// It in words for the log.
    pub fn in_words(&self) -> String {
        let words: String = self.words.chars().take(200).collect();
        match words.trim() {
            "" => format!("the server answered {}", self.status),
            words => format!("the server answered {}: {words:?}", self.status),
        }
    }
}

/// Whether a header can be sent so.
///
/// # Errors
/// It cannot; what it says is not told.
pub fn check_header(name: &str, value: &str) -> Result<(), String> {
    let fits =
        http::HeaderName::try_from(name).is_ok() && http::HeaderValue::try_from(value).is_ok();
    match fits {
        true => Ok(()),
        false => Err(format!("{} cannot be sent as a header", quote(name))),
    }
}
