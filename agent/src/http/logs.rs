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
use bytes::Bytes;
use drover_core::agent::View;
use drover_core::ids::{AllocId, TaskName};
use rustix::fs::inotify;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::files::blocking;
use super::frames::{AHEAD, Form, HEARTBEAT, Piece};
use super::params::Params;
use crate::agent_handle::{AgentHandle, AgentStopped};
use drover_io_real::logfile::{Chunk, Gap, LogFiles, LogPosition, Origin};
use drover_io_real::safe_open::{Trouble, own_path};

/// How often files are looked at where the kernel cannot tell of changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Which output is to be read, in the words of whoever asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) alloc: &'a str,
    pub(crate) task: &'a str,
    /// `stdout` or `stderr`.
    pub(crate) stream: &'a str,
    /// `start`, also where nothing is said, or `end`.
    pub(crate) origin: &'a str,
    /// From there; none if it was no number.
    pub(crate) offset: Option<u64>,
    pub(crate) follow: bool,
    /// Whether following ends with the task. Nomad's never ends; our command line's does.
    pub(crate) until_end: bool,
    pub(crate) form: Form,
}

/// Which output is to be read.
#[derive(Clone, Debug)]
struct Wanted {
    alloc: AllocId,
    task: TaskName,
    stream: &'static str,
    origin: Origin,
    offset: u64,
    follow: bool,
    until_end: bool,
    form: Form,
}

pub(super) async fn logs(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let form = match params.flag("plain") {
        true => Form::Plain,
        false => Form::Frames,
    };
    let asked = Asked {
        alloc: &id,
        task: params.get("task").unwrap_or_default(),
        stream: params.get("type").unwrap_or_default(),
        origin: params.get("origin").unwrap_or_default(),
        offset: params.non_empty("offset").unwrap_or("0").parse().ok(),
        follow: params.flag("follow"),
        until_end: params.flag("until_end"),
        form,
    };
    let wanted = Wanted::of(asked)?;
    params.caller.stream()?;
    let mut taken = begin(&api.agent_handle, wanted).await?;
    let kind = match form {
        Form::Frames => "application/json",
        Form::Plain | Form::Messages => "text/plain",
    };
    let stream =
        futures::stream::poll_fn(move |cx| taken.poll_recv(cx).map(|b| b.map(Ok::<_, Infallible>)));
    let mut response = Response::new(Body::from_stream(stream));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

impl Wanted {
    fn of(asked: Asked<'_>) -> Result<Wanted, ApiError> {
        let alloc = asked.alloc.parse();
        Ok(Wanted {
            alloc: alloc.map_err(|_| ApiError::bad("must provide a valid alloc id"))?,
            task: match asked.task {
                "" => return Err(ApiError::bad("must provide task name")),
                task => TaskName::from(task),
            },
            stream: match asked.stream {
                "stdout" => "stdout",
                "stderr" => "stderr",
                _ => return Err(ApiError::bad("must provide log type (stdout/stderr)")),
            },
            origin: match asked.origin {
                "" | "start" => Origin::Start,
                "end" => Origin::End,
                "now" => Origin::Now,
                _ => return Err(ApiError::bad("origin must be start, end or now")),
            },
            offset: (asked.offset).ok_or_else(|| ApiError::bad("offset must be a number"))?,
            follow: asked.follow,
            until_end: asked.until_end,
            form: asked.form,
        })
    }
}

/// Opens a task's output. What is read of it comes in the form that was asked for, until its end, or for as long as
/// somebody reads.
///
/// # Errors
/// There is no such output.
pub(crate) async fn open(
    agent_handle: &AgentHandle,
    asked: Asked<'_>,
) -> Result<mpsc::Receiver<Bytes>, ApiError> {
    begin(agent_handle, Wanted::of(asked)?).await
}

async fn begin(
    agent_handle: &AgentHandle,
    wanted: Wanted,
) -> Result<mpsc::Receiver<Bytes>, ApiError> {
    let (files, at) = find(agent_handle, &wanted).await?;
    let (chunks, taken) = mpsc::channel(AHEAD);
    tokio::spawn(pump(agent_handle.clone(), files, at, wanted, chunks));
    Ok(taken)
}

async fn find(
    agent_handle: &AgentHandle,
    wanted: &Wanted,
) -> Result<(Arc<LogFiles>, LogPosition), ApiError> {
    await_start(agent_handle, wanted).await?;
    let root = agent_handle.alloc_root();
    let asked = wanted.clone();
    blocking(move || {
        let files = LogFiles::open(&root, asked.alloc, asked.task.as_str(), asked.stream)?;
        let at = files.position(asked.origin, asked.offset)?;
        Ok((Arc::new(files), at))
    })
    .await
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
        form: Form::Plain,
    };
    let (chunks, taken) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if let Ok((files, at)) = find(&agent_handle, &wanted).await {
            pump(agent_handle, files, at, wanted, chunks).await;
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
    let mut last_frame = Instant::now();
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
            let piece = wanted.form.encode(piece(chunk));
            if let Some(piece) = piece
                && to.send(piece).await.is_err()
            {
                return;
            }
            last_frame = Instant::now();
            continue;
        }
        if !wanted.follow || over || files.is_removed() {
            return;
        }
        let heartbeat = wanted.form.heartbeat();
        loop {
            tokio::select! {
                more = changes.wait() => match more {
                    true => break,
                    false => return,
                },
                () = to.closed() => return,
                // Not since the last change: the task's other output changes the same directory.
                () = tokio::time::sleep_until(last_frame + HEARTBEAT), if heartbeat.is_some() => {
                    if to.send(heartbeat.clone().unwrap_or_default()).await.is_err() {
                        return;
                    }
                    last_frame = Instant::now();
                }
            }
        }
    }
}

fn piece(chunk: Chunk) -> Piece {
    Piece {
        data: chunk.data,
        file: chunk.file,
        offset: chunk.after.offset,
        event: match chunk.gap {
            None => "",
            Some(Gap::Rotated) => "file deleted",
            Some(Gap::Truncated) => "file truncated",
        },
    }
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
