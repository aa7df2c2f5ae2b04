//! What the servers of a cluster say of themselves, to whoever asks one of its nodes.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::{HeaderMap, StatusCode};
use drover_core::model::secret::Secret;
use futures::future::BoxFuture;
use serde::Serialize;

use super::Api;
use super::access::token_for_servers;
use super::cluster::of_servers;
use super::errors::ApiError;
use super::params::Params;

/// Who asks the servers of a cluster, and where.
#[derive(Clone, Debug, Default)]
pub struct StatusQuestion {
    /// The region whose servers are asked; the node's own if none.
    pub region: Option<String>,
    /// The token of who asks; empty for none.
    pub token: Secret,
    /// Whether a server that does not lead may answer.
    pub stale: bool,
}

/// Why servers do not say who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusError {
    /// Who asks may not know it, in words.
    Denied(String),
    /// They cannot, or nobody reaches them, and why.
    Failed(String),
}

impl From<StatusError> for ApiError {
    fn from(why: StatusError) -> ApiError {
        match why {
            StatusError::Denied(words) => ApiError::new(StatusCode::FORBIDDEN, words),
            StatusError::Failed(words) => ApiError::failed(words),
        }
    }
}

/// Asks the servers of a cluster who they are.
pub trait StatusServers: fmt::Debug + Send + Sync {
    /// Who leads: its address for nodes.
    fn leader(&self, question: StatusQuestion) -> BoxFuture<'_, Result<String, StatusError>>;

    /// Who votes: their addresses for nodes.
    fn peers(&self, question: StatusQuestion) -> BoxFuture<'_, Result<Vec<String>, StatusError>>;

    /// Who is there.
    fn members(&self, question: StatusQuestion) -> BoxFuture<'_, Result<Members, StatusError>>;
}

/// The servers that a server knows of, and who it is.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Members {
    /// Its name.
    pub server_name: String,
    /// Its region.
    pub server_region: String,
    /// Its datacenter.
    #[serde(rename = "ServerDC")]
    pub server_dc: String,
    /// All of them.
    pub members: Vec<Member>,
}

/// A server, as servers know each other.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Member {
    /// Its name, with its region.
    pub name: String,
    /// Where it is; null if it is nowhere.
    pub addr: Option<String>,
    /// Its port for other servers.
    pub port: u16,
    /// What it is said to be: its ports, role and versions.
    pub tags: BTreeMap<String, String>,
    /// Whether it is there.
    pub status: String,
    /// The versions of the protocol of members that it has.
    pub protocol_min: u8,
    /// The highest of them.
    pub protocol_max: u8,
    /// The one that it speaks.
    pub protocol_cur: u8,
    /// The versions of the protocol on top of that.
    pub delegate_min: u8,
    /// The highest of them.
    pub delegate_max: u8,
    /// The one that it speaks.
    pub delegate_cur: u8,
}

/// Who is asked, as this request asks it. `known` are the servers that the node has.
///
/// # Errors
/// The agent has no way to them.
pub(super) async fn ask<'a>(
    api: &'a Api,
    params: &Params,
    headers: &HeaderMap,
    known: &[String],
) -> Result<(&'a dyn StatusServers, StatusQuestion), ApiError> {
    let servers = api.settings.status_servers.as_deref();
    let servers = servers.ok_or_else(|| of_servers(known))?;
    let sender = match params.principal.is_unlimited() {
        // Who needs no token here may still show one, be it of this node alone: servers are shown none of which nobody
        // says whose it is.
        true => api.sender(headers).await.unwrap_or_default(),
        false => params.principal.clone(),
    };
    let question = StatusQuestion {
        region: params.non_empty("region").map(str::to_owned),
        token: token_for_servers(&sender, headers),
        stale: matches!(params.get("stale"), Some("" | "true")),
    };
    Ok((servers, question))
}
