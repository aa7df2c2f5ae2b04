//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, shown_version};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A version of a job gets a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagVersion {
    /// Which job.
    pub job: String,
    /// How many versions back; the latest one, whichever that is, if none.
    pub back: Option<u64>,
    /// The name.
    pub tag: String,
}

impl ActKind for TagVersion {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        let latest = shown_version(sim, &job);
        sim.ask(requests::TagVersion {
            job,
            version: self.back.map(|back| latest.saturating_sub(back)),
            name: self.tag.as_str().into(),
            description: "tagged".into(),
        });
        Ok(())
    }
}

impl Simulated for requests::TagVersion {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        Some(match facts.job(&self.job) {
            Some(saved) => saved.job.modify_index > *index || saved.tagged(&self.name).is_some(),
            None => facts.replies.may_forget(&self.job),
        })
    }
}
