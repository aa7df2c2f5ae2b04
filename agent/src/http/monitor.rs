//! `/v1/agent/monitor`: the agent's log as it is written.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::logs::HEARTBEAT;
use super::params::Params;
use crate::agent_log::{Followed, Follower, Format};

pub(super) async fn monitor(State(api): State<Api>, params: Params) -> Answer {
    let level = level(&params)?;
    if params.non_empty("node_id").is_some() && params.non_empty("server_id").is_some() {
        return Err(ApiError::bad(
            "Cannot target node and server simultaneously",
        ));
    }
    let format = match params.flag("log_json") {
        true => Format::Json,
        false => Format::Text,
    };
    let plain = params.flag("plain");
    params.caller.stream()?;
    let follower = api.settings.log.follow(level, format);
    let stream = futures::stream::unfold(follower, move |mut follower| async move {
        let part = next(&mut follower, plain).await?;
        Some((Ok::<_, Infallible>(part), follower))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = if plain {
        "text/plain"
    } else {
        "application/json"
    };
    (response.headers_mut()).insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

fn level(params: &Params) -> Result<LevelFilter, ApiError> {
    let name = params.non_empty("log_level").unwrap_or("info");
    match name.to_ascii_lowercase().as_str() {
        "trace" => Ok(LevelFilter::TRACE),
        "debug" => Ok(LevelFilter::DEBUG),
        "info" => Ok(LevelFilter::INFO),
        "warn" => Ok(LevelFilter::WARN),
        "error" => Ok(LevelFilter::ERROR),
        _ => Err(ApiError::bad(format!("Unknown log level: {name}"))),
    }
}

/// What the client gets next; none at the end.
async fn next(follower: &mut Follower, plain: bool) -> Option<Bytes> {
    let followed = match plain {
        true => follower.next().await,
        false => match timeout(HEARTBEAT, follower.next()).await {
            Ok(followed) => followed,
            // That the connection lives.
            Err(_) => return Some(Bytes::from_static(b"{}\n")),
        },
    };
    let line = match followed? {
        Followed::Line(line) => line,
        Followed::Missed(count) => {
            format!("[{count} lines of the log were not read in time and are missing]\n")
                .into_bytes()
        }
    };
    Some(match plain {
        true => Bytes::from(line),
        false => Bytes::from(format!("{{\"Data\":\"{}\"}}\n", STANDARD.encode(line))),
    })
}
