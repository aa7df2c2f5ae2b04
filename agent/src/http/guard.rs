//! Which requests are no trick: a web page that a user of this machine happens to look at must not reach the API with
//! that user's rights. Who may do what is asked elsewhere ([`super::access`]), and where nobody needs a token this is all
//! that stands between such a page and the programs of this machine.
//!
//! A page of another site can make a browser send requests here. Two headers that pages cannot
//! forge tell: `Host` (a name of the attacker's that resolves to this machine) and `Origin`.
//!
//! The `Host` header must be an address or `localhost`, unless TLS has made sure of the name already. Requests
//! that change something, or that open a websocket, must not come from another site (`Origin`,
//! `Sec-Fetch-Site`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::errors::ApiError;

/// What requests are looked at with.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The names that are this agent's.
    pub names: Names,
    /// Whether it is reached by TLS: then a browser has compared the name with the certificate.
    pub tls: bool,
}

/// The names under which this agent may be called, besides addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct Names(pub Arc<[String]>);

/// Lets a request pass, or answers it. No browser guesses what an answer is.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut answer = match check(&guard, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let nosniff = HeaderValue::from_static("nosniff");
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    answer
}

/// Whether a request may pass.
///
/// # Errors
/// Why it may not.
fn check(guard: &Guard, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let forbidden = |message| Err(ApiError::new(StatusCode::FORBIDDEN, message));
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().ok(),
        None => uri.host(),
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    if hosts.nth(1).is_some() || !host.is_some_and(|host| guard.allows(host)) {
        return forbidden("the Host header names neither this machine's address nor a known name");
    }
    let known = [Method::GET, Method::PUT, Method::POST, Method::DELETE];
    if !known.contains(method) {
        return Err(ApiError::method());
    }
    let reads = *method == Method::GET && !headers.contains_key(header::UPGRADE);
    if reads && !holds_secrets(uri.path()) {
        return Ok(());
    }
    let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    let words = "cross-site requests may not change anything, nor read variables";
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return forbidden(words);
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let scheme = if guard.tls { "https" } else { "http" };
        let is_own = |host| origin.as_bytes() == format!("{scheme}://{host}").as_bytes();
        let own = host.is_some_and(is_own);
        if !own {
            return forbidden(words);
        }
    }
    Ok(())
}

/// Whether what is read there is nothing for pages of other sites, even if they could not read it.
fn holds_secrets(path: &str) -> bool {
    path == "/v1/vars" || path.starts_with("/v1/var/")
}

impl Guard {
    fn allows(&self, host: &str) -> bool {
        self.tls || self.names.allow(host)
    }
}

impl Names {
    fn allow(&self, host: &str) -> bool {
        let name = match host.parse::<SocketAddr>() {
            Ok(_) => return true,
            Err(_) => without_port(host),
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let name = name.trim_end_matches('.');
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|known| name.eq_ignore_ascii_case(known))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(method: Method, headers: &[(&'static str, &str)]) -> bool {
        allows_at("/v1/jobs", method, headers)
    }

    fn allows_at(path: &str, method: Method, headers: &[(&'static str, &str)]) -> bool {
        allows_over(false, path, method, headers)
    }

    fn allows_over(
        tls: bool,
        path: &str,
        method: Method,
        headers: &[(&'static str, &str)],
    ) -> bool {
        let names = Names(Arc::from(["node-1".to_owned()]));
        let guard = Guard { names, tls };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                map.append(*name, value);
            }
        }
        let uri: Uri = path.parse().unwrap_or_default();
        check(&guard, &method, &uri, &map).is_ok()
    }

    #[test]
    fn unknown_host_header_is_refused() {
        for good in [
            "127.0.0.1:4646",
            "[::1]:4646",
            "localhost:4646",
            "LOCALHOST",
            "node-1:80",
        ] {
            assert!(allows(Method::GET, &[("host", good)]), "{good}");
        }
        for bad in [
            "evil.example",
            "127.0.0.1.evil.example:4646",
            "",
            "localhost.evil:1",
        ] {
            assert!(!allows(Method::GET, &[("host", bad)]), "{bad}");
        }
        assert!(!allows(Method::GET, &[]));
        let twice = [("host", "127.0.0.1"), ("host", "evil.example")];
        assert!(!allows(Method::GET, &twice));
    }

    #[test]
    fn page_of_same_address_without_tls_is_another_site() {
        let host = ("host", "agent.example:4646");
        let allows = |origin| {
            let headers = [host, ("origin", origin)];
            allows_over(true, "/v1/jobs", Method::PUT, &headers)
        };
        assert!(allows("https://agent.example:4646"));
        assert!(!allows("http://agent.example:4646"));
        assert!(!allows("https://evil.example"));
    }

    #[test]
    fn cross_site_request_is_refused() {
        let host = ("host", "127.0.0.1:4646");
        assert!(allows(Method::PUT, &[host]));
        assert!(allows(
            Method::PUT,
            &[host, ("origin", "http://127.0.0.1:4646")]
        ));
        assert!(!allows(
            Method::PUT,
            &[host, ("origin", "http://127.0.0.1:80")]
        ));
        assert!(!allows(Method::PUT, &[host, ("origin", "null")]));
        assert!(!allows(
            Method::POST,
            &[host, ("sec-fetch-site", "cross-site")]
        ));
        assert!(allows(
            Method::GET,
            &[host, ("origin", "http://evil.example")]
        ));
        let socket = ("upgrade", "websocket");
        assert!(allows(Method::GET, &[host, socket]), "no browser");
        let own = ("origin", "http://127.0.0.1:4646");
        assert!(allows(Method::GET, &[host, socket, own]));
        for other in ["http://evil.example", "http://127.0.0.1:80", "null"] {
            assert!(!allows(Method::GET, &[host, socket, ("origin", other)]));
        }
        for path in ["/v1/vars", "/v1/vars?prefix=a", "/v1/var/a/b"] {
            let origin = |origin| [host, ("origin", origin)];
            assert!(allows_at(path, Method::GET, &[host]));
            assert!(allows_at(
                path,
                Method::GET,
                &origin("http://127.0.0.1:4646")
            ));
            assert!(!allows_at(
                path,
                Method::GET,
                &origin("http://evil.example")
            ));
            let site = [host, ("sec-fetch-site", "cross-site")];
            assert!(!allows_at(path, Method::GET, &site));
        }
        assert!(!allows(Method::HEAD, &[host]));
        assert!(!allows(Method::OPTIONS, &[host]));
    }
}
