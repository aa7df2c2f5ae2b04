//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use super::create_acl_token::accessor;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A token is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAclToken {
    /// Its secret.
    pub secret: u8,
}

impl ActKind for DeleteAclToken {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let accessor = accessor(self.secret);
        sim.ask(requests::DeleteAclToken { accessor });
        Ok(())
    }
}

impl Simulated for requests::DeleteAclToken {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let saved = facts.acl_token(self.accessor);
        Some(saved.is_none_or(|saved| saved.create_index > *index))
    }
}
