//! Web servers.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::{Got, Progress, receive, too_large};
use crate::artifact::url::Url;
use crate::artifact::wire::Request;
use crate::unpack::Trouble;

/// How many times a server may send us on.
const MAX_REDIRECTS: usize = 10;
/// How long it may take until a connection stands.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a server may say nothing at all.
const SILENCE: Duration = Duration::from_secs(120);
/// The most bytes of an answer's headers.
const MAX_HEADERS: usize = 64 << 10;

/// Where systems keep the certificates that they trust.
const CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(super) fn download(
    url: &Url,
    request: &Request,
    progress: &mut Progress,
) -> Result<Got, Trouble> {
    let limits = &request.limits;
    let client = Client::new(limits.http_time, request.insecure);
    let mut answer = client.get(url, &request.headers)?;
    save(&mut answer, limits.http_bytes, progress)
}

/// Saves an answer as the file of downloads.
pub(super) fn save(
    answer: &mut Response<ureq::Body>,
    limit: u64,
    progress: &mut Progress,
) -> Result<Got, Trouble> {
    let length = answer.body().content_length();
    if limit > 0 && length.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    progress.total = length;
    let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
    receive(&mut body, limit, progress)?;
    Ok(Got::File)
}

/// Asks web servers.
pub(super) struct Client {
    agent: Agent,
    until: Option<Instant>,
}

impl Client {
    /// Asks for no longer than `time`, unless that is zero.
    pub(super) fn new(time: Duration, insecure: bool) -> Client {
        let tls = TlsConfig::builder()
            .root_certs(roots())
            .disable_verification(insecure)
            .build();
        let config = Agent::config_builder()
            .max_redirects(0)
            // A server may close a connection after its answer without a word, and a request that
            // is sent on it then fails: each request takes a new one.
            .max_idle_connections(0)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            .max_response_header_size(MAX_HEADERS)
            .user_agent(concat!("drover/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Client {
            agent: config.new_agent(),
            until: (!time.is_zero()).then(|| Instant::now() + time),
        }
    }

    /// Gets what is there, wherever servers send us: never to a worse protocol, and what was said
    /// to one server is not said to another.
    pub(super) fn get(
        &self,
        url: &Url,
        headers: &BTreeMap<String, String>,
    ) -> Result<Response<ureq::Body>, Trouble> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let own = at.same_server(url);
            let answer = self.ask(&at, own.then_some(headers))?;
            let status = answer.status();
            if status == StatusCode::OK {
                return Ok(answer);
            }
            if !status.is_redirection() {
                return Err(refused(&at, status));
            }
            at = sent_on(&at, answer.headers())?;
        }
        Err(Trouble::lasting(format!(
            "{url}: sent on more than {MAX_REDIRECTS} times"
        )))
    }

    fn ask(
        &self,
        url: &Url,
        headers: Option<&BTreeMap<String, String>>,
    ) -> Result<Response<ureq::Body>, Trouble> {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let request = self.agent.get(url.request());
        let mut request = request.config().timeout_global(left).build();
        for (name, value) in headers.into_iter().flatten() {
            request = request.header(name, value);
        }
        if let Some(authorization) = url.authorization() {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.call().map_err(|error| trouble(url, &error))
    }
}

fn trouble(url: &Url, error: &ureq::Error) -> Trouble {
    match error {
        // What is wrong with a header may be a secret.
        ureq::Error::Http(_) => Trouble::lasting(format!("{url}: a header cannot be sent")),
        ureq::Error::BadUri(_) => Trouble::lasting(format!("{url}: it cannot be asked for")),
        other => Trouble::passing(format!("{url}: {other}")),
    }
}

/// What is not there yet may be there in a moment: the restart policy says how long to hope.
fn refused(url: &Url, status: StatusCode) -> Trouble {
    Trouble::passing(format!("{url}: the server answered {status}"))
}

/// Where a server sends us.
fn sent_on(from: &Url, headers: &HeaderMap) -> Result<Url, Trouble> {
    let location = headers
        .get(header::LOCATION)
        .and_then(|to| to.to_str().ok());
    let to = location
        .ok_or("the redirect has no location")
        .and_then(|location| {
            let to = from.join(location);
            to.map_err(|_| "that is no URL")
        });
    let to = to.map_err(|why| Trouble::lasting(format!("{from}: sent on, and {why}")))?;
    match (from.scheme(), to.scheme()) {
        ("http" | "https", "https") | ("http", "http") => Ok(to),
        ("https", "http") => Err(Trouble::lasting(format!(
            "{from}: sent on to {to}, which is not encrypted"
        ))),
        _ => Err(Trouble::lasting(format!(
            "{from}: sent on to {to}, which is no web server"
        ))),
    }
}

/// What this machine trusts; what browsers trust if it sends nothing.
pub(crate) fn roots() -> RootCerts {
    let found = CERTIFICATES.iter().find_map(|path| fs::read(path).ok());
    let Some(pem) = found else {
        return RootCerts::WebPki;
    };
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match certificates.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::Specific(Arc::new(certificates)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn redirect_to_weaker_scheme_is_refused() {
        let from = |text: &str, to: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, to.parse().unwrap());
            sent_on(&Url::parse(text).unwrap(), &headers)
        };
        assert!(from("http://a/x", "https://b/y").is_ok());
        assert!(from("http://a/x", "http://b/y").is_ok());
        assert!(from("https://a/x", "https://b/y").is_ok());
        assert!(from("https://a/x", "/y").is_ok());
        for (one, other) in [
            ("https://a/x", "http://a/y"),
            ("http://a/x", "file:///etc/passwd"),
            ("https://a/x", "ftp://a/y"),
            ("http://a/x", "http://a b/"),
        ] {
            assert!(from(one, other).is_err(), "{one} -> {other}");
        }
        let nowhere = sent_on(&Url::parse("http://a/").unwrap(), &HeaderMap::new());
        assert!(nowhere.is_err());
    }
}
