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
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::files::{CHUNK, alloc_dir, blocking, wanted_path};
use super::logs::{Frame, HEARTBEAT, file_change, watch};
use super::params::Params;
use drover_io_real::safe_open::{Found, Trouble};

/// How many frames may wait for a slow client.
const AHEAD: usize = 4;

/// A file that is read from one place on.
struct Reading {
    file: Arc<File>,
    path: String,
    at: u64,
}

/// What is to be said of a file.
enum Next {
    /// This, and more may follow at once.
    Frame(Frame),
    /// Nothing, until it changes.
    End,
    /// It is gone.
    Deleted,
}

pub(super) async fn stream(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let follow = params.get("follow").is_none() || params.flag("follow");
    let from_end = match params.get("origin") {
        None | Some("" | "start") => false,
        Some("end") => true,
        Some(_) => return Err(ApiError::bad("origin must be start or end")),
    };
    let offset = params.non_empty("offset").unwrap_or("0").parse();
    let offset: u64 = offset.map_err(|_| ApiError::bad("offset must be a number"))?;
    let path = wanted_path(&params)?;
    params.caller.stream()?;
    let dir = alloc_dir(&api, &id).await?;
    let reading = blocking(move || {
        let found = Found::below(&dir, &path)?;
        let file = Arc::new(found.open()?);
        let at = match from_end {
            true => found.size().saturating_sub(offset),
            false => offset,
        };
        let path = path.trim_start_matches('/').to_owned();
        Ok(Reading { file, path, at })
    })
    .await?;
    let (frames, mut taken) = mpsc::channel(AHEAD);
    tokio::spawn(pump(reading, follow, frames));
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

/// Sends the file to its end, and then what is added, until it is deleted or nobody reads any more.
async fn pump(mut reading: Reading, follow: bool, to: mpsc::Sender<Bytes>) {
    let changes = match follow {
        true => watch(&*reading.file).ok(),
        false => None,
    };
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
            Next::Frame(frame) => {
                if to.send(encode(&frame)).await.is_err() {
                    return;
                }
            }
            Next::Deleted if follow => {
                let frame = Frame {
                    file: reading.path,
                    offset: reading.at,
                    file_event: "file deleted".to_owned(),
                    ..Frame::default()
                };
                let _ = to.send(encode(&frame)).await;
                return;
            }
            Next::End | Next::Deleted if !follow => return,
            Next::End | Next::Deleted => loop {
                tokio::select! {
                    () = file_change(changes.as_ref()) => break,
                    () = to.closed() => return,
                    () = tokio::time::sleep(HEARTBEAT) => {
                        if to.send(Bytes::from_static(b"{}")).await.is_err() {
                            return;
                        }
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
        let mut data = vec![0; CHUNK];
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(&mut data)?;
        data.truncate(count);
        self.at += u64::try_from(count).unwrap_or(0);
        if count == 0 && !is_truncated {
            return Ok(match about.nlink() {
                0 => Next::Deleted,
                _ => Next::End,
            });
        }
        let event = if is_truncated { "file truncated" } else { "" };
        Ok(Next::Frame(Frame {
            data: STANDARD.encode(&data),
            file: self.path.clone(),
            offset: self.at,
            file_event: event.to_owned(),
        }))
    }
}

fn encode(frame: &Frame) -> Bytes {
    // Plain text and a number: this cannot fail.
    serde_json::to_vec(frame).unwrap_or_default().into()
}
