//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A policy is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAclPolicy {
    /// Its name.
    pub name: String,
}

impl ActKind for DeleteAclPolicy {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let name = self.name.as_str().into();
        sim.ask(requests::DeleteAclPolicy { name });
        Ok(())
    }
}

impl Simulated for requests::DeleteAclPolicy {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let saved = facts.acl_policy(&self.name);
        Some(saved.is_none_or(|saved| saved.create_index > *index))
    }
}
