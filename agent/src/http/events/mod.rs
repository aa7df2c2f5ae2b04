//! The event stream: what changes, as lines of JSON, for as long as somebody reads.
//!
//! Events are made from commits. On the core's thread only shared records of what changed are taken
//! ([`changes`]); the last hundred steps of them are kept ([`buffer`]). JSON is made of a step when the first
//! reader comes to it, once for all readers ([`render`]), so nothing is rendered while nobody listens.
//!
//! A reader has no queue. It is a number, the step that it reads next, and takes steps from the buffer when its
//! connection can take them. A reader that is so slow that its next step is not kept any more is told so
//! in a last line, with the index from which to go on. So it costs the same whether it reads or not.

mod buffer;
mod changes;
mod node;
mod render;
#[cfg(test)]
mod tests;
mod topics;

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

pub use buffer::Events;
use buffer::{Next, Reader};
use topics::Topics;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::params::Params;

/// After how long a silence a reader hears that the connection lives.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How many bytes of lines go out in one piece, but for the last of them.
const MOST_OF_PIECE: usize = 64 << 10;
/// A line without events.
const ALIVE: &[u8] = b"{}\n";

pub(super) async fn stream(State(api): State<Api>, params: Params) -> Answer {
    let topics = Topics::of(&params)?;
    topics.check()?;
    if let Some(index) = params.get("index").filter(|text| !text.is_empty())
        && index.parse::<u64>().is_err()
    {
        return Err(ApiError::bad(format!(
            "Unable to parse index: strconv.Atoi: parsing {index:?}: invalid syntax"
        )));
    }
    params.caller.stream()?;
    let reader = api.settings.events.read(params.index);
    let lines = futures::stream::unfold(Some((reader, false)), move |state| {
        let topics = topics.clone();
        async move {
            let (reader, begun) = state?;
            if !begun {
                return Some((line(Bytes::from_static(ALIVE)), Some((reader, true))));
            }
            let (text, reader) = next_lines(reader, &topics).await?;
            Some((line(text), reader.map(|reader| (reader, true))))
        }
    });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn line(text: Bytes) -> Result<Bytes, Infallible> {
    Ok(text)
}

/// A line and those that follow it already, so that they go out in one piece.
fn with_following(first: Bytes, reader: &mut Reader, topics: &Topics) -> Bytes {
    let mut first = Some(first);
    let mut piece = Vec::new();
    while piece.len() < MOST_OF_PIECE
        && let Next::Step(step) = reader.next()
    {
        if let Some(text) = step.line(topics) {
            piece.extend(first.take().unwrap_or_default());
            piece.extend(text);
        }
    }
    first.unwrap_or_else(|| piece.into())
}

/// The next lines for a reader, and the reader unless that was the last one. None when the agent ends.
async fn next_lines(mut reader: Reader, topics: &Topics) -> Option<(Bytes, Option<Reader>)> {
    let until = Instant::now() + HEARTBEAT;
    loop {
        match reader.next() {
            Next::Step(step) => {
                if let Some(text) = step.line(topics) {
                    let text = with_following(text, &mut reader, topics);
                    return Some((text, Some(reader)));
                }
            }
            Next::Lost { from } => {
                let words = format!(
                    "{{\"Error\":\"this reader is too slow: events before index {from} were dropped; \
                     subscribe again with index={from}\"}}\n"
                );
                return Some((words.into(), None));
            }
            Next::Later => match timeout_at(until, reader.changed()).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(_) => return Some((Bytes::from_static(ALIVE), Some(reader))),
            },
        }
    }
}
