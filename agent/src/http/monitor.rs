//! `/v1/agent/monitor`: the agent's log as it is written.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;

use super::answer::Answer;
use super::errors::ApiError;
use super::frames::{Form, HEARTBEAT, Piece};
use super::params::Params;
use super::{Api, cluster};
use crate::agent_log::{AgentLog, Followed, Follower, Format};

/// What of the log is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// This level and above, `info` where none is named.
    pub(crate) level: &'a str,
    /// Whether each line is an object of JSON.
    pub(crate) json: bool,
    pub(crate) form: Form,
}

pub(super) async fn monitor(State(api): State<Api>, params: Params) -> Answer {
    let form = match params.flag("plain") {
        true => Form::Plain,
        false => Form::Frames,
    };
    let asked = Asked {
        level: params.get("log_level").unwrap_or_default(),
        json: params.flag("log_json"),
        form,
    };
    let level = level(asked.level)?;
    if params.non_empty("node_id").is_some() && params.non_empty("server_id").is_some() {
        return Err(ApiError::bad(
            "Cannot target node and server simultaneously",
        ));
    }
    if let Some(server) = params.non_empty("server_id") {
        known_server(&api, server).await?;
    }
    params.caller.stream()?;
    let reader = Reader::new(&api.settings.log, level, asked);
    let stream = futures::stream::unfold(reader, |mut reader| async move {
        let part = reader.next().await?;
        Some((Ok::<_, Infallible>(part), reader))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = match form {
        Form::Frames => "application/json",
        Form::Plain | Form::Messages => "text/plain",
    };
    (response.headers_mut()).insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// Whether a name is that of the one server here.
async fn known_server(api: &Api, asked: &str) -> Result<(), ApiError> {
    let (name, id) = cluster::server(api).await?;
    if [name.as_str(), id.as_str(), "leader"].contains(&asked) {
        return Ok(());
    }
    let words = format!("there is no server {asked:?}: the only one is {name}");
    Err(ApiError::bad(words))
}

/// Follows the log from now on.
///
/// # Errors
/// There is no such level.
pub(crate) fn follow(log: &AgentLog, asked: Asked<'_>) -> Result<Reader, ApiError> {
    Ok(Reader::new(log, level(asked.level)?, asked))
}

fn level(name: &str) -> Result<LevelFilter, ApiError> {
    match name.to_ascii_lowercase().as_str() {
        "trace" => Ok(LevelFilter::TRACE),
        "debug" => Ok(LevelFilter::DEBUG),
        "" | "info" => Ok(LevelFilter::INFO),
        "warn" => Ok(LevelFilter::WARN),
        "error" => Ok(LevelFilter::ERROR),
        _ => Err(ApiError::bad(format!("Unknown log level: {name}"))),
    }
}

/// Who reads the log.
#[derive(Debug)]
pub(crate) struct Reader {
    follower: Follower,
    form: Form,
}

impl Reader {
    fn new(log: &AgentLog, level: LevelFilter, asked: Asked<'_>) -> Reader {
        let format = match asked.json {
            true => Format::Json,
            false => Format::Text,
        };
        Reader {
            follower: log.follow(level, format),
            form: asked.form,
        }
    }

    /// What comes next, in the form that was asked for; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let followed = match self.form.heartbeat() {
                None => self.follower.next().await,
                Some(heartbeat) => match timeout(HEARTBEAT, self.follower.next()).await {
                    Ok(followed) => followed,
                    Err(_) => return Some(heartbeat),
                },
            };
            let data = match followed? {
                Followed::Line(line) => line,
                Followed::Missed(count) => {
                    let words = "lines of the log were not read in time and are missing";
                    format!("[{count} {words}]\n").into_bytes()
                }
            };
            let piece = Piece {
                data,
                ..Piece::default()
            };
            if let Some(piece) = self.form.encode(piece) {
                return Some(piece);
            }
        }
    }
}
