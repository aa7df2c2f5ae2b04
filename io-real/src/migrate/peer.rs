//! Another node's HTTP API, as far as it is asked. What it says is bounded in size and time.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use drover_core::ids::AllocId;
use drover_core::model::remote::Remote;
use drover_core::model::secret::Secret;
use drover_core::op::Failure;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::connect::Connect;
use crate::http_client::{authority_of, send, whole, whole_reason};
use crate::transfers::{Amount, Coming};

/// How long the other node may keep a question until something changed.
const WAIT: &str = "50s";
/// How long an answer may take: a little longer.
const ANSWER: Duration = Duration::from_secs(70);
/// How long a stream may stand still.
const STALL: Duration = Duration::from_secs(60);
/// How long a stream is waited for before it is asked whether it comes fast enough.
const PERIOD: Duration = Duration::from_secs(10 * 60);
/// The least bytes that have to come in such a period. Without this bound whoever sends a byte a minute
/// would keep an allocation waiting for ever.
const LEAST: u64 = 1 << 20;
/// The most bytes of an allocation: its whole job is in it.
const MAX_ANSWER: usize = 16 << 20;
/// The longest reason that is passed on.
const MAX_WHY: usize = 300;
/// The longest token that a node may name for another one: it is remembered.
const MAX_TOKEN: usize = 300;
/// How long the words of a refusal are waited for.
const WORDS: Duration = Duration::from_secs(5);
/// What a node says to whoever shows no token, where users need one.
const DENIED: &str = "Permission denied";

/// In which header a node that was to get a disk itself says with which allocation it lies.
pub const LIES_WITH: &str = "x-drover-disk-of";
/// In which header it says the token for that.
pub const ITS_TOKEN: &str = "x-drover-disk-token";

/// A node.
pub(super) struct Peer<'a> {
    /// `http`, or `https` where `network` speaks TLS.
    scheme: &'static str,
    /// Its host and port.
    authority: String,
    network: &'a dyn Connect,
}

/// What a node answers about a disk.
pub(super) enum SnapshotAnswer<T> {
    Yes(T),
    /// It does not know what we speak of, or we may not ask.
    No,
    /// It ended before it got its disk: that lies with this one still, which this token opens.
    Further(AllocId, Secret),
}

/// The body of a snapshot.
pub(super) struct Stream(Incoming);

#[derive(Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[derive(Default)]
struct Alloc {
    client_status: String,
    task_states: Option<BTreeMap<String, Option<TaskState>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct TaskState {
    state: String,
}

impl Alloc {
    /// Whether nothing of it runs. An allocation may have failed while a task of it still ends.
    fn is_over(&self) -> bool {
        let over = matches!(
            self.client_status.as_str(),
            "complete" | "failed" | "lost" | "unknown"
        );
        let mut states = self.task_states.iter().flatten();
        let gone = matches!(self.client_status.as_str(), "lost" | "unknown");
        let running = states.any(|(_, task)| task.as_ref().is_some_and(|t| t.state == "running"));
        over && (gone || !running)
    }
}

impl<'a> Peer<'a> {
    /// The node at `SCHEME://HOST:PORT`, reached over `network`.
    ///
    /// # Errors
    /// That is no such address.
    pub(super) fn of(
        scheme: &'static str,
        address: &str,
        network: &'a dyn Connect,
    ) -> Result<Peer<'a>, Failure> {
        let authority = authority_of(scheme, address).ok_or_else(|| {
            Failure::fatal(format!("{address:?} is no address {scheme}://HOST:PORT"))
        })?;
        Ok(Peer {
            scheme,
            authority,
            network,
        })
    }

    /// Whether an allocation still runs.
    ///
    /// # Errors
    /// There is no answer, or none that makes sense.
    pub(super) async fn ask(
        &self,
        alloc: AllocId,
        token: &str,
        index: u64,
    ) -> Result<Remote, Failure> {
        let path = format!("/v1/allocation/{alloc}?index={index}&wait={WAIT}");
        let SnapshotAnswer::Yes(response) = self.get(&path, token).await? else {
            return Ok(Remote::Unknown);
        };
        let header = response.headers().get("x-nomad-index");
        let index = header.and_then(|value| value.to_str().ok()?.parse().ok());
        let body = timeout(ANSWER, whole(response.into_body(), MAX_ANSWER))
            .await
            .map_err(|_| self.trouble("its answer took too long"))?
            .map_err(|error| {
                self.trouble(format!("the connection broke during its answer: {error}"))
            })?;
        let reported: Alloc = serde_json::from_slice(&body)
            .map_err(|error| self.trouble(format!("its answer cannot be decoded: {error}")))?;
        Ok(if reported.is_over() {
            Remote::Ended
        } else {
            let index = index.unwrap_or(0);
            Remote::Runs { index }
        })
    }

    /// Opens what an allocation left.
    ///
    /// # Errors
    /// There is no answer, or another one than expected.
    pub(super) async fn snapshot(
        &self,
        alloc: AllocId,
        token: &str,
    ) -> Result<SnapshotAnswer<Stream>, Failure> {
        let path = format!("/v1/client/allocation/{alloc}/snapshot");
        Ok(match self.get(&path, token).await? {
            SnapshotAnswer::Yes(response) => SnapshotAnswer::Yes(Stream(response.into_body())),
            SnapshotAnswer::No => SnapshotAnswer::No,
            SnapshotAnswer::Further(alloc, token) => SnapshotAnswer::Further(alloc, token),
        })
    }

