//! The keys with which variables are encrypted: which there are, and how they are rotated. Never the keys
//! themselves.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use drover_io_real::keyring::{KeyFacts, KeyId, KeyringError};
use drover_io_real::store::StoreKeys;
use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::Api;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;

/// A key, as Nomad shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyDto {
    #[serde(rename = "KeyID")]
    key_id: String,
    algorithm: &'static str,
    create_time: i64,
    create_index: u64,
    modify_index: u64,
    state: &'static str,
    publish_time: i64,
}

impl From<KeyFacts> for KeyDto {
    fn from(key: KeyFacts) -> KeyDto {
        KeyDto {
            key_id: key.id.to_string(),
            algorithm: "aes256-gcm",
            create_time: key.created,
            create_index: 0,
            modify_index: 0,
            state: if key.active { "active" } else { "inactive" },
            publish_time: 0,
        }
    }
}

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let keys = keys_of(&api)?.list();
    let keys: Vec<KeyDto> = keys.into_iter().map(KeyDto::from).collect();
    answer::json(&params, &keys)
}

pub(super) async fn rotate(State(api): State<Api>, params: Params) -> Answer {
    if params.non_empty("publish_time").is_some() {
        return Err(ApiError::bad(
            "a key is used as soon as it is made: publish_time is not supported",
        ));
    }
    let (done, result) = oneshot::channel();
    // Whoever asked may be gone.
    keys_of(&api)?.rotate(params.flag("full"), |made| drop(done.send(made)));
    let made = awaited(result).await?;
    answer::json(&params, &json!({ "Key": KeyDto::from(made), "Index": 0 }))
}

pub(super) async fn remove(State(api): State<Api>, Path(key): Path<String>) -> Answer {
    let key: KeyId = key
        .parse()
        .map_err(|error| ApiError::bad(format!("the key's id is invalid: {error}")))?;
    let (done, result) = oneshot::channel();
    keys_of(&api)?.remove(key, |removed| drop(done.send(removed)));
    awaited(result).await?;
    Ok(Response::new(Body::empty()))
}

pub(super) fn keys_of(api: &Api) -> Result<&StoreKeys, ApiError> {
    let keys = api.settings.keys.as_ref();
    keys.ok_or_else(|| ApiError::failed("this agent has no keyring"))
}

async fn awaited<T>(result: oneshot::Receiver<Result<T, KeyringError>>) -> Result<T, ApiError> {
    match result.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(refused(&error)),
        Err(_) => Err(ApiError::failed("the agent is ending")),
    }
}

fn refused(error: &KeyringError) -> ApiError {
    let words = error.to_string();
    match error {
        KeyringError::Unknown(_) => ApiError::not_found(words),
        KeyringError::Active(_) | KeyringError::Used(..) | KeyringError::Full => {
            ApiError::bad(words)
        }
        KeyringError::Io(..)
        | KeyringError::Root(_)
        | KeyringError::Locked(_)
        | KeyringError::Damaged(_) => ApiError::failed(words),
    }
}
