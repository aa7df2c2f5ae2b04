//! A node that gives a disk away: its answers are what the agent's API says, its archive is made by
//! the agent's own code. How long it takes is up to the scenario.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drover_core::ids::{AllocId, TaskName};
use drover_io_real::dirs::AllocDirs;
use drover_io_real::migrate::{ITS_TOKEN, LIES_WITH, snapshot};
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::time::sleep;
use turmoil::net::TcpListener;

/// Where it listens.
pub(crate) const PORT: u16 = 4647;
/// The allocation that it had.
pub(crate) const PREVIOUS: AllocId = AllocId(0xa);
/// The task of that.
pub(crate) const TASK: &str = "db";
/// What the disk is given away for.
pub(crate) const TOKEN: &str = "the token of this disk";
/// How long a question is kept at most.
const WAIT: Duration = Duration::from_secs(50);
/// How many bytes are sent at once.
const PIECE: usize = 4096;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What there is to give away, and when.
#[derive(Clone)]
pub(crate) struct Giver {
    /// When the allocation ends.
    pub(crate) ends_at: Duration,
    /// The pause before each piece of the archive.
    pub(crate) pause: Duration,
    /// With whom the disk lies that it never got, and the token for that.
    pub(crate) lies_with: Option<(AllocId, &'static str)>,
    archive: Bytes,
}

/// What a task left in `local`, for comparison.
pub(crate) fn content() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

impl Giver {
    /// One whose allocation ends at a moment.
    pub(crate) fn ends_at(seconds: u64) -> Giver {
        Giver {
            ends_at: Duration::from_secs(seconds),
            pause: Duration::from_millis(50),
            lies_with: None,
            archive: archive().into(),
        }
    }

    /// Serves for as long as its host lives.
    pub(crate) async fn serve(self) -> turmoil::Result {
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let giver = self.clone();
            let service = service_fn(move |request| {
                let giver = giver.clone();
                async move { Ok::<_, Infallible>(giver.answer(request).await) }
            });
            tokio::spawn(async move {
                // Whoever asks may go away, or its host may.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        if path == format!("/v1/allocation/{PREVIOUS}") {
            return self.state(request.uri().query().unwrap_or("")).await;
        }
        let token = request.headers().get("x-nomad-token");
        if path != format!("/v1/client/allocation/{PREVIOUS}/snapshot")
            || token.is_none_or(|token| token != TOKEN)
        {
            return response(
                StatusCode::FORBIDDEN,
                Full::default().map_err(never).boxed_unsync(),
            );
        }
        if let Some((alloc, token)) = self.lies_with {
            let nothing = Full::default().map_err(never).boxed_unsync();
            let mut response = response(StatusCode::NOT_FOUND, nothing);
            for (name, text) in [
                (LIES_WITH, alloc.to_string()),
                (ITS_TOKEN, token.to_owned()),
            ] {
                let value = text.parse().expect("a value");
                response.headers_mut().insert(name, value);
            }
            return response;
        }
        let (archive, pause) = (self.archive.clone(), self.pause);
        let pieces = stream::unfold(archive, move |mut rest| async move {
            if rest.is_empty() {
                return None;
            }
            sleep(pause).await;
            let piece = rest.split_to(PIECE.min(rest.len()));
            Some((Ok(Frame::data(piece)), rest))
        });
        response(StatusCode::OK, StreamBody::new(pieces).boxed_unsync())
    }

    /// A blocking query: answered when the allocation ends, or without news after [`WAIT`].
    async fn state(&self, query: &str) -> Response<Body> {
        let left = self.ends_at.saturating_sub(now());
        if !left.is_zero() && query.contains("index=1&") {
            sleep(left.min(WAIT)).await;
        }
        let ended = now() >= self.ends_at;
        let (index, client, task) = if ended {
            ("2", "complete", "dead")
        } else {
            ("1", "running", "running")
        };
        let json = format!(
            r#"{{"ClientStatus":"{client}","TaskStates":{{"{TASK}":{{"State":"{task}"}}}}}}"#
        );
        let mut response = response(
            StatusCode::OK,
            Full::new(Bytes::from(json)).map_err(never).boxed_unsync(),
        );
        let index = hyper::header::HeaderValue::from_static(index);
        response.headers_mut().insert("x-nomad-index", index);
        response
    }
}

/// The time of the whole world, also after this host started again.
pub(crate) fn now() -> Duration {
    turmoil::sim_elapsed().expect("inside of the simulated network")
}

fn never(never: Infallible) -> io::Error {
    match never {}
}

fn response(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// What the allocation left, as a node of ours gives it away.
pub(crate) fn archive() -> Vec<u8> {
    let dir = TempDir::new().expect("a directory");
    let dirs = AllocDirs::new(Arc::new(File::open(dir.path()).expect("opened").into()));
    dirs.build_alloc(PREVIOUS).expect("an allocation");
    dirs.build_task(PREVIOUS, TASK, None).expect("a task");
    let local = dir.path().join(format!("{PREVIOUS}/{TASK}/local"));
    fs::write(local.join("table"), content()).expect("written");
    let mut archive = Vec::new();
    let tasks = [TaskName::from(TASK)];
    let whole = snapshot::write(&dirs, PREVIOUS, &[], &tasks, || Ok(()), &mut archive);
    assert!(whole.expect("an archive"));
    archive
}
