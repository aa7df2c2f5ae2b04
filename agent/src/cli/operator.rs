//! `drover operator api`, `drover operator metrics` and `drover system gc`.

use std::io::Read;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Uri};

use super::args::{ApiArgs, MetricsArgs};
use super::client::{Client, whole};
use super::context::{Context, Outcome};
use super::exit_code::Failure;

/// Runs `operator api`: the raw answer, also if it is an error.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn api(cx: &mut Context, args: ApiArgs) -> Outcome {
    let method = match args.method.as_deref() {
        Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes())
            .map_err(|_| Failure::new(format!("{name} is no method")))?,
        None if args.body.is_some() => Method::POST,
        None => Method::GET,
    };
    let headers = headers(&args.headers)?;
    let (client, path) = place(&cx.client, &args.path)?;
    if client.token_source().is_none()
        && let Some(source) = cx.client.token_source()
    {
        let (here, there) = (cx.client.url(), client.url());
        let words = format!(
            "The token of {source} is for {here}, and is not shown to {there}: for that, use -address."
        );
        cx.screen.complain(&words);
    }
    let filter = args.filter.as_deref().map(|filter| ("filter", filter));
    let target = client.target(&path, filter.as_slice())?;
    if args.dryrun {
        let command = curl(&client, &method, &target, &headers, args.body.as_deref());
        cx.screen.print_line(&command)?;
        return Ok(0);
    }
    let body = match args.body.as_deref() {
        Some("-") => {
            let mut text = Vec::new();
            let read = std::io::stdin().read_to_end(&mut text);
            read.map_err(|error| Failure::new(format!("cannot read the body: {error}")))?;
            text.into()
        }
        Some(text) => Bytes::from(text.to_owned()),
        None => Bytes::new(),
    };
    if args.verbose {
        let names = headers.iter().map(|(name, _)| format!("> {name}: ..."));
        let first = format!("> {method} {target} at {}", client.url());
        let lines: Vec<String> = core::iter::once(first).chain(names).collect();
        cx.screen.complain(&lines.join("\n"));
    }
    let response = client.exchange_with(method, target, &headers, body).await?;
    if args.verbose {
        let head = response.headers().iter();
        let head = head.map(|(name, value)| {
            format!("< {name}: {}", String::from_utf8_lossy(value.as_bytes()))
        });
        let first = format!("< {}", response.status());
        let lines: Vec<String> = core::iter::once(first).chain(head).collect();
        cx.screen.complain(&lines.join("\n"));
    }
    let failed = !response.status().is_success();
    let bytes = whole(response).await?;
    cx.screen.bytes(&bytes)?;
    Ok(u8::from(failed))
}

/// The agent and the path that are meant: `/v1/jobs`, `localhost:4646/v1/jobs` or a whole address.
fn place(client: &Client, given: &str) -> Result<(Client, String), Failure> {
    let rest = given.split_once("://").map_or(given, |(_, rest)| rest);
    if given.starts_with('/') {
        return Ok((client.clone(), given.to_owned()));
    }
    match rest.split_once('/') {
        Some((host, path)) if host.contains(':') || rest != given => {
            let address = given.strip_suffix(path).unwrap_or(given);
            Ok((client.at(address)?, format!("/{path}")))
        }
        Some(_) | None => Ok((client.clone(), format!("/{given}"))),
    }
}

/// `NAME: VALUE`, each.
fn headers(given: &[String]) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let header = |text: &String| {
        let unusable = || Failure::new(format!("-H {text}: a header is NAME: VALUE"));
        let (name, value) = text.split_once(':').ok_or_else(unusable)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| unusable())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| unusable())?;
        Ok((name, value))
    };
    given.iter().map(header).collect()
}

