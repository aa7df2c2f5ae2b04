//! The disk of an ended allocation, for the node that takes it over; and who may have it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use drover_core::agent::View;
use drover_core::agent::requests::{HandOver, TransferComplete};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, JobKey, TaskName};
use drover_core::model::remote::RemotePrevious;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::migrate::{ITS_TOKEN, LIES_WITH, snapshot};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::Api;
use super::access::{self, need};
use super::answer::{self, Answer};
use super::dto::{Handover, TakeoverAlloc};
use super::errors::ApiError;
use super::params::{Params, uuid};
use crate::acl::Capability;

/// How many snapshots are read at a time.
pub(super) const AT_A_TIME: usize = 8;
/// How many bytes are handed on at once.
const PIECE: usize = 256 << 10;
/// How many pieces wait for the network.
const AHEAD: usize = 4;

pub(super) async fn get(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let mut reader = None;
    let of_node = api.settings.secret.allows(id, access::of_node(&headers));
    if !of_node {
        let find = move |view: View<'_>| need::of_alloc(view, id);
        let namespace = api.agent_handle.ask(find).await?;
        let namespace = namespace.unwrap_or_else(|| "*".to_owned());
        let principal = api.sender(&headers).await?;
        let reads_files = principal.may_one_of(&namespace, &[Capability::ReadFs]);
        // Where nobody needs a token, this one is needed all the same.
        access::require(principal.token().is_some() && reads_files)?;
        reader = Some(principal);
    }
    let Some(source) = api
        .agent_handle
        .ask(move |view| Source::of(view, id))
        .await?
    else {
        return Err(ApiError::not_found(format!("Unknown allocation \"{id}\"")));
    };
    if let Some(further) = source.lies_with.as_ref().filter(|_| of_node) {
        return Ok(lies_with(further));
    }
    if let Some(writer) = source.writer {
        let words =
            format!("allocation {writer}, from which it gets its disk, is not terminal yet");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, words));
    }
    let Ok(place) = api.snapshots.clone().try_acquire_owned() else {
        let words = "this node sends too many disks at the moment";
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, words));
    };
    params.caller.stream()?;
    let (pieces, mut taken) = mpsc::channel(AHEAD);
    let dirs = AllocDirs::new(api.agent_handle.alloc_root());
    let agent_handle = api.agent_handle.clone();
    let is_there = {
        let (agent_handle, runtime) = (agent_handle.clone(), Handle::current());
        move || {
            let source = runtime.block_on(agent_handle.ask(move |view| Source::of(view, id)));
            let gone = io::Error::new(io::ErrorKind::NotFound, "it is garbage-collected");
            source.ok().flatten().map(drop).ok_or(gone)
        }
    };
    // It ends when nobody takes its pieces any more.
    tokio::spawn(async move {
        let send = move || send(&dirs, &source, is_there, pieces);
        let sent = tokio::task::spawn_blocking(send).await;
        drop(place);
        // Whoever only reads takes nothing over.
        if of_node && matches!(sent, Ok(true)) {
            // Untold, the disk is only kept for longer.
            let complete = TransferComplete { alloc: id };
            let _ = agent_handle.request(complete).await;
        }
    });
    let stream = futures::stream::poll_fn(move |cx| taken.poll_recv(cx));
    let mut response = Response::new(Body::from_stream(stream));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(match reader {
        None => response,
        Some(principal) => access::bounded(&api, &principal, response),
    })
}

/// Where that lies which an allocation has, or was to get.
struct Source {
    alloc: AllocId,
    /// Those whose disks it was to take over, and did not, or not to the end.
    before: Vec<AllocId>,
    tasks: Vec<TaskName>,
    /// One of them that is not over.
    writer: Option<AllocId>,
    /// From which allocation of another node it was to get its disk, if it ended before that.
    lies_with: Option<RemotePrevious>,
}

/// What is said of a disk that lies with another allocation: who has the token for the one may have that for the other.
fn lies_with(further: &RemotePrevious) -> Response {
    let id = further.alloc;
    let words = format!("it ended before it got its disk from allocation {id}");
    let mut response = Response::new(Body::from(words));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let texts = [
        (LIES_WITH, id.to_string()),
        (ITS_TOKEN, further.token.expose().to_owned()),
    ];
    for (name, text) in texts {
        if let Ok(mut value) = HeaderValue::try_from(text) {
            value.set_sensitive(true);
            response.headers_mut().insert(name, value);
        }
    }
    response
}

impl Source {
    /// None of what is unknown, or is being garbage-collected.
    fn of(view: View<'_>, alloc: AllocId) -> Option<Source> {
        let alloc = view.alloc(alloc)?;
        let disk = view.disk_of(alloc.record());
        let ended = disk.filter(|_| alloc.record().finished);
        let lies_with = ended.and_then(|disk| disk.elsewhere_of(alloc.record().id));
        let lies_with = lies_with.filter(|it| it.of_servers).cloned();
        let before = disk.map(|disk| disk.sources_of(alloc.record().id));
        let before = before.into_iter().flatten();
        let before: Vec<_> = before.filter_map(|id| view.alloc(*id)).collect();
        let ids = before.iter().map(|one| one.record().id);
        let all = before.iter().copied().chain([alloc]);
        if all.clone().any(|one| one.record().destroying) {
            return None;
        }
        let tasks = all.flat_map(AllocRunner::tasks);
        let tasks: BTreeSet<TaskName> = tasks.map(|task| task.spec().key.task.clone()).collect();
        let mut before_it = before.iter().map(|one| one.record());
        let writer = before_it.find(|one| !one.finished);
        Some(Source {
            alloc: alloc.record().id,
            before: ids.collect(),
            tasks: tasks.into_iter().collect(),
            writer: writer.map(|one| one.id),
            lies_with,
        })
    }
}

/// Returns whether all of it was read and taken.
fn send(
    dirs: &AllocDirs,
    source: &Source,
    is_there: impl FnOnce() -> io::Result<()>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
) -> bool {
    let mut out = Pieces {
        to: pieces,
        piece: BytesMut::new(),
    };
    let (alloc, before) = (source.alloc, &source.before);
    let written = snapshot::write(dirs, alloc, before, &source.tasks, is_there, &mut out);
    written.unwrap_or_else(|error| {
        // The connection breaks off, so that nobody takes a part for the whole.
        let _ = out.to.blocking_send(Err(error));
        false
    })
}

/// Hands on what is written, in pieces.
struct Pieces {
    to: mpsc::Sender<io::Result<Bytes>>,
    piece: BytesMut,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = self.piece.split().freeze();
        let sent = self.to.blocking_send(Ok(piece));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// What another node needs in order to take over a job: which allocations its copies replace, and
/// the tokens for their disks. Those are kept for it from now on.
pub(super) async fn hand_over(api: &Api, params: &Params, job: JobKey) -> Answer {
    let slots = match api.agent_handle.request(HandOver { job }).await? {
        Reply::HandedOver(slots) => slots,
        Reply::Refused(Refusal::Conflict(why)) => {
            return Err(ApiError::new(StatusCode::CONFLICT, why));
        }
        other => return Err(ApiError::unexpected(other)),
    };
    let takeovers = slots.into_iter().map(|(slot, alloc)| TakeoverAlloc {
        id: alloc.to_string(),
        group: slot.group.to_string(),
        index: slot.index,
        token: api.settings.secret.token(alloc),
        address: String::new(),
    });
    let allocs = takeovers.collect();
    answer::json(params, &Handover { allocs })
}
