//! A file of an allocation as a stream of frames, with what is added to it.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::files::{CHUNK, NO_PATH, alloc_dir, blocking};
use super::frames::{AHEAD, Form, HEARTBEAT, Piece};
use super::logs::{file_change, watch};
use super::params::Params;
use crate::agent_handle::AgentHandle;
use drover_io_real::safe_open::{Found, Trouble};

/// Which file is to be read, in the words of whoever asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) alloc: &'a str,
    pub(crate) path: &'a str,
    /// `start`, also where nothing is said, or `end`.
    pub(crate) origin: &'a str,
    /// From there; none if it was no number.
    pub(crate) offset: Option<u64>,
    /// The most bytes, if there shall be a most.
    pub(crate) limit: Option<u64>,
    pub(crate) follow: bool,
    pub(crate) form: Form,
}

/// A file that is read from one place on.
struct Reading {
    file: Arc<File>,
    path: String,
    at: u64,
    /// So many bytes are still wanted.
    left: u64,
}

/// What is to be said of a file.
enum Next {
    /// This, and more may follow at once.
    Piece(Piece),
    /// Nothing, until it changes.
    End,
    /// It is gone.
    Deleted,
    /// That was all that is wanted.
    Limit,
}

pub(super) async fn stream(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let asked = Asked {
        alloc: &id,
        path: params.get("path").unwrap_or_default(),
        origin: params.get("origin").unwrap_or_default(),
        offset: params.non_empty("offset").unwrap_or("0").parse().ok(),
        limit: None,
        follow: params.get("follow").is_none() || params.flag("follow"),
        form: Form::Frames,
    };
    let from = check(&asked)?;
    params.caller.stream()?;
    let mut taken = begin(&api.agent_handle, asked, from).await?;
    let stream = futures::stream::poll_fn(move |cx| {
        taken
            .poll_recv(cx)
            .map(|frame| frame.map(Ok::<_, Infallible>))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Where reading begins.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Start(u64),
    End(u64),
}

fn check(asked: &Asked<'_>) -> Result<Beginning, ApiError> {
    let offset = || {
        let bad = || ApiError::bad("offset must be a number");
        asked.offset.ok_or_else(bad)
    };
    let from = match asked.origin {
        "" | "start" => Beginning::Start(offset()?),
        "end" => Beginning::End(offset()?),
        _ => return Err(ApiError::bad("origin must be start or end")),
    };
    match asked.path {
        "" => Err(ApiError::bad(NO_PATH)),
        _ => Ok(from),
    }
}

/// Opens a file of an allocation. What is read of it comes in the form that was asked for, until its end, or for as
/// long as somebody reads.
///
/// # Errors
/// There is no such file.
pub(crate) async fn open(
    agent_handle: &AgentHandle,
    asked: Asked<'_>,
) -> Result<mpsc::Receiver<Bytes>, ApiError> {
    let from = check(&asked)?;
    begin(agent_handle, asked, from).await
}

async fn begin(
    agent_handle: &AgentHandle,
    asked: Asked<'_>,
    from: Beginning,
) -> Result<mpsc::Receiver<Bytes>, ApiError> {
    let dir = alloc_dir(agent_handle, asked.alloc).await?;
    let (path, left) = (asked.path.to_owned(), asked.limit.unwrap_or(u64::MAX));
    let reading = blocking(move || {
        let found = Found::below(&dir, &path)?;
        let file = Arc::new(found.open()?);
        let at = match from {
            Beginning::Start(offset) => offset,
            Beginning::End(offset) => found.size().saturating_sub(offset),
        };
        let path = path.trim_start_matches('/').to_owned();
        Ok(Reading {
            file,
            path,
            at,
            left,
        })
    })
    .await?;
    let (pieces, taken) = mpsc::channel(AHEAD);
    tokio::spawn(pump(reading, asked.follow, asked.form, pieces));
    Ok(taken)
}

/// Sends the file to its end, and then what is added, until it is deleted or nobody reads any more.
async fn pump(mut reading: Reading, follow: bool, form: Form, to: mpsc::Sender<Bytes>) {
    let changes = match follow {
        true => watch(&*reading.file).ok(),
        false => None,
    };
    let heartbeat = form.heartbeat();
    let mut last_frame = Instant::now();
    loop {
        let read = blocking(move || {
            let next = reading
                .next()
                .map_err(|error| Trouble::Io(error.to_string()))?;
            Ok((next, reading))
        });
        let Ok((next, after)) = read.await else {
            return;
        };
        reading = after;
        match next {
            Next::Piece(piece) => {
                if let Some(piece) = form.encode(piece)
                    && to.send(piece).await.is_err()
                {
                    return;
                }
                last_frame = Instant::now();
            }
            Next::Deleted if follow => {
                let piece = Piece {
                    file: reading.path,
                    offset: reading.at,
                    event: "file deleted",
                    ..Piece::default()
                };
                if let Some(piece) = form.encode(piece) {
                    // Who is gone need not hear it.
                    let _ = to.send(piece).await;
                }
                return;
            }
            Next::Limit => return,
            Next::End | Next::Deleted if !follow => return,
            Next::End | Next::Deleted => loop {
                tokio::select! {
                    () = file_change(changes.as_ref()) => break,
                    () = to.closed() => return,
                    () = tokio::time::sleep_until(last_frame + HEARTBEAT), if heartbeat.is_some() => {
                        if to.send(heartbeat.clone().unwrap_or_default()).await.is_err() {
                            return;
                        }
                        last_frame = Instant::now();
                    }
                }
            },
        }
    }
}

impl Reading {
    fn next(&mut self) -> io::Result<Next> {
        let about = self.file.metadata()?;
        let is_truncated = about.len() < self.at;
        if is_truncated {
            self.at = 0;
        }
        if self.left == 0 {
            return Ok(Next::Limit);
        }
        let most = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK);
        let mut data = vec![0; most];
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(&mut data)?;
        data.truncate(count);
        let count = u64::try_from(count).unwrap_or(0);
        self.at += count;
        self.left = self.left.saturating_sub(count);
        if count == 0 && !is_truncated {
            return Ok(match about.nlink() {
                0 => Next::Deleted,
                _ => Next::End,
            });
        }
        Ok(Next::Piece(Piece {
            data,
            file: self.path.clone(),
            offset: self.at,
            event: if is_truncated { "file truncated" } else { "" },
        }))
    }
}
