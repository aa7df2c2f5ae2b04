//! Claims are granted here: which allocation starts when, by the rule of [`crate::claims`].
//!
//! An allocation that waits is looked at when it is placed, and again when one of those that it waits for
//! has news (the broadcaster wakes it) or the node has more or less than before.

use std::collections::BTreeSet;

use super::Agent;
use crate::alloc::runner::AllocRunner;
use crate::claims::{self, Holder, Holding, Ungranted};
use crate::ids::AllocId;

impl Agent {
    /// Gives an allocation that waits for its claims what nobody older holds: all of it, or nothing.
    pub(super) fn grant(&mut self, id: AllocId) {
        let waits = |alloc: &&AllocRunner| alloc.awaits_claims() && !alloc.is_ending();
        // How much there is has to be known.
        if self.shared.fingerprint_pending || self.allocs.get(&id).filter(waits).is_none() {
            return;
        }
        let ungranted = self.ungranted(id);
        let mut holders: BTreeSet<AllocId> = (ungranted.iter())
            .filter_map(|one| here(&one.holder))
            .collect();
        if ungranted.iter().any(|one| one.claim.is_counted()) {
            // Whoever goes leaves more of it, also who was not to end when this was looked at.
            let others = self.allocs.values().filter(|other| !other.is_gone());
            holders.extend(others.map(|other| other.record().id));
            holders.remove(&id);
        }
        let broadcasts = &mut self.shared.broadcasts;
        broadcasts.leave(id);
        for holder in &holders {
            broadcasts.listen(*holder, id);
        }
        if let Some(alloc) = self.allocs.get_mut(&id).filter(|_| holders.is_empty()) {
            alloc.grant();
        }
    }

    /// The claims of an allocation that are not granted yet, and who holds each.
    pub(super) fn ungranted(&self, id: AllocId) -> Vec<Ungranted> {
        let Some(alloc) = self.allocs.get(&id) else {
            return Vec::new();
        };
        let capacity = self.capacity();
        let holding = |alloc| holding_of(alloc, capacity.core_mhz);
        let holders = self.allocs.values().filter(|other| !other.is_gone());
        let disk = self.shared.disks.get(&alloc.record().slot());
        let elsewhere = disk.and_then(|disk| disk.elsewhere_of(id));
        let sources = disk.map_or(&[][..], |disk| disk.sources_of(id));
        let holders = holders.map(holding);
        claims::ungranted(holding(alloc), elsewhere, sources, &capacity, holders)
    }

    /// The allocations that wait for claims.
    pub(super) fn waiting(&self) -> BTreeSet<AllocId> {
        let waiting = self.allocs.values().filter(|alloc| alloc.awaits_claims());
        waiting.map(|alloc| alloc.record().id).collect()
    }
}

fn here(holder: &Holder) -> Option<AllocId> {
    match holder {
        Holder::Alloc(id) => Some(*id),
        Holder::Elsewhere(..) => None,
    }
}

fn holding_of(alloc: &AllocRunner, core_mhz: u64) -> Holding<'_> {
    (alloc.record(), alloc.amounts(core_mhz))
}