/// The command of curl that asks the same. The token is the environment's there too, and is not shown.
fn curl(
    client: &Client,
    method: &Method,
    target: &Uri,
    headers: &[(HeaderName, HeaderValue)],
    body: Option<&str>,
) -> String {
    let mut parts = vec!["curl".to_owned(), format!("-X {method}")];
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        parts.push(format!("-H {}", quoted(&format!("{name}: {value}"))));
    }
    if client.token_source().is_some() {
        parts.push("-H \"X-Nomad-Token: ${NOMAD_TOKEN}\"".to_owned());
    }
    parts.extend(client.curl_tls());
    match body {
        Some("-") => parts.push("--data-binary @-".to_owned()),
        Some(text) => parts.push(format!("--data-raw {}", quoted(text))),
        None => {}
    }
    let place = match client.socket() {
        Some(path) => {
            parts.push(format!(
                "--unix-socket {}",
                quoted(&path.display().to_string())
            ));
            "http://localhost".to_owned()
        }
        None => client.url(),
    };
    parts.push(quoted(&format!("{place}{target}")));
    parts.join(" \\\n  ")
}

/// One word of a shell's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Runs `operator metrics`.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn metrics(cx: &mut Context, args: MetricsArgs) -> Outcome {
    let Some(format) = args.format.as_deref().filter(|format| *format != "json") else {
        let metrics: serde_json::Value = cx.client.get("/v1/metrics", &[]).await?;
        return cx.show(&args.shape, &metrics);
    };
    let query = [("format", format)];
    let answer = cx.client.send(Method::GET, "/v1/metrics", &query, None);
    let bytes = whole(answer.await?).await?;
    cx.screen.bytes(&bytes)?;
    Ok(0)
}

/// Runs `system gc`.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn collect(cx: &mut Context) -> Outcome {
    cx.client
        .send(Method::PUT, "/v1/system/gc", &[], None)
        .await?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Connection;

    fn client(token: Option<&str>) -> Client {
        let connection = Connection {
            address: Some("http://127.0.0.1:4646".to_owned()),
            token: token.map(|token| token.to_owned().into()),
            ..Connection::default()
        };
        Client::new(&connection, |_| None).unwrap()
    }

    #[test]
    fn path_may_name_another_agent() {
        let of = |given: &str| {
            let (client, path) = place(&client(None), given).unwrap();
            format!("{} {path}", client.url())
        };
        assert_eq!(of("/v1/jobs"), "http://127.0.0.1:4646 /v1/jobs");
        assert_eq!(of("v1/jobs?a=b"), "http://127.0.0.1:4646 /v1/jobs?a=b");
        assert_eq!(of("box:4700/v1/jobs"), "http://box:4700 /v1/jobs");
        assert_eq!(of("http://box/v1/jobs"), "http://box:80 /v1/jobs");
    }

    #[test]
    fn token_is_not_shown_to_another_agent() {
        let client = client(Some("hunter2"));
        let source = |given: &str| place(&client, given).unwrap().0.token_source();
        assert_eq!(source("/v1/jobs"), Some("-token"));
        assert_eq!(source("http://127.0.0.1:4646/v1/jobs"), Some("-token"));
        assert_eq!(source("http://box:4646/v1/jobs"), None);
    }

    #[test]
    fn dry_run_names_the_socket() {
        let client = client(None).at("unix:///run/a.sock").unwrap();
        let target = client.target("/v1/jobs", &[]).unwrap();
        let shown = curl(&client, &Method::GET, &target, &[], None);
        assert!(shown.contains("--unix-socket '/run/a.sock'"), "{shown}");
        assert!(shown.ends_with("'http://localhost/v1/jobs'"), "{shown}");
    }

    #[test]
    fn dry_run_shows_a_command_without_the_token() {
        let client = client(Some("hunter2"));
        let headers = headers(&["X-A: it's".to_owned()]).unwrap();
        let target = client.target("/v1/jobs", &[("filter", "a == b")]).unwrap();
        let shown = curl(&client, &Method::POST, &target, &headers, Some("{}"));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("-X POST") && shown.contains("${NOMAD_TOKEN}"),
            "{shown}"
        );
        assert!(shown.contains(r"-H 'x-a: it'\''s'"), "{shown}");
        assert!(shown.contains("--data-raw '{}'"), "{shown}");
        assert!(
            shown.ends_with("/v1/jobs?filter=a%20%3D%3D%20b'"),
            "{shown}"
        );
        assert!(super::headers(&["nothing".to_owned()]).is_err());
    }
}
