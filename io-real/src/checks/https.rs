//! Asking by HTTP over TLS, with the client that fetches artifacts: it blocks a thread, for no longer than the
//! question's time.

use std::net::SocketAddr;
use std::time::Duration;

use drover_core::effect::Probe;
use drover_core::input::ProbeAnswer;
use drover_core::model::check::{HttpRequest, Tls};
use tokio::sync::OwnedSemaphorePermit;
use ureq::config::Config;
use ureq::http::{Request, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Error};

use super::http::AGENT;
use super::{MAX_BODY, authority, words};
use crate::artifact::helper::http::roots;

/// The most bytes of an answer's headers.
const MAX_HEADERS: usize = 16 * 1024;

/// Whatever the certificate is for: this address is asked.
#[derive(Debug)]
struct Only(SocketAddr);

impl Resolver for Only {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let mut all = self.empty();
        all.push(self.0);
        Ok(all)
    }
}

pub(super) async fn ask(
    turn: OwnedSemaphorePermit,
    address: SocketAddr,
    probe: &Probe,
    asked: &HttpRequest,
    tls: &Tls,
    limit: Duration,
) -> Result<ProbeAnswer, String> {
    let host = match tls.server_name.as_str() {
        "" => authority(probe),
        name => format!("{name}:{}", probe.port),
    };
    let uri = format!("https://{host}{}", asked.path);
    let (asked, skip_verify) = (asked.clone(), tls.skip_verify);
    let work = tokio::task::spawn_blocking(move || {
        // Kept until the thread is free, also if nobody waits any more.
        let _turn = turn;
        block(address, &uri, asked, skip_verify, limit)
    });
    work.await.map_err(words)?
}

fn block(
    address: SocketAddr,
    uri: &str,
    asked: HttpRequest,
    skip_verify: bool,
    limit: Duration,
) -> Result<ProbeAnswer, String> {
    let tls = TlsConfig::builder()
        .root_certs(roots())
        .disable_verification(skip_verify)
        .build();
    let config = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .max_idle_connections(0)
        .max_response_header_size(MAX_HEADERS)
        .timeout_global(Some(limit))
        .user_agent(AGENT)
        .tls_config(tls)
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), Only(address));
    let mut request = Request::builder().method(asked.method.as_str()).uri(uri);
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    let answer = match asked.body.is_empty() {
        true => agent.run(request.body(()).map_err(words)?),
        false => agent.run(request.body(asked.body).map_err(words)?),
    };
    let mut answer = answer.map_err(words)?;
    let code = answer.status().as_u16();
    let body = match code {
        ..400 => String::new(),
        _ => beginning(answer.body_mut()),
    };
    Ok(ProbeAnswer::Http { code, body })
}

fn beginning(body: &mut Body) -> String {
    use std::io::Read;
    let mut read = Vec::new();
    // What breaks off is read as far as it came.
    let _ = body
        .as_reader()
        .take(MAX_BODY as u64)
        .read_to_end(&mut read);
    String::from_utf8_lossy(&read).into_owned()
}
