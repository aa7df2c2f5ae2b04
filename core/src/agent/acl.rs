//! Who may use the API: policies and tokens as they are now. What they allow is for the API to say.
//!
//! A token that expires goes at its time by the wall clock, and does not come back if that is set back. Until then
//! the API asks ([`AclToken::is_expired`]), for the timer of this machine may be late.
//!
//! **What cannot be read** lets nobody in: of a policy that is lost nobody knows what it forbade, so tokens that have
//! it are not let in as long as it is; and if it is lost whether there was a first token, there was one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Agent;
use super::periodic::CLOCK_MOVES;
use crate::cx::Cx;
use crate::ids::AccessorId;
use crate::model::acl::{AclToken, SecretDigest};
use crate::store::acl::{AclBootstrapRecord, AclPolicyRecord, AclTokenRecord};
use crate::store::{Key, Record, Saved};
use crate::time::{Instant, Now, Span, Timestamp};

/// Policies and tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Acl {
    policies: BTreeMap<Arc<str>, Arc<AclPolicyRecord>>,
    tokens: BTreeMap<AccessorId, Arc<AclTokenRecord>>,
    /// Whose secrets these are.
    #[serde(with = "crate::pairs")]
    by_digest: BTreeMap<SecretDigest, AccessorId>,
    /// The state's index when the first token was made.
    bootstrapped: Option<u64>,
    /// When the next token expires, by the boot clock.
    expire_at: Option<Instant>,
    /// How far the wall clock was ahead of the boot clock when that was noted.
    ahead: i64,
}

impl Acl {
    pub(super) fn is_empty(&self) -> bool {
        *self == Acl::default()
    }

    pub(super) fn policies(&self) -> &BTreeMap<Arc<str>, Arc<AclPolicyRecord>> {
        &self.policies
    }

    pub(super) fn tokens(&self) -> &BTreeMap<AccessorId, Arc<AclTokenRecord>> {
        &self.tokens
    }

    pub(super) fn token_of(&self, digest: &SecretDigest) -> Option<&Arc<AclTokenRecord>> {
        self.tokens.get(self.by_digest.get(digest)?)
    }

    pub(super) fn bootstrapped(&self) -> Option<u64> {
        self.bootstrapped
    }

    /// When [`Agent::remove_expired_tokens`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.expire_at
    }

    pub(super) fn restore(&mut self, saved: &Saved, now: Now) {
        let is_lost =
            |policy: &Arc<str>| saved.unreadable.contains(&Key::AclPolicy(policy.clone()));
        self.policies = saved.acl_policies.clone();
        for record in saved.acl_tokens.values() {
            if !record.token.policies.iter().any(is_lost) {
                self.insert(record.clone());
            }
        }
        let lost = saved.unreadable.contains(&Key::AclBootstrap);
        self.bootstrapped = saved.acl_bootstrap.as_ref().map(|it| it.index);
        self.bootstrapped = self.bootstrapped.or(lost.then_some(1));
        self.follow_clock(now);
    }

    /// A policy is this from now on.
    pub(super) fn put_policy(&mut self, cx: &mut Cx<'_>, record: AclPolicyRecord) {
        let (name, record) = (record.policy.name.clone(), Arc::new(record));
        cx.remember(
            Key::AclPolicy(name.clone()),
            Record::AclPolicy(record.clone()),
        );
        self.policies.insert(name, record);
    }

    /// Whether there was this policy.
    pub(super) fn delete_policy(&mut self, cx: &mut Cx<'_>, name: &Arc<str>) -> bool {
        if self.policies.remove(name).is_none() {
            return false;
        }
        cx.shared.ledger.delete(Key::AclPolicy(name.clone()));
        cx.next_index_without_a_record();
        true
    }

    /// A token is this from now on.
    pub(super) fn put_token(
        &mut self,
        cx: &mut Cx<'_>,
        record: AclTokenRecord,
    ) -> Arc<AclTokenRecord> {
        let record = Arc::new(record);
        let key = Key::AclToken(record.token.accessor);
        cx.remember(key, Record::AclToken(record.clone()));
        self.insert(record.clone());
        self.follow_clock(cx.now);
        record
    }

    /// Whether there was this token.
    pub(super) fn delete_token(&mut self, cx: &mut Cx<'_>, accessor: AccessorId) -> bool {
        let Some(record) = self.tokens.remove(&accessor) else {
            return false;
        };
        self.by_digest.remove(&record.token.digest);
        cx.shared.ledger.delete(Key::AclToken(accessor));
        cx.next_index_without_a_record();
        self.follow_clock(cx.now);
        true
    }

    /// There was a first token.
    pub(super) fn bootstrap(&mut self, cx: &mut Cx<'_>, index: u64) {
        let record = Record::AclBootstrap(Arc::new(AclBootstrapRecord { index }));
        cx.remember(Key::AclBootstrap, record);
        self.bootstrapped = Some(index);
    }

    /// Whether somebody set the wall clock, and a token expires at another time for that.
    pub(super) fn note_clocks(&mut self, now: Now) -> bool {
        let was_set = (now.wall_ahead().saturating_sub(self.ahead)).abs() >= CLOCK_MOVES.0;
        if self.expire_at.is_some() && was_set {
            self.follow_clock(now);
            return true;
        }
        false
    }

    /// Notes when the next token expires, as the clocks stand now.
    fn follow_clock(&mut self, now: Now) {
        let times = self.tokens.values().filter_map(|one| one.token.expires);
        self.expire_at = times.min().map(|at| now.at + until(now.wall, at));
        self.ahead = self.expire_at.map_or(0, |_| now.wall_ahead());
    }

    fn insert(&mut self, record: Arc<AclTokenRecord>) {
        let AclToken {
            accessor, digest, ..
        } = record.token;
        self.by_digest.insert(digest, accessor);
        self.tokens.insert(accessor, record);
    }

    fn expired(&self, now: Timestamp) -> Vec<AccessorId> {
        let tokens = self.tokens.values().map(|record| &record.token);
        let expired = tokens.filter(|token| token.is_expired(now));
        expired.map(|token| token.accessor).collect()
    }
}

impl Agent {
    /// Tokens whose time is over go.
    pub(super) fn remove_expired_tokens(&mut self, now: Now) {
        if self.acl.deadline().is_none_or(|at| at > now.at) {
            return;
        }
        let mut cx = super::cx(&self.config, &mut self.shared, now);
        for accessor in self.acl.expired(now.wall) {
            self.acl.delete_token(&mut cx, accessor);
        }
        self.acl.follow_clock(now);
    }
}

/// How long it is until a time of the wall clock.
fn until(now: Timestamp, at: Timestamp) -> Span {
    Span(at.0.saturating_sub(now.0).max(0))
}
