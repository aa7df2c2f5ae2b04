//! `drover operator api`, `drover operator metrics` and `drover system gc`.

use std::io::Read;

use bytes::Bytes;
use hyper::Method;

use super::args::{ApiArgs, MetricsArgs};
use super::client::whole;
use super::context::{Context, Outcome};
use super::failure::Failure;

/// Runs `operator api`: the raw answer, also if it is an error.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn api(cx: &mut Context, args: ApiArgs) -> Outcome {
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
    let method = match args.method.as_deref() {
        Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes())
            .map_err(|_| Failure::new(format!("{name} is no method")))?,
        None if args.body.is_some() => Method::POST,
        None => Method::GET,
    };
    let path = match args.path.strip_prefix('/') {
        Some(_) => args.path.clone(),
        None => format!("/{}", args.path),
    };
    let response = cx
        .client
        .exchange(method, cx.client.target(&path, &[])?, body)
        .await?;
    let failed = !response.status().is_success();
    let bytes = whole(response).await?;
    cx.screen.bytes(&bytes)?;
    Ok(u8::from(failed))
}

/// Runs `operator metrics`.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn metrics(cx: &mut Context, args: MetricsArgs) -> Outcome {
    let Some(format) = args.format.as_deref().filter(|format| *format != "json") else {
        let metrics: serde_json::Value = cx.client.get("/v1/metrics", &[]).await?;
        return cx.print_json(&metrics);
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
