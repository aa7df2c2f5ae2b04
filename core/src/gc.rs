//! How many ended allocations are removed at once.
//!
//! Whatever the reason for the removal, an allocation with nothing left alive waits in its phase
//! `Finished` until [`Destroys`] grants it one of a few places, the oldest first. A removal that
//! fails gives its place back and waits again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::AllocId;
use crate::store::record::AllocRecord;

/// Who is garbage-collected now, and who waits for a place to be: removing directories takes the disk
/// away from the tasks that run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Destroys {
    busy: BTreeSet<AllocId>,
    /// With the index that says how old they are.
    waiting: BTreeMap<AllocId, u64>,
}

impl Destroys {
    /// Whether this allocation has a place. If not, it waits for one from now on.
    pub fn has_permit(&mut self, alloc: &AllocRecord) -> bool {
        let has = self.busy.contains(&alloc.id);
        if !has {
            self.waiting.entry(alloc.id).or_insert(alloc.modify_index);
        }
        has
    }

    /// Whether this allocation waits for a place.
    pub fn awaits(&self, alloc: AllocId) -> bool {
        self.waiting.contains_key(&alloc)
    }

    /// Those that have a place.
    pub fn under_way(&self) -> impl Iterator<Item = AllocId> {
        self.busy.iter().copied()
    }

    /// Gives a place to the oldest that waits, if one of `permits` is free. Returns who can go on.
    pub fn grant(&mut self, permits: usize) -> Option<AllocId> {
        if self.busy.len() >= permits.max(1) {
            return None;
        }
        let oldest = self
            .waiting
            .iter()
            .min_by_key(|(id, index)| (**index, **id));
        let oldest = *oldest?.0;
        self.waiting.remove(&oldest);
        self.busy.insert(oldest);
        Some(oldest)
    }

    /// This allocation is gone, or cannot be garbage-collected now: its place is free.
    pub fn leave(&mut self, alloc: AllocId) {
        self.busy.remove(&alloc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(id: u128, destroying: bool) -> AllocRecord {
        let modify_index = u64::try_from(id).unwrap_or(0);
        AllocRecord {
            id: AllocId(id),
            finished: true,
            destroying,
            modify_index,
            ..Default::default()
        }
    }

    #[test]
    fn removal_permits_go_to_oldest_first() {
        let mut destroys = Destroys::default();
        for id in [3, 1, 2] {
            assert!(!destroys.has_permit(&ended(id, true)));
        }
        assert_eq!(destroys.grant(2), Some(AllocId(1)));
        assert_eq!(destroys.grant(2), Some(AllocId(2)));
        assert_eq!(destroys.grant(2), None, "both places are taken");
        assert!(destroys.has_permit(&ended(2, true)) && destroys.awaits(AllocId(3)));
        destroys.leave(AllocId(1));
        // It failed, and waits again: it is still the oldest.
        assert!(!destroys.has_permit(&ended(1, true)));
        assert_eq!(destroys.grant(2), Some(AllocId(1)));
        destroys.leave(AllocId(2));
        assert_eq!(destroys.grant(2), Some(AllocId(3)));
        assert_eq!(destroys.grant(9), None, "nobody waits");
    }
}
