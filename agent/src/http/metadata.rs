//! The operator's own keys of this node: as the configuration gives them, and as they are applied since.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use drover_core::agent::View;
use drover_core::agent::requests::ApplyNodeMeta;
use drover_core::text::quote;
use serde::{Deserialize, Serialize};

use super::answer::{self, Answer};
use super::client::carry_out;
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body};
use crate::agent_handle::AgentHandle;

/// The longest key, in bytes.
const MAX_KEY: usize = 256;
/// The longest value, in bytes.
const MAX_VALUE: usize = 16 * 1024;

/// The keys of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Metadata {
    /// As they are.
    pub(crate) meta: BTreeMap<String, String>,
    /// As they were applied; none for a key that is not to be there.
    pub(crate) dynamic: BTreeMap<String, Option<String>>,
    /// As the configuration gives them.
    #[serde(rename = "Static")]
    pub(crate) configured: BTreeMap<String, String>,
}

/// The body of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    meta: BTreeMap<String, Option<String>>,
    #[serde(rename = "NodeID")]
    node_id: String,
}

pub(super) async fn read(State(api): State<Api>, params: Params) -> Answer {
    let node = params.get("node_id").unwrap_or_default();
    answer::json(&params, &of_node(&api.agent_handle, node).await?)
}

pub(super) async fn apply(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let asked: Asked = body::decode_with_nulls(request).await?;
    let node = match asked.node_id.as_str() {
        "" => params.get("node_id").unwrap_or_default(),
        id => id,
    };
    let applied = change(&api.agent_handle, node, asked.meta).await?;
    answer::json(&params, &applied)
}

/// The keys of this node, which is the one that is asked where none is named.
///
/// # Errors
/// Another node is asked.
pub(crate) async fn of_node(agent_handle: &AgentHandle, node: &str) -> Result<Metadata, ApiError> {
    check_node(agent_handle, node).await?;
    Ok(agent_handle.ask(all).await?)
}

/// A key with a value gets that; one without is not there any more, also if the configuration names it.
///
/// # Errors
/// Another node is asked, or these are no keys and values.
pub(crate) async fn change(
    agent_handle: &AgentHandle,
    node: &str,
    meta: BTreeMap<String, Option<String>>,
) -> Result<Metadata, ApiError> {
    if meta.is_empty() {
        return Err(ApiError::bad("missing required Meta object"));
    }
    for (key, value) in &meta {
        check(key, value.as_deref().unwrap_or_default())?;
    }
    check_node(agent_handle, node).await?;
    carry_out(agent_handle, ApplyNodeMeta { meta }).await?;
    Ok(agent_handle.ask(all).await?)
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
async fn check_node(agent_handle: &AgentHandle, asked: &str) -> Result<(), ApiError> {
    let own = agent_handle.ask(|view| view.node().id.to_string());
    match asked.is_empty() || asked == own.await? {
        true => Ok(()),
        false => Err(ApiError::not_found(format!("Unknown node {asked}"))),
    }
}

fn all(view: View<'_>) -> Metadata {
    Metadata {
        meta: view.node().meta.clone(),
        dynamic: view.node_record().meta.clone(),
        configured: view.configured_meta().clone(),
    }
}
