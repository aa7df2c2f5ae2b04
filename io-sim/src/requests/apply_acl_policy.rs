//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::acl::AclPolicy;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A policy is made, or says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyAclPolicy {
    /// Its name.
    pub name: String,
    /// Its text.
    pub rules: String,
}

impl ActKind for ApplyAclPolicy {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let policy = AclPolicy {
            name: self.name.as_str().into(),
            rules: self.rules.as_str().into(),
            ..AclPolicy::default()
        };
        sim.ask(requests::ApplyAclPolicy { policy });
        Ok(())
    }
}

impl Simulated for requests::ApplyAclPolicy {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let name = &self.policy.name;
        Some(match facts.acl_policy(name) {
            Some(saved) if saved.modify_index == *index => saved.policy == self.policy,
            Some(saved) => saved.modify_index > *index,
            None => facts.replies.deletes_acl_policy(name),
        })
    }
}
