//! Which requests are no trick: a web page that a user of this machine happens to look at must not reach the API with
//! that user's rights. Who may do what is asked elsewhere ([`super::access`]), and where nobody needs a token this is all
//! that stands between such a page and the programs of this machine.
//!
//! A page of another site can make a browser send requests here. Two headers that pages cannot
//! forge tell: `Host` (a name of the attacker's that resolves to this machine) and `Origin`.
//!
//! The `Host` header must be an address or `localhost`, unless TLS has made sure of the name already. Nothing may
//! come from a page of another site (`Origin`, `Sec-Fetch-Site`), whatever it asks for and by whatever method: no such
//! page may read an answer, and a request that acts cannot be told from one that reads by its method alone.
//!
//! Browsers leave both headers out of a GET to an agent without TLS that is not on their own machine. So a GET that
//! acts, of which the table of routes knows ([`Routes::acting`]), is also refused to browsers that say nothing.
//!
//! [`Routes::acting`]: super::access::routes::Routes::acting

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::errors::ApiError;

/// What browsers say of the page that asks.
const SITE: &str = "sec-fetch-site";

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
pub(super) async fn guard(guard: &Guard, request: Request, next: Next) -> Response {
    let mut answer = match check(guard, request.method(), request.uri(), request.headers()) {
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
    match is_of_another_site(guard.tls, host, headers) {
        true => {
            forbidden("requests from pages of other sites are refused: open the address yourself")
        }
        false => Ok(()),
    }
}

/// Whether a page of another site sends a request, as far as the browser tells.
fn is_of_another_site(tls: bool, host: Option<&str>, headers: &HeaderMap) -> bool {
    let site = headers.get(SITE).map(HeaderValue::as_bytes);
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return true;
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let scheme = if tls { "https" } else { "http" };
    let own = host.map(|host| format!("{scheme}://{host}"));
    own.is_none_or(|own| own.as_bytes() != origin.as_bytes())
}

/// Whether a GET may act. A page can leave out where it is from, but not that a browser sends the request: naming
/// another one would make the browser ask first (by OPTIONS), which is refused. Nor does it say anything that nobody's
/// page asks: a link in a mail may lead here by way of another site.
///
/// # Errors
/// It is of a browser, and of no page of this agent's own.
pub(super) fn may_act_by_get(headers: &HeaderMap) -> Result<(), ApiError> {
    let agent = headers.get(header::USER_AGENT).map(HeaderValue::as_bytes);
    let is_browser = agent.is_some_and(|agent| agent.starts_with(b"Mozilla/"));
    let site = headers.get(SITE).map(HeaderValue::as_bytes);
    let is_own = site == Some(b"same-origin");
    if !is_own && (is_browser || site.is_some()) {
        let words =
            "this request acts, and GET does not from a browser: use PUT, or the command line";
        return Err(ApiError::new(StatusCode::FORBIDDEN, words));
    }
    Ok(())
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
    fn browser_that_hides_its_page_does_not_act_by_get() {
        let allows = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            may_act_by_get(&map).is_ok()
        };
        let browser = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");
        assert!(!allows(&[browser]));
        // A link in a mail, by way of another site.
        assert!(!allows(&[browser, (SITE, "none")]));
        assert!(allows(&[browser, (SITE, "same-origin")]));
        assert!(allows(&[("user-agent", "Go-http-client/1.1")]) && allows(&[]));
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
        let socket = ("upgrade", "websocket");
        assert!(allows(Method::GET, &[host, socket]), "no browser");
        let own = ("origin", "http://127.0.0.1:4646");
        assert!(allows(Method::GET, &[host, socket, own]));
        for other in ["http://evil.example", "http://127.0.0.1:80", "null"] {
            assert!(!allows(Method::GET, &[host, socket, ("origin", other)]));
        }
        for path in [
            "/v1/vars?prefix=a",
            "/v1/jobs",
            "/v1/client/gc",
            "/v1/metrics",
        ] {
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
            for (site, allowed) in [
                ("cross-site", false),
                ("same-site", false),
                ("same-origin", true),
                ("none", true),
            ] {
                let headers = [host, ("sec-fetch-site", site)];
                assert_eq!(allows_at(path, Method::GET, &headers), allowed, "{site}");
            }
        }
        assert!(!allows(Method::HEAD, &[host]));
        assert!(!allows(Method::OPTIONS, &[host]));
    }
}
