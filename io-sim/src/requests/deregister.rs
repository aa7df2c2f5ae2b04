//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A job is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deregister {
    /// Which.
    pub job: String,
    /// Whether it is forgotten as well.
    pub purge: bool,
}

impl ActKind for Deregister {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let (job, purge) = (sim.key_of(&self.job), self.purge);
        sim.ask(requests::Deregister {
            job,
            purge,
            no_shutdown_delay: false,
        });
        Ok(())
    }
}

/// A job is stopped by somebody in a hurry: without the shutdown delays of its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeregisterWithoutDelay {
    /// Which.
    pub job: String,
}

impl ActKind for DeregisterWithoutDelay {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        sim.ask(requests::Deregister {
            job,
            purge: false,
            no_shutdown_delay: true,
        });
        Ok(())
    }
}

impl Simulated for requests::Deregister {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Stopping {
            eval: Some(_),
            index,
        } = reply
        else {
            return None;
        };
        let saved = facts.job(&self.job);
        Some(saved.is_none_or(|saved| saved.job.stop || saved.job.job_modify_index > *index))
    }
}
