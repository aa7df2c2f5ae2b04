//! A task's output as a stream: of frames, as Nomad's programs read it, or plain.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use drover_core::agent::View;
use drover_core::ids::{AllocId, TaskName};
use rustix::fs::inotify;
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::files::blocking;
use super::params::Params;
use crate::agent_handle::{AgentHandle, AgentStopped};
use drover_io_real::logfile::{Chunk, Gap, LogFiles, LogPosition, Origin};
use drover_io_real::safe_open::{Trouble, own_path};

/// How often a client of frames hears that the connection lives.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often files are looked at where the kernel cannot tell of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How many chunks may wait for a slow client.
const AHEAD: usize = 4;

/// One frame of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct Frame {
    /// The bytes in base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) data: String,
    /// Which file they are of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) file: String,
    /// The place after them.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) offset: u64,
    /// Why bytes are missing before these, if they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) file_event: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a client wants to read.
#[derive(Clone, Debug)]
struct Wanted {
    alloc: AllocId,
    task: TaskName,
    stream: &'static str,
    origin: Origin,
    offset: u64,
    follow: bool,
    /// Whether following ends with the task. Nomad's never ends; our command line's does.
    until_end: bool,
    plain: bool,
}

pub(super) async fn logs(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let wanted = wanted(&id, &params)?;
    params.caller.stream()?;
    await_start(&api.agent_handle, &wanted).await?;
    let root = api.agent_handle.alloc_root();
    let asked = wanted.clone();
    let (files, at) = blocking(move || {
        let files = LogFiles::open(&root, asked.alloc, asked.task.as_str(), asked.stream)?;
        let at = files.position(asked.origin, asked.offset)?;
        Ok((files, at))
    })
    .await?;
    let (chunks, mut taken) = mpsc::channel(AHEAD);
    let kind = if wanted.plain {
        "text/plain"
    } else {
        "application/json"
    };
    tokio::spawn(pump(api.agent_handle, Arc::new(files), at, wanted, chunks));
    let stream =
        futures::stream::poll_fn(move |cx| taken.poll_recv(cx).map(|b| b.map(Ok::<_, Infallible>)));
    let mut response = Response::new(Body::from_stream(stream));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

fn wanted(id: &str, params: &Params) -> Result<Wanted, ApiError> {
    let alloc = id
        .parse()
        .map_err(|_| ApiError::bad("must provide a valid alloc id"))?;
    let task = params
        .non_empty("task")
        .ok_or_else(|| ApiError::bad("must provide task name"))?;
    let stream = match params.get("type") {
        Some("stdout") => "stdout",
        Some("stderr") => "stderr",
        Some(_) | None => return Err(ApiError::bad("must provide log type (stdout/stderr)")),
    };
    let origin = match params.get("origin") {
        None | Some("" | "start") => Origin::Start,
        Some("end") => Origin::End,
        Some(_) => return Err(ApiError::bad("origin must be start or end")),
    };
    let offset = params.non_empty("offset").unwrap_or("0").parse();
    Ok(Wanted {
        alloc,
        task: TaskName::from(task),
        stream,
        origin,
        offset: offset.map_err(|_| ApiError::bad("offset must be a number"))?,
        follow: params.flag("follow"),
        until_end: params.flag("until_end"),
        plain: params.flag("plain"),
    })
}

/// Where a task is, as far as its output is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TaskStage {
    NoAlloc(ApiError),
    NoTask,
    NotStarted,
    Alive,
    Over,
}

fn stage(view: View<'_>, alloc: AllocId, task: &TaskName) -> TaskStage {
    let Some(known) = view.alloc(alloc) else {
        return TaskStage::NoAlloc(ApiError::no_alloc(view, alloc));
    };
    let Some(task) = known.task(task) else {
        return TaskStage::NoTask;
    };
    if known.record().finished || task.is_dead() {
        TaskStage::Over
    } else if task.state().started_at.is_some() {
        TaskStage::Alive
    } else {
        TaskStage::NotStarted
    }
}

async fn ask_stage(agent_handle: &AgentHandle, wanted: &Wanted) -> Result<TaskStage, AgentStopped> {
    let (alloc, task) = (wanted.alloc, wanted.task.clone());
    agent_handle
        .ask(move |view| stage(view, alloc, &task))
        .await
}

/// Fails for what has no logs. Who follows to the end waits for the beginning, too.
async fn await_start(agent_handle: &AgentHandle, wanted: &Wanted) -> Result<(), ApiError> {
    let mut changes = agent_handle.index();
    let mut events = agent_handle.events();
    loop {
        changes.borrow_and_update();
        match ask_stage(agent_handle, wanted).await? {
            TaskStage::Alive | TaskStage::Over => return Ok(()),
            TaskStage::NoAlloc(error) => return Err(error),
            TaskStage::NoTask => {
                return Err(ApiError::bad(format!(
                    "unknown task name \"{}\"",
                    wanted.task
                )));
            }
            TaskStage::NotStarted if wanted.follow && wanted.until_end => {}
            TaskStage::NotStarted => {
                let words = format!(
                    "task \"{}\" not started yet. No logs available",
                    wanted.task
                );
                return Err(ApiError::not_found(words));
            }
        }
        tokio::select! {
            changed = changes.changed() => changed.map_err(|_| AgentStopped)?,
            // Whatever it is, even having missed some: look again.
            _ = events.recv() => {}
        }
    }
}

