//! Who is who: tokens and policies as the core knows them, and the rights that they mean.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use drover_core::agent::View;
use drover_core::model::acl::{SecretDigest, TokenType};
use drover_core::store::acl::AclTokenRecord;
use drover_core::time::Timestamp;

use super::principal::{Grant, Origin, Principal, Version};
use super::servers::{Servers, TokenAnswer, unknown};
use super::token::Secret;
use crate::acl::{Policy, Rights, ready};
use crate::agent_handle::AgentHandle;
use crate::http::errors::ApiError;
use crate::times;

/// The policy of those who have no token.
const ANONYMOUS: &str = "anonymous";
/// How many combinations of policies are kept with what they mean.
const MOST_KEPT: usize = 64;

/// Rights by the policies that they were made of.
type Kept = BTreeMap<Vec<Version>, Arc<Rights>>;

/// Who is who.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Whether those who come over the network need tokens.
    enabled: bool,
    /// Who knows the tokens of the cluster, if this is a node of one.
    servers: Option<Servers>,
    kept: Mutex<Kept>,
}

/// Who is who, for what servers ask of this node for their users: it answers them before it has an API, which knows
/// that.
#[derive(Clone, Debug, Default)]
pub struct ForServers(Arc<OnceLock<Arc<Directory>>>);

impl ForServers {
    /// From here on it is known.
    pub(in crate::http) fn set(&self, directory: Arc<Directory>) {
        // The first API is the only one.
        let _ = self.0.set(directory);
    }

    /// Who has the token that servers pass on.
    ///
    /// # Errors
    /// It is no token, or one that expired; nobody says whose it is; or the agent is just starting, or ends.
    pub(crate) async fn sender(
        &self,
        agent_handle: &AgentHandle,
        secret: &str,
    ) -> Result<Principal, ApiError> {
        let starting = || {
            let words = "the agent of this node is just starting: try again";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, words)
        };
        let directory = self.0.get().ok_or_else(starting)?;
        directory.identify(agent_handle, Secret::of(secret)).await
    }
}

/// What is known of a secret.
struct Found {
    token: Option<Arc<AclTokenRecord>>,
    policies: Vec<Version>,
    /// Whether servers said it.
    of_servers: bool,
}

impl Directory {
    /// For an agent that needs tokens, or does not, and that is a node of a cluster, or is not.
    pub(crate) fn new(enabled: bool, servers: Option<Servers>) -> Directory {
        Directory {
            enabled,
            servers,
            kept: Mutex::default(),
        }
    }

    /// Finds who has a secret.
    ///
    /// # Errors
    /// It is no token, or one that expired; or the agent ends.
    pub(super) async fn identify(
        &self,
        agent_handle: &AgentHandle,
        secret: Secret,
    ) -> Result<Principal, ApiError> {
        if !self.enabled {
            return Ok(Principal::unlimited());
        }
        let found = self.find(agent_handle, &secret).await?;
        let token = found.token.as_ref();
        let is_management =
            token.is_some_and(|record| record.token.token_type == TokenType::Management);
        let rights = match is_management {
            true => Arc::new(Rights::all()),
            false => self.rights(&found.policies),
        };
        Ok(Principal::new(rights, grant(secret, found)))
    }

