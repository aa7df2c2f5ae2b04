//! Dispatching parameterized jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Request;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::agent::requests::DispatchJob;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::model::dispatch::{Dispatch, MAX_META, MAX_PAYLOAD, MAX_PREFIX, MAX_TOKEN};
use drover_io_real::facts;
use serde::Deserialize;

use super::answer::{self, Answer};
use super::dto::Dispatched;
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body};

/// The body of a dispatch. The job's id stands in the path.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    payload: String,
    meta: BTreeMap<String, String>,
    id_prefix_template: String,
    priority: i64,
}

pub(super) async fn dispatch(api: &Api, params: &Params, job: JobKey, request: Request) -> Answer {
    let asked: Asked = body::decode_or_default(request).await?;
    let token = params.non_empty("idempotency_token").unwrap_or_default();
    let dispatch = Arc::new(bounded(asked, token)?);
    match api
        .agent_handle
        .request(DispatchJob { job, dispatch })
        .await?
    {
        Reply::Dispatched {
            job,
            eval,
            index,
            job_index,
        } => {
            let answer = Dispatched {
                dispatched_job_id: job.id.to_string(),
                eval_create_index: eval.map_or(0, |_| index),
                eval_id: eval.map(|id| id.to_string()).unwrap_or_default(),
                job_create_index: job_index,
                index,
                ..Dispatched::default()
            };
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// What is asked, within the bounds that the core relies on.
fn bounded(asked: Asked, token: &str) -> Result<Dispatch, ApiError> {
    check_payload(&asked.payload)?;
    let texts = asked
        .meta
        .iter()
        .map(|(key, value)| key.len() + value.len());
    if texts.sum::<usize>() > MAX_META {
        return Err(ApiError::failed(format!(
            "the meta is larger than {MAX_META} bytes"
        )));
    }
    let has_nul = |(key, value): (&String, &String)| key.contains('\0') || value.contains('\0');
    if asked.meta.iter().any(has_nul) {
        return Err(ApiError::failed("the meta must not contain NUL"));
    }
    let prefix = asked.id_prefix_template;
    if prefix.len() > MAX_PREFIX || prefix.chars().any(char::is_whitespace) {
        return Err(ApiError::failed(format!(
            "the prefix must not contain spaces or be longer than {MAX_PREFIX} bytes"
        )));
    }
    if token.len() > MAX_TOKEN {
        return Err(ApiError::failed(format!(
            "the idempotency token is longer than {MAX_TOKEN} bytes"
        )));
    }
    Ok(Dispatch {
        payload: asked.payload.into(),
        meta: asked.meta,
        prefix,
        priority: Some(asked.priority).filter(|priority| *priority != 0),
        token: token.to_owned(),
        tag: u32::try_from(facts::random() & u128::from(u32::MAX)).unwrap_or(0),
    })
}

/// Whether a payload is base64 of no more than it may be.
///
/// # Errors
/// Why not.
pub(super) fn check_payload(payload: &str) -> Result<(), ApiError> {
    let bytes = BASE64_STANDARD.decode(payload);
    let bytes =
        bytes.map_err(|error| ApiError::bad(format!("the Payload is no base64: {error}")))?;
    if bytes.len() > MAX_PAYLOAD {
        return Err(ApiError::failed(format!(
            "the payload has {} bytes, and must not have more than {MAX_PAYLOAD}",
            bytes.len()
        )));
    }
    Ok(())
}
