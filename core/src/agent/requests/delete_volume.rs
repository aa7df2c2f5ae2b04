//! `volume delete`: a volume that nobody uses is removed, with all that is in it.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx};
use crate::effect::{Refusal, Reply};
use crate::ids::VolumeId;
use crate::store::volume::VolumeState;

/// Remove a volume. The answer follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteVolume {
    /// Which.
    pub volume: VolumeId,
}

impl OperatorRequest for DeleteVolume {
    fn name(&self) -> &'static str {
        "delete volume"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let Some(record) = asked.agent.machine.volumes().record(self.volume).cloned() else {
            let words = format!("Unknown volume \"{}\"", self.volume);
            return Some(Reply::Refused(Refusal::NotFound(words)));
        };
        match record.state {
            VolumeState::Pending if asked.agent.machine.volumes.is_under_way(self.volume) => {
                return Some(conflict("the volume is being made"));
            }
            VolumeState::Pending | VolumeState::Ready | VolumeState::Deleting => {}
        }
        let users = asked.agent.users_of_volume(&record);
        if let Some(first) = users.first() {
            let more = match users.len() {
                1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            return Some(conflict(&format!(
                "the volume is in use by allocation {first}{more}: stop its job first"
            )));
        }
        let agent = &mut *asked.agent;
        let cx = &mut cx(&agent.config, &mut agent.shared, asked.now);
        agent.machine.volumes.delete(cx, self.volume, asked.request);
        // Nothing is placed on it from now on.
        agent.config.node.host_volumes = agent.machine.volumes.on_node();
        None
    }
}