    /// Whether somebody still is who they were, with the same rights.
    ///
    /// # Errors
    /// The agent ends.
    pub(super) async fn still_knows(
        &self,
        agent_handle: &AgentHandle,
        principal: &Principal,
    ) -> Result<bool, ApiError> {
        let Origin::Known(known) = principal.origin() else {
            return Ok(true);
        };
        let secret = match &known.token {
            Some((given, _)) => Secret::Token(given.clone()),
            None => Secret::None,
        };
        // Servers know nothing of what this node gave.
        let found = match known.of_servers {
            true => self.find(agent_handle, &secret).await,
            false => self.own(agent_handle, &secret).await?.ok_or_else(unknown),
        };
        match found {
            Ok(found) => Ok(known.is_same(&grant(secret, found))),
            Err(error) if error.status == StatusCode::FORBIDDEN => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// For how long nobody has to ask again where nothing of this node changes.
    pub(super) fn lasts(&self) -> Option<Duration> {
        self.servers.as_ref().map(Servers::lasts)
    }

    /// A token of the node itself, or of its cluster.
    async fn find(&self, agent_handle: &AgentHandle, secret: &Secret) -> Result<Found, ApiError> {
        let own = self.own(agent_handle, secret).await?;
        match (own, secret, &self.servers) {
            (Some(found), _, _) => Ok(found),
            (None, Secret::Token(given), Some(servers)) => {
                Ok(Found::of_servers(&*servers.find(given).await?))
            }
            (None, Secret::Token(_) | Secret::None | Secret::Invalid, _) => Err(unknown()),
        }
    }

    /// What the core knows.
    async fn own(
        &self,
        agent_handle: &AgentHandle,
        secret: &Secret,
    ) -> Result<Option<Found>, ApiError> {
        let digest = match secret {
            Secret::Invalid => return Ok(None),
            Secret::None => None,
            Secret::Token(given) => Some(given.digest),
        };
        let now = times::now();
        let found = agent_handle.ask(move |view| found(view, digest, now));
        Ok(found.await?)
    }

    fn rights(&self, policies: &[Version]) -> Arc<Rights> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rights) = kept.get(policies) {
            return rights.clone();
        }
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        let read: Option<Vec<Policy>> = policies.iter().map(read).collect();
        // Of a policy that cannot be read nobody knows what it forbids.
        let rights = read.map_or_else(Rights::none, |read| Rights::of(&read));
        let rights = Arc::new(rights);
        kept.insert(policies.to_vec(), rights.clone());
        rights
    }
}

fn grant(secret: Secret, found: Found) -> Grant {
    let given = match secret {
        Secret::Token(given) => Some(given),
        Secret::None | Secret::Invalid => None,
    };
    Grant {
        token: given.zip(found.token),
        policies: found.policies,
        of_servers: found.of_servers,
    }
}

impl Found {
    fn of_servers(answer: &TokenAnswer) -> Found {
        let policies = answer.policies.iter().map(|policy| Version {
            name: policy.name.clone(),
            index: policy.index,
            rules: policy.rules.clone(),
        });
        Found {
            token: Some(answer.record.clone()),
            policies: policies.collect(),
            of_servers: true,
        }
    }
}

/// What a policy says, unless it cannot be read, since another version of the agent took it in.
fn read(policy: &Version) -> Option<Policy> {
    let read = Policy::parse(&policy.rules);
    if let Err(why) = &read {
        tracing::warn!(policy = %policy.name, %why, "a policy cannot be read: whoever has it may do nothing");
    }
    read.ok()
}

/// What the core knows of a secret, or of those who have none; none if it is that of no token.
fn found(view: View<'_>, secret: Option<SecretDigest>, now: Timestamp) -> Option<Found> {
    let token = match secret {
        None => None,
        Some(digest) => {
            let record = view.acl_token_of(&digest)?;
            if record.token.is_expired(now) {
                return None;
            }
            Some(record.clone())
        }
    };
    let policies = match &token {
        None => policy_of(view, ANONYMOUS).into_iter().collect(),
        Some(record) => {
            let names = record.token.policies.iter();
            names.filter_map(|name| policy_of(view, name)).collect()
        }
    };
    Some(Found {
        token,
        policies,
        of_servers: false,
    })
}

/// The policy of a name: somebody's, or one that is ready from the start.
fn policy_of(view: View<'_>, name: &str) -> Option<Version> {
    if let Some(record) = view.acl_policies().get(name) {
        return Some(Version {
            name: record.policy.name.clone(),
            index: record.modify_index,
            rules: record.policy.rules.clone(),
        });
    }
    let ready = ready::named(name)?;
    Some(Version {
        name: ready.name.into(),
        index: 0,
        rules: ready.rules.into(),
    })
}