    /// Whether a node is there that has an allocation, as far as it says so without a token.
    ///
    /// # Errors
    /// There is no answer, or it says that it is not.
    pub(super) async fn has(&self, alloc: AllocId) -> Result<(), Failure> {
        let response = self.send(&format!("/v1/allocation/{alloc}"), "").await?;
        match response.status() {
            StatusCode::OK => Ok(()),
            StatusCode::NOT_FOUND => {
                let id = alloc.short();
                let why =
                    format!("it does not know allocation {id}: is that node at this address?");
                Err(self.trouble(why))
            }
            status => match words(response).await {
                words if status == StatusCode::FORBIDDEN && words.trim() == DENIED => Ok(()),
                words => Err(self.refused(status, &words)),
            },
        }
    }

    async fn get(
        &self,
        path: &str,
        token: &str,
    ) -> Result<SnapshotAnswer<Response<Incoming>>, Failure> {
        let response = self.send(path, token).await?;
        match response.status() {
            StatusCode::OK => Ok(SnapshotAnswer::Yes(response)),
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Ok(further(response.headers())),
            // That is how a port of TLS answers who speaks plain HTTP.
            status @ StatusCode::BAD_REQUEST => Err(self.refused(status, &words(response).await)),
            status => Err(self.refused(status, "")),
        }
    }

    async fn send(&self, path: &str, token: &str) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::get(path);
        if !token.is_empty() {
            request = request.header("X-Nomad-Token", token);
        }
        let answer = send(self.network, &self.authority, request, Bytes::new());
        timeout(ANSWER, answer)
            .await
            .map_err(|_| self.trouble("it does not answer in time"))?
            .map_err(|error| self.trouble(error))
    }

    fn refused(&self, status: StatusCode, words: &str) -> Failure {
        self.trouble(match words {
            "" => format!("it answered {status}"),
            words => format!("it answered {status}: {words}"),
        })
    }

    /// Why it does not work this time.
    fn trouble(&self, why: impl ToString) -> Failure {
        let why: String = why.to_string().chars().take(MAX_WHY).collect();
        let Peer {
            scheme, authority, ..
        } = self;
        Failure::recoverable(format!("{scheme}://{authority}: {why}"))
    }
}

/// What a refusal says, if that can be read.
async fn words(response: Response<Incoming>) -> String {
    let read = timeout(WORDS, whole(response.into_body(), MAX_WHY)).await;
    let bytes = read.ok().and_then(Result::ok).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.chars().filter(|it| !it.is_control()).collect()
}

impl Stream {
    /// Hands on everything that comes, and in the end why no more does, if it should.
    pub(super) async fn pour(
        &mut self,
        into: mpsc::Sender<io::Result<Bytes>>,
        coming: &mut Coming,
    ) {
        let mut amount = Amount::default();
        let mut pace = Pace::default();
        loop {
            let asked = Instant::now();
            let mut piece = self.next().await;
            if let Ok(Some(bytes)) = &piece {
                let many = u64::try_from(bytes.len()).unwrap_or(0);
                amount.bytes = amount.bytes.saturating_add(many);
                coming.is(amount);
                if !pace.keeps_up(asked.elapsed(), many) {
                    let why = format!("the stream is slower than {LEAST} bytes in ten minutes");
                    piece = Err(broke_off(why));
                }
            }
            let last = piece.is_err();
            let Some(piece) = piece.transpose() else {
                return;
            };
            if into.send(piece).await.is_err() || last {
                return;
            }
        }
    }

    /// The next piece; none at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match timeout(STALL, self.0.frame()).await {
            Ok(None) => Ok(None),
            // What else comes than data says nothing of the disk.
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Ok(Some(Err(error))) => {
                let why = whole_reason(&error);
                Err(broke_off(format!("the stream broke off: {why}")))
            }
            Err(_) => Err(broke_off("the stream stands still".to_owned())),
        }
    }
}

/// What a node says of a disk that it does not have: nothing, or with whom it lies.
fn further<T>(headers: &HeaderMap) -> SnapshotAnswer<T> {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
    let text = |name| text(name).filter(|it| it.len() <= MAX_TOKEN);
    let alloc = text(LIES_WITH).and_then(|it| it.parse().ok());
    match (alloc, text(ITS_TOKEN)) {
        (Some(alloc), Some(token)) => SnapshotAnswer::Further(alloc, token.into()),
        (None, _) | (_, None) => SnapshotAnswer::No,
    }
}

fn broke_off(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, why)
}

/// How fast a stream comes. Only the time counts in which it is waited for: not that of a slow disk here.
#[derive(Default)]
struct Pace {
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// Counts what came. False if a period is over in which too little did.
    fn keeps_up(&mut self, waited: Duration, bytes: u64) -> bool {
        self.waited += waited;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.waited < PERIOD {
            return true;
        }
        std::mem::take(self).bytes >= LEAST
    }
}
