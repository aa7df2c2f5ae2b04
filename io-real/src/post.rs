//! Handing something to a web server of the operator's: notices, logs. One request, one short answer; no
//! redirects, because what is posted is meant for this server alone, as are its headers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drover_core::text::quote;
use drover_tls::client::{Believes, Secure};
use drover_tls::{Authorities, Protocol};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use tokio::time::timeout;
use url::Url;

use crate::connect::{Connect, Encrypted, Tcp};
use crate::http_client;

/// How much of an answer is read, in bytes.
const MAX_BODY: usize = 4 * 1024;
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
        self.post_over(Arc::new(Tcp), kind, body).await
    }

    /// The same over another network than that of this machine.
    ///
    /// # Errors
    /// As with [`PostBox::post`].
    pub async fn post_over(
        &self,
        network: Arc<dyn Connect>,
        kind: &str,
        body: Bytes,
    ) -> Result<Answer, String> {
        match timeout(self.timeout, self.post_at_leisure(network, kind, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {:?}", self.timeout)),
        }
    }

    async fn post_at_leisure(
        &self,
        network: Arc<dyn Connect>,
        kind: &str,
        body: Bytes,
    ) -> Result<Answer, String> {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(80);
        let network = match self.url.scheme() {
            "https" => Arc::new(Encrypted {
                secure: self.secure().await?,
                network,
            }),
            _ => network,
        };
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        // The scheme's own port goes without saying, and some servers know their names only so.
        let named = match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let request = http::Request::builder().method(Method::POST).uri(path);
        let mut request = request.header(CONTENT_TYPE, kind).header(USER_AGENT, AGENT);
        if !self
            .headers
            .keys()
            .any(|name| HOST.as_str().eq_ignore_ascii_case(name))
        {
            request = request.header(HOST, named);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let authority = format!("{host}:{port}");
        let answer = http_client::send(&*network, &authority, request, body).await;
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

    /// Whom the server has to be. Files are read for each request, so that others take effect at once, and a slow
    /// disk holds up nobody else.
    async fn secure(&self) -> Result<Secure, String> {
        let ca_file = self.ca_file.clone();
        let read = tokio::task::spawn_blocking(move || match ca_file {
            Some(file) => certificates(&file),
            None => Authorities::trusted().map_err(|error| error.to_string()),
        });
        let trusted = read.await.map_err(|error| error.to_string())??;
        let host = self.url.host_str().unwrap_or_default();
        Secure::new(host, Believes::Named(trusted), None, &Protocol::default())
    }
}

fn certificates(file: &Path) -> Result<Authorities, String> {
    Authorities::read(file).map_err(|error| format!("ca_file {error}"))
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