/// What a task writes to `stream` (`stdout` or `stderr`), until its end, for whoever lives in the
/// agent's own process. `from_now` leaves out what is there already. Nothing comes where there is
/// no such log.
pub(crate) fn follow(
    agent_handle: AgentHandle,
    alloc: AllocId,
    task: TaskName,
    stream: &'static str,
    from_now: bool,
) -> mpsc::Receiver<Bytes> {
    let wanted = Wanted {
        alloc,
        task,
        stream,
        origin: if from_now { Origin::Now } else { Origin::Start },
        offset: 0,
        follow: true,
        until_end: true,
        plain: true,
    };
    let (chunks, taken) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if await_start(&agent_handle, &wanted).await.is_err() {
            return;
        }
        let root = agent_handle.alloc_root();
        let asked = wanted.clone();
        let opened = blocking(move || {
            let files = LogFiles::open(&root, asked.alloc, asked.task.as_str(), asked.stream)?;
            let at = files.position(asked.origin, asked.offset)?;
            Ok((files, at))
        });
        if let Ok((files, at)) = opened.await {
            pump(agent_handle, Arc::new(files), at, wanted, chunks).await;
        }
    });
    taken
}

/// Sends the log until its end, or for ever.
async fn pump(
    agent_handle: AgentHandle,
    files: Arc<LogFiles>,
    mut at: LogPosition,
    wanted: Wanted,
    to: mpsc::Sender<Bytes>,
) {
    let mut changes = Changes::new(&agent_handle, &files, &wanted);
    loop {
        changes.note();
        // Asked before reading: what a task wrote before its end is then read before this ends.
        let over = wanted.until_end
            && !matches!(
                ask_stage(&agent_handle, &wanted).await,
                Ok(TaskStage::Alive | TaskStage::NotStarted)
            );
        let reader = files.clone();
        let read = blocking(move || reader.read(at)).await;
        let Ok(chunk) = read else { return };
        at = chunk.after;
        if !chunk.data.is_empty() {
            if to.send(encode(&chunk, wanted.plain)).await.is_err() {
                return;
            }
            continue;
        }
        if !wanted.follow || over || files.is_removed() {
            return;
        }
        loop {
            tokio::select! {
                more = changes.wait() => match more {
                    true => break,
                    false => return,
                },
                () = to.closed() => return,
                () = tokio::time::sleep(HEARTBEAT), if !wanted.plain => {
                    if to.send(Bytes::from_static(b"{}")).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

fn encode(chunk: &Chunk, plain: bool) -> Bytes {
    if plain {
        return Bytes::copy_from_slice(&chunk.data);
    }
    let frame = Frame {
        data: STANDARD.encode(&chunk.data),
        file: chunk.file.clone(),
        offset: chunk.after.offset,
        file_event: match chunk.gap {
            None => "",
            Some(Gap::Rotated) => "file deleted",
            Some(Gap::Truncated) => "file truncated",
        }
        .to_owned(),
    };
    // Plain text and a number: this cannot fail.
    serde_json::to_vec(&frame).unwrap_or_default().into()
}

/// What may mean that there is more to read, or that there never will be.
struct Changes {
    files: Option<pipe::Receiver>,
    index: tokio::sync::watch::Receiver<u64>,
    events: tokio::sync::broadcast::Receiver<(
        drover_core::ids::TaskKey,
        std::sync::Arc<drover_core::model::event::TaskEvent>,
    )>,
    until_end: bool,
}

impl Changes {
    fn new(agent_handle: &AgentHandle, files: &LogFiles, wanted: &Wanted) -> Changes {
        Changes {
            files: if wanted.follow {
                watch(files.dir()).ok()
            } else {
                None
            },
            index: agent_handle.index(),
            events: agent_handle.events(),
            until_end: wanted.until_end,
        }
    }

    /// From here on, changes count.
    fn note(&mut self) {
        self.index.borrow_and_update();
    }

    /// Waits for a change; `false` if the agent ends.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            () = file_change(self.files.as_ref()) => true,
            changed = self.index.changed(), if self.until_end => changed.is_ok(),
            event = self.events.recv(), if self.until_end => {
                !matches!(event, Err(tokio::sync::broadcast::error::RecvError::Closed))
            }
        }
    }
}

pub(super) async fn file_change(watch: Option<&pipe::Receiver>) {
    let Some(watch) = watch else {
        return tokio::time::sleep(POLL_INTERVAL).await;
    };
    if watch.readable().await.is_err() {
        return tokio::time::sleep(POLL_INTERVAL).await;
    }
    let mut events = [0; 4096];
    while watch.try_read(&mut events).is_ok_and(|count| count > 0) {}
}

/// Lets the kernel tell of changes in a directory of logs, or of a file.
pub(super) fn watch(what: impl AsFd) -> Result<pipe::Receiver, Trouble> {
    use inotify::{CreateFlags, WatchFlags};
    let fail = |error: io::Error| Trouble::Io(error.to_string());
    let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
    let events = inotify::init(flags).map_err(|errno| fail(errno.into()))?;
    let changes = WatchFlags::MODIFY
        | WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::ATTRIB;
    inotify::add_watch(&events, own_path(what), changes).map_err(|errno| fail(errno.into()))?;
    // Reading is all that is done to it, and in that it is as good as a pipe.
    pipe::Receiver::from_file_unchecked(events.into()).map_err(fail)
}
