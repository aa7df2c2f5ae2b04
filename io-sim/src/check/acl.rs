//! Who may use the API: there is one first token, and one that went does not come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::agent::requests::{DeleteAclToken, Request};
use drover_core::effect::Reply;
use drover_core::ids::AccessorId;
use drover_core::model::acl::SecretDigest;
use drover_core::store::acl::{AclPolicyRecord, AclTokenRecord};
use drover_core::store::{Key, Record};
use drover_core::time::Timestamp;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of policies and tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Acl {
    /// What the disk held when this life of the agent began, until that was looked at.
    saved: Option<Saved>,
    /// How often somebody was given the first token, in all lives.
    bootstraps: u64,
    /// Of deleted tokens the index of the deletion, in all lives.
    deleted: BTreeMap<AccessorId, u64>,
    /// The secrets of all tokens that anybody was told of.
    secrets: BTreeMap<AccessorId, SecretDigest>,
    /// Until when they are good.
    good_until: BTreeMap<AccessorId, Option<Timestamp>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Saved {
    policies: BTreeMap<Arc<str>, Arc<AclPolicyRecord>>,
    tokens: BTreeMap<AccessorId, Arc<AclTokenRecord>>,
    bootstrapped: Option<u64>,
}

impl Acl {
    /// What an earlier agent left.
    pub(super) fn agent_restored(&mut self, world: &World) {
        let mut saved = Saved::default();
        for (key, record) in world.disk.records() {
            match (key, record) {
                (Key::AclPolicy(name), Record::AclPolicy(one)) => {
                    saved.policies.insert(name.clone(), one.clone());
                }
                (Key::AclToken(id), Record::AclToken(one)) => {
                    saved.tokens.insert(*id, one.clone());
                }
                (Key::AclBootstrap, Record::AclBootstrap(one)) => {
                    saved.bootstrapped = Some(one.index);
                }
                _ => {}
            }
        }
        self.saved = Some(saved);
    }
}

impl Checker {
    /// What an agent finds when it begins: what was saved, less what expires at this moment.
    pub(super) fn acl_survives_agent_restart(&mut self, world: &World, agent: &Agent) -> Verdict {
        let Some(mut saved) = self.acl.saved.take().filter(|it| *it != Saved::default()) else {
            return Ok(());
        };
        let now = world.now().wall;
        saved.tokens.retain(|_, one| !one.token.is_expired(now));
        let mut known = Saved {
            policies: agent.view().acl_policies().clone(),
            tokens: agent.view().acl_tokens().clone(),
            bootstrapped: agent.view().acl_bootstrapped(),
        };
        known.tokens.retain(|_, one| !one.token.is_expired(now));
        self.holds(Property::AclSurvivesAgentRestart, saved == known, || {
            format!("{saved:?} was saved, {known:?} is known")
        })
    }

    /// Somebody is told of a token.
    pub(super) fn acl_answered(&mut self, asked: &Request, reply: &Reply) -> Verdict {
        match (asked, reply) {
            (Request::BootstrapAcl(_), Reply::AclToken(token)) => {
                self.acl.bootstraps += 1;
                let (accessor, digest) = (token.token.accessor, token.token.digest);
                self.acl.secrets.insert(accessor, digest);
                self.acl.good_until.remove(&accessor);
                let once = self.acl.bootstraps == 1;
                self.holds(Property::FirstTokenIsMadeOnce, once, || {
                    format!("{accessor} is another first token")
                })
            }
            (_, Reply::AclToken(token)) => {
                let (accessor, digest) = (token.token.accessor, token.token.digest);
                self.acl.secrets.insert(accessor, digest);
                let now = token.token.expires;
                let given = self.acl.good_until.insert(accessor, now);
                // Another one may have been made under this number.
                let updated = matches!(asked, Request::UpdateAclToken(_));
                let given = given.filter(|_| updated).unwrap_or(now);
                self.holds(Property::TokenKeepsItsTime, given == now, || {
                    format!("{accessor} was good until {given:?}, and is until {now:?}")
                })
            }
            (Request::DeleteAclToken(DeleteAclToken { accessor }), Reply::Done { index }) => {
                self.acl.deleted.insert(*accessor, *index);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The secret of a token that was deleted lets nobody in, unless another token was made with it.
    pub(super) fn deleted_token_lets_nobody_in(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let lets_in = self.acl.deleted.iter().find(|(accessor, index)| {
            let secret = self.acl.secrets.get(accessor);
            let by_secret = secret.and_then(|secret| view.acl_token_of(secret));
            let known = by_secret.or_else(|| view.acl_tokens().get(accessor));
            known.is_some_and(|known| known.create_index <= **index)
        });
        let lets_in = lets_in.map(|(accessor, _)| *accessor);
        if self.acl.deleted.is_empty() {
            return Ok(());
        }
        self.holds(
            Property::DeletedTokenLetsNobodyIn,
            lets_in.is_none(),
            || format!("{lets_in:?}"),
        )
    }

    /// At rest no token is there whose time is over.
    pub(super) fn expired_token_is_removed(&mut self, world: &World, agent: &Agent) -> Verdict {
        let now = world.now().wall;
        let mut expiring = agent.view().acl_tokens().values();
        let kept = expiring.find(|one| one.token.is_expired(now));
        self.holds(Property::ExpiredTokenIsRemoved, kept.is_none(), || {
            format!("{kept:?}")
        })
    }
}
