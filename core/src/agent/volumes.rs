//! Who uses the node's volumes.

use super::Agent;
use crate::alloc::runner::AllocRunner;
use crate::ids::AllocId;
use crate::store::volume::VolumeRecord;

impl Agent {
    /// The allocations that ask for a volume, and of which something may be alive: a process writes to it
    /// however its allocation is told to end.
    pub(super) fn users_of_volume(&self, volume: &VolumeRecord) -> Vec<AllocId> {
        let asks = |alloc: &AllocRunner| {
            let record = alloc.record();
            let group = alloc.job().group(record.group.as_str());
            let mut asked = group.iter().flat_map(|group| group.volumes.values());
            asked.any(|wanted| *wanted.source_for(record.index) == *volume.spec.name)
        };
        let users = self.allocs.iter();
        users
            .filter(|(_, alloc)| !alloc.is_gone() && asks(alloc))
            .map(|(id, _)| *id)
            .collect()
    }
}
