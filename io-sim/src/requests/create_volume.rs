//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::volume::VolumeSpec;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A volume is made, or one is registered that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateVolume {
    /// Its name.
    pub name: String,
    /// Whether it is registered.
    pub registered: bool,
}

impl CreateVolume {
    /// What is asked for.
    pub fn spec(&self) -> VolumeSpec {
        VolumeSpec {
            name: self.name.clone(),
            namespace: "default".to_owned(),
            registered: self.registered.then(|| format!("/mnt/{}", self.name)),
            ..VolumeSpec::default()
        }
    }
}

impl ActKind for CreateVolume {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let spec = self.spec();
        sim.ask(requests::CreateVolume { spec });
        Ok(())
    }
}

impl Simulated for requests::CreateVolume {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Volume(id) = reply else {
            return None;
        };
        Some(facts.volume(*id).is_some() || facts.replies.deletes_volume(*id))
    }
}
