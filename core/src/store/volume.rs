//! What is remembered of a host volume that was made or registered while the agent ran.

use serde::{Deserialize, Serialize};

use crate::ids::VolumeId;
use crate::model::volume::{HostVolume, VolumeSpec};
use crate::time::Timestamp;

/// The most volumes that a node has besides those of its configuration.
pub const MAX_VOLUMES: usize = 1000;

/// A host volume that was made or registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeRecord {
    /// Its id, by which its directory is found.
    pub id: VolumeId,
    /// What was asked for.
    pub spec: VolumeSpec,
    /// Its directory on the host; empty until that is known. Of one that was brought along, where it was.
    pub host_path: String,
    /// Where it is in its life.
    pub state: VolumeState,
    /// When it was asked for.
    pub create_time: Timestamp,
    /// When it last changed.
    pub modify_time: Timestamp,
    /// The state's index when it was asked for.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
}

/// Where a volume is in its life. It is saved before its directory is made or removed, and jobs use it only in
/// between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeState {
    /// Its directory is being made, or looked for.
    #[default]
    Pending,
    /// Jobs may use it.
    Ready,
    /// Its directory is being removed, or could not be removed.
    Deleting,
}

impl VolumeState {
    /// Nomad's word.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumeState::Pending => "pending",
            VolumeState::Ready => "ready",
            VolumeState::Deleting => "unavailable",
        }
    }
}

impl VolumeRecord {
    /// As it is in a state that is brought to another data directory, as a snapshot is: a directory that was made is not
    /// known to be there, and is to be made again. One that was registered is somebody else's, and stays where it is.
    pub fn brought_along(&mut self) {
        if self.state == VolumeState::Ready && self.spec.registered.is_none() {
            self.state = VolumeState::Pending;
        }
    }

    /// The volume as jobs find it on the node, if they do.
    pub fn on_node(&self) -> Option<HostVolume> {
        (self.state == VolumeState::Ready).then(|| HostVolume {
            name: self.spec.name.clone(),
            path: self.host_path.clone(),
            read_only: self.spec.is_read_only(),
            id: self.id.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_is_used_only_between_making_and_removing() {
        let is_used = |state| {
            let record = VolumeRecord {
                state,
                ..VolumeRecord::default()
            };
            record.on_node().is_some()
        };
        let states = [
            VolumeState::Pending,
            VolumeState::Ready,
            VolumeState::Deleting,
        ];
        assert_eq!(states.map(is_used), [false, true, false]);
    }
}
