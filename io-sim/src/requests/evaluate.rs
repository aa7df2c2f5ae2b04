//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// An evaluation of a job is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluate {
    /// Which.
    pub job: String,
}

impl ActKind for Evaluate {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        sim.ask(requests::Evaluate {
            job,
            force_reschedule: false,
        });
        Ok(())
    }
}

/// What failed of a job is to be replaced now, whatever its policies say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForceReschedule {
    /// Which.
    pub job: String,
}

impl ActKind for ForceReschedule {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let job = sim.key_of(&self.job);
        sim.ask(requests::Evaluate {
            job,
            force_reschedule: true,
        });
        Ok(())
    }
}

impl Simulated for requests::Evaluate {
    fn is_remembered(&self, _: Facts<'_>, _: &Reply) -> Option<bool> {
        None
    }
}
