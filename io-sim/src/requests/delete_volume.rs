//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::ids::VolumeId;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A volume is removed, if the agent shows one of this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteVolume {
    /// Its name.
    pub name: String,
}

impl DeleteVolume {
    /// The volume of this name, as the agent shows it.
    fn shown(&self, sim: &Sim) -> Option<VolumeId> {
        let mut known = sim.view()?.machine().volumes().records();
        known.find(|it| it.spec.name == self.name).map(|it| it.id)
    }
}

impl ActKind for DeleteVolume {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        if let Some(volume) = self.shown(sim) {
            sim.ask(requests::DeleteVolume { volume });
        }
        Ok(())
    }
}

impl Simulated for requests::DeleteVolume {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { .. } = reply else {
            return None;
        };
        Some(facts.volume(self.volume).is_none())
    }
}
