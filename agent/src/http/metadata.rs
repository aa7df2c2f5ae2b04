//! The operator's own keys of this node: as the configuration gives them, and as they are applied since.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use drover_core::agent::View;
use drover_core::agent::requests::ApplyNodeMeta;
use drover_core::effect::Reply;
use drover_core::text::quote;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body};

/// The longest key, in bytes.
const MAX_KEY: usize = 256;
/// The longest value, in bytes.
const MAX_VALUE: usize = 16 * 1024;

/// The body of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    meta: BTreeMap<String, Option<String>>,
    #[serde(rename = "NodeID")]
    node_id: String,
}

pub(super) async fn read(State(api): State<Api>, params: Params) -> Answer {
    check_node(&api, params.get("node_id").unwrap_or_default()).await?;
    shown(&api, &params).await
}

/// A key with a value gets that; one without is not there any more, also if the configuration names it.
pub(super) async fn apply(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let asked: Asked = body::decode_with_nulls(request).await?;
    if asked.meta.is_empty() {
        return Err(ApiError::bad("missing required Meta object"));
    }
    for (key, value) in &asked.meta {
        check(key, value.as_deref().unwrap_or_default())?;
    }
    let id = match asked.node_id.as_str() {
        "" => params.get("node_id").unwrap_or_default().to_owned(),
        id => id.to_owned(),
    };
    check_node(&api, &id).await?;
    match api
        .agent_handle
        .request(ApplyNodeMeta { meta: asked.meta })
        .await?
    {
        Reply::Done { .. } => shown(&api, &params).await,
        other => Err(ApiError::unexpected(other)),
    }
}

fn check(key: &str, value: &str) -> Result<(), ApiError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    if key.is_empty() || key.len() > MAX_KEY || !key.chars().all(fits) {
        return Err(ApiError::bad(format!(
            "{} is no key of metadata: it has 1 to {MAX_KEY} letters, digits, and _ - . /",
            quote(key)
        )));
    }
    if value.len() > MAX_VALUE {
        return Err(ApiError::bad(format!(
            "the value of {} is larger than {MAX_VALUE} bytes",
            quote(key)
        )));
    }
    Ok(())
}

/// Whether it is this node that is asked; so it is where none is named.
async fn check_node(api: &Api, asked: &str) -> Result<(), ApiError> {
    let own = api.agent_handle.ask(|view| view.node().id.to_string());
    match asked.is_empty() || asked == own.await? {
        true => Ok(()),
        false => Err(ApiError::not_found(format!("Unknown node {asked}"))),
    }
}

async fn shown(api: &Api, params: &Params) -> Answer {
    answer::json(params, &api.agent_handle.ask(all).await?)
}

fn all(view: View<'_>) -> Value {
    json!({
        "Meta": view.node().meta,
        "Dynamic": view.node_record().meta,
        "Static": view.configured_meta(),
    })
}
