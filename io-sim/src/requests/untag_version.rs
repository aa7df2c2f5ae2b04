//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A version of a job loses its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntagVersion {
    /// Which job.
    pub job: String,
    /// The name.
    pub tag: String,
}

impl ActKind for UntagVersion {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.ask(requests::UntagVersion {
            job: sim.key_of(&self.job),
            name: self.tag.as_str().into(),
        });
        Ok(())
    }
}

impl Simulated for requests::UntagVersion {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        Some(match facts.job(&self.job) {
            Some(saved) => saved.job.modify_index > *index || saved.tagged(&self.name).is_none(),
            None => facts.replies.may_forget(&self.job),
        })
    }
}
