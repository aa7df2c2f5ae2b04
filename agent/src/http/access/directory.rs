//! Who is who: tokens and policies as the core knows them, and the rights that they mean.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use drover_core::agent::View;
use drover_core::model::acl::TokenType;
use drover_core::store::acl::AclTokenRecord;
use drover_core::time::Timestamp;

use super::principal::{Grant, Origin, Principal};
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
type Kept = BTreeMap<Vec<(Arc<str>, u64)>, Arc<Rights>>;

/// Who is who.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Whether those who come over the network need tokens.
    enabled: bool,
    kept: Mutex<Kept>,
}

/// What the core knows of a secret.
struct Found {
    token: Option<Arc<AclTokenRecord>>,
    policies: Vec<Text>,
}

/// The text of a policy, and when it was last changed; 0 for one that is ready from the start.
struct Text {
    name: Arc<str>,
    index: u64,
    rules: Arc<str>,
}

impl Directory {
    /// For an agent that needs tokens, or does not.
    pub(crate) fn new(enabled: bool) -> Directory {
        Directory {
            enabled,
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
        let found = self.find(agent_handle, secret).await?;
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
            Some((digest, _)) => Secret::Digest(*digest),
            None => Secret::None,
        };
        match self.find(agent_handle, secret).await {
            Ok(found) => Ok(known.is_same(&grant(secret, found))),
            Err(error) if error.status == StatusCode::FORBIDDEN => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn find(&self, agent_handle: &AgentHandle, secret: Secret) -> Result<Found, ApiError> {
        let unknown = || ApiError::new(StatusCode::FORBIDDEN, "ACL token not found");
        if secret == Secret::Invalid {
            return Err(unknown());
        }
        let now = times::now();
        let found = agent_handle.ask(move |view| found(view, secret, now));
        found.await?.ok_or_else(unknown)
    }

    fn rights(&self, policies: &[Text]) -> Arc<Rights> {
        let key: Vec<_> = (policies.iter())
            .map(|policy| (policy.name.clone(), policy.index))
            .collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rights) = kept.get(&key) {
            return rights.clone();
        }
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        let read: Option<Vec<Policy>> = policies.iter().map(read).collect();
        // Of a policy that cannot be read nobody knows what it forbids.
        let rights = read.map_or_else(Rights::none, |read| Rights::of(&read));
        let rights = Arc::new(rights);
        kept.insert(key, rights.clone());
        rights
    }
}

fn grant(secret: Secret, found: Found) -> Grant {
    let digest = match secret {
        Secret::Digest(digest) => Some(digest),
        Secret::None | Secret::Invalid => None,
    };
    Grant {
        token: digest.zip(found.token),
        policies: (found.policies.into_iter())
            .map(|policy| (policy.name, policy.index))
            .collect(),
    }
}

/// What a policy says, unless it cannot be read, since another version of the agent took it in.
fn read(text: &Text) -> Option<Policy> {
    let read = Policy::parse(&text.rules);
    if let Err(why) = &read {
        tracing::warn!(policy = %text.name, %why, "a policy cannot be read: whoever has it may do nothing");
    }
    read.ok()
}

/// What the core knows of a secret; none if it is that of no token.
fn found(view: View<'_>, secret: Secret, now: Timestamp) -> Option<Found> {
    let token = match secret {
        Secret::Invalid => return None,
        Secret::None => None,
        Secret::Digest(digest) => {
            let record = view.acl_token_of(&digest)?;
            if record.token.is_expired(now) {
                return None;
            }
            Some(record.clone())
        }
    };
    let policies = match &token {
        None => text_of(view, ANONYMOUS).into_iter().collect(),
        Some(record) => {
            let names = record.token.policies.iter();
            names.filter_map(|name| text_of(view, name)).collect()
        }
    };
    Some(Found { token, policies })
}

/// The policy of a name: somebody's, or one that is ready from the start.
fn text_of(view: View<'_>, name: &str) -> Option<Text> {
    if let Some(record) = view.acl_policies().get(name) {
        return Some(Text {
            name: record.policy.name.clone(),
            index: record.modify_index,
            rules: record.policy.rules.clone(),
        });
    }
    let ready = ready::named(name)?;
    Some(Text {
        name: ready.name.into(),
        index: 0,
        rules: ready.rules.into(),
    })
}
