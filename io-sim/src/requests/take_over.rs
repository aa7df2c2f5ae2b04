//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::{Simulated, register};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A job that ran on another node until now is handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeOver {
    /// Which.
    pub job: String,
}

impl ActKind for TakeOver {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        if let Some(job) = jobs.get(self.job.as_str()) {
            sim.take_over(job);
        }
        Ok(())
    }
}

/// The same, and only the first of its copies replaces anything there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeOverOne {
    /// Which.
    pub job: String,
}

impl ActKind for TakeOverOne {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        if let Some(job) = jobs.get(self.job.as_str()) {
            sim.take_over_some(job, 1);
        }
        Ok(())
    }
}

impl Simulated for requests::TakeOver {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        register::is_remembered(&self.job, facts, reply)
    }
}
