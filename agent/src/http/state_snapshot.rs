//! The whole state as one file: to save it, and to put one in its place.

use std::path::PathBuf;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::agent::View;
use drover_io_real::store::SnapshotError;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body, keyring};

/// Bytes of a snapshot that a running agent takes: bodies of requests share so much.
const MAX_UPLOAD: usize = 32 * 1024 * 1024;

/// Makes one, of the last commit.
pub(super) async fn save(State(api): State<Api>) -> Answer {
    let keys = keyring::keys_of(&api)?;
    let Ok(_place) = api.snapshots.clone().try_acquire_owned() else {
        let words = "this agent sends too much at the moment";
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, words));
    };
    let (done, result) = oneshot::channel();
    // Whoever asked may be gone.
    keys.snapshot(|made| drop(done.send(made)));
    let bytes = match result.await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(why)) => return Err(ApiError::failed(format!("no snapshot is made: {why}"))),
        Err(_) => return Err(ApiError::failed("the agent is ending")),
    };
    let digest = BASE64_STANDARD.encode(Sha256::digest(&bytes));
    let mut response = Response::new(Body::from(bytes));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if let Ok(digest) = HeaderValue::try_from(format!("sha-256={digest}")) {
        response.headers_mut().insert("digest", digest);
    }
    Ok(response)
}

/// Checks one and keeps it for the next agent, which makes its state of it.
pub(super) async fn restore(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let keys = keyring::keys_of(&api)?.clone();
    let bytes = body::bytes(request, MAX_UPLOAD).await?;
    let force = params.flag("force");
    if !force && !api.agent_handle.ask(is_empty).await? {
        return Err(refused(&SnapshotError::NotEmpty));
    }
    let data_dir = PathBuf::from(&api.settings.data_dir);
    let restored = tokio::task::spawn_blocking(move || keys.restore(&data_dir, &bytes)).await;
    let restored = restored.map_err(|_| ApiError::failed("the snapshot could not be checked"))?;
    let about = restored.map_err(|error| refused(&error))?;
    let value = json!({
        "Staged": true,
        "CreateTime": about.created,
        "Commit": about.commit,
        "Records": about.records,
    });
    answer::json(&params, &value)
}

/// Whether there is nothing that anybody would miss.
fn is_empty(view: View<'_>) -> bool {
    view.jobs().next().is_none() && view.allocs().next().is_none() && view.variables().is_empty()
}

fn refused(error: &SnapshotError) -> ApiError {
    let words = format!("the snapshot is not restored: {error}");
    match error {
        SnapshotError::Foreign
        | SnapshotError::Newer(_)
        | SnapshotError::Damaged(_)
        | SnapshotError::TooLarge
        | SnapshotError::Locked(_)
        | SnapshotError::NoRoot => ApiError::bad(words),
        SnapshotError::NotEmpty => ApiError::new(StatusCode::CONFLICT, words),
        SnapshotError::Keyring(_) | SnapshotError::Io(_) => ApiError::failed(words),
    }
}
