//! The record of a slot's disk: where it lies, who holds it or gets it, and until when it is kept for another node.
//!
//! It is a record of its own because it outlives the agent and the allocations. Slots of groups with a sticky disk
//! have one, and those whose previous allocation is on another node or whose disk is leased to one. In all others
//! the disk is the latest allocation's own.
//!
//! | `holder` | `sources` | the disk |
//! |---|---|---|
//! | some | none | lies in the directory of its holder, or is to begin there |
//! | some | some | is to move from there to its holder, before that one's tasks start |
//! | none | some | lies there; who was to get it was garbage-collected, or is yet to be placed |
//!
//! **Sources.** One that was to get the disk, and failed or was given up in the middle, may have some of it or all of
//! it. So it comes before the older ones, and each part is taken from the nearest that has any. An allocation
//! that is being garbage-collected is nobody's source.
//!
//! **Elsewhere.** What another node's allocation wrote is newer than what an earlier stay left here, and older
//! than what anything wrote that ran here since. It is fetched once: whoever starts ends that. The other node may
//! say that it was to fetch it itself, and from where: then it is asked for there, so many times at most.

use serde::{Deserialize, Serialize};

use crate::ids::AllocId;
use crate::model::group::EphemeralDisk;
use crate::model::remote::RemotePrevious;
use crate::time::{Span, Timestamp};

/// For how long a disk is kept for another node that it is handed over to.
pub const RETENTION_LEASE: Span = Span::secs(24 * 3600);
/// For how long it is kept when the transfer to that node is complete: the node may die before it makes use of it.
pub const AFTER_TRANSFER: Span = Span::secs(600);
/// How many that could not migrate the disk may follow each other before one between them and the oldest source
/// is given up.
const MAX_SOURCES: usize = 16;
/// How often another node may say that what it was asked for lies with yet another allocation.
pub const MAX_LINKS: u32 = 5;

/// The disk of a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// The allocation that has it or gets it: the latest of the slot, until that is garbage-collected.
    pub holder: Option<AllocId>,
    /// The allocations of this node from which it has yet to move, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<AllocId>,
    /// The previous allocation on another node, until its end was awaited and its disk fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// For whom it is kept though nobody here needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

/// An allocation of another node that held the slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Elsewhere {
    /// Which, and where it is asked for.
    pub previous: RemotePrevious,
    /// The allocations of this node that were to fetch its disk: they may have it, or some of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetchers: Vec<AllocId>,
    /// How often it turned out to lie with yet another allocation.
    #[serde(skip_serializing_if = "is_zero")]
    pub links: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(links: &u32) -> bool {
    *links == 0
}

/// A retention lease: another node takes over the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// The allocation that was handed over.
    pub alloc: AllocId,
    /// The allocations whose directories are kept: where its disk lay when the job was handed over.
    pub allocs: Vec<AllocId>,
    /// Until when.
    pub until: Timestamp,
}

impl Lease {
    /// Whether it has not run out. A clock that was set back does not make it any longer.
    pub fn holds(&self, now: Timestamp) -> bool {
        let left = self.until - now;
        left > Span::ZERO && left <= RETENTION_LEASE
    }
}

impl Disk {
    /// The disk of a slot without a record: the latest allocation's own.
    pub fn of(latest: Option<AllocId>) -> Disk {
        Disk {
            holder: latest,
            ..Disk::default()
        }
    }

    /// This disk when a new allocation of a group with these settings is placed in the slot; `keeps` says of which
    /// older ones the directories are to stay. None if there is nothing to remember: it is the new one's own.
    pub fn placed(
        self,
        new: AllocId,
        group: EphemeralDisk,
        keeps: impl Fn(AllocId) -> bool,
    ) -> Option<Disk> {
        let is_sticky = group.sticky || group.migrate;
        let mut sources: Vec<AllocId> = match is_sticky {
            true => self.holder.into_iter().chain(self.sources).collect(),
            false => Vec::new(),
        };
        sources.retain(|id| keeps(*id));
        let mut elsewhere = self.elsewhere;
        if let Some(elsewhere) = elsewhere.as_mut().filter(|_| group.migrate) {
            // What another node has is newer than what ran here.
            sources.retain(|id| elsewhere.fetchers.contains(id));
            elsewhere.fetchers.push(new);
        }
        // Of too many the oldest stays: those between came to nothing, and it had a task.
        if sources.len() > MAX_SOURCES {
            sources.remove(MAX_SOURCES - 1);
        }
        let is_remembered = is_sticky || elsewhere.is_some() || self.lease.is_some();
        is_remembered.then_some(Disk {
            holder: Some(new),
            sources,
            elsewhere,
            lease: self.lease,
        })
    }

    /// The next allocation of the slot replaces this one of another node. Whoever is here already does not concern it.
    pub fn replace_elsewhere(&mut self, previous: RemotePrevious) {
        let holder = self.holder.take();
        let sources = core::mem::take(&mut self.sources);
        self.sources = holder.into_iter().chain(sources).collect();
        self.elsewhere = Some(Elsewhere {
            previous,
            ..Elsewhere::default()
        });
    }

    /// The previous allocation on another node was to get the disk from this one, and did not. Returns whether that one
    /// is asked instead.
    pub fn lies_with(&mut self, previous: RemotePrevious) -> bool {
        let Some(elsewhere) = &mut self.elsewhere else {
            return false;
        };
        let may_go_on = elsewhere.links < MAX_LINKS;
        if may_go_on {
            elsewhere.links += 1;
            elsewhere.previous = previous;
        }
        may_go_on
    }

    /// The disk moved to an allocation. If that is not its holder any more, it is the nearest source.
    pub fn moved_to(&mut self, alloc: AllocId) {
        if self.holder == Some(alloc) {
            self.sources.clear();
        }
    }

    /// An allocation is being garbage-collected, with whatever of the disk is in its directory.
    pub fn lose(&mut self, alloc: AllocId) {
        self.holder = self.holder.filter(|holder| *holder != alloc);
        self.sources.retain(|source| *source != alloc);
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.fetchers.retain(|fetcher| *fetcher != alloc);
        }
        if let Some(lease) = &mut self.lease {
            lease.allocs.retain(|kept| *kept != alloc);
        }
        self.lease = self.lease.take().filter(|lease| !lease.allocs.is_empty());
    }

    /// Another node takes over what `latest`, the slot's latest allocation, has or was to get.
    pub fn lease(&mut self, latest: AllocId, until: Timestamp) {
        let allocs = core::iter::once(latest).chain(self.sources_of(latest).iter().copied());
        self.lease = Some(Lease {
            alloc: latest,
            allocs: allocs.collect(),
            until,
        });
    }

    /// Another node has read what an allocation had or was to get. That of older ones is not what was handed over.
    pub fn transfer_complete(&mut self, alloc: AllocId, until: Timestamp) {
        if let Some(lease) = &mut self.lease
            && lease.alloc == alloc
        {
            lease.until = lease.until.min(until);
        }
    }

    /// Where what an allocation is or was to get still lies.
    pub fn sources_of(&self, alloc: AllocId) -> &[AllocId] {
        if self.holder == Some(alloc) {
            return &self.sources;
        }
        let nearer = self.sources.iter().position(|source| *source == alloc);
        let older = nearer.and_then(|at| self.sources.get(at + 1..));
        older.unwrap_or_default()
    }

    /// The previous allocation on another node, as far as it concerns an allocation of this one.
    pub fn elsewhere_of(&self, alloc: AllocId) -> Option<&RemotePrevious> {
        let elsewhere = self.elsewhere.as_ref()?;
        (self.holder == Some(alloc)).then_some(&elsewhere.previous)
    }

    /// Whether an allocation's directory is kept for another node.
    pub fn is_leased(&self, alloc: AllocId, now: Timestamp) -> bool {
        let lease = self.lease.as_ref().filter(|lease| lease.holds(now));
        lease.is_some_and(|lease| lease.allocs.contains(&alloc))
    }

    /// Whether nothing of it is known any more.
    pub fn is_forgotten(&self) -> bool {
        *self == Disk::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICKY: EphemeralDisk = disk(true, false);
    const MIGRATES: EphemeralDisk = disk(true, true);
    const OWN: EphemeralDisk = disk(false, false);
    const NOW: Timestamp = Timestamp(0);

    const fn disk(sticky: bool, migrate: bool) -> EphemeralDisk {
        EphemeralDisk {
            sticky,
            migrate,
            size_mb: 0,
        }
    }

    fn ids<const N: usize>(ids: [u128; N]) -> Vec<AllocId> {
        ids.map(AllocId).to_vec()
    }

    fn place(disk: Option<Disk>, new: u128, group: EphemeralDisk) -> Option<Disk> {
        let disk = disk.unwrap_or_else(|| Disk::of(Some(AllocId(new - 1))));
        disk.placed(AllocId(new), group, |_| true)
    }

    fn sources(disk: Option<&Disk>) -> Vec<AllocId> {
        disk.map(|disk| disk.sources.clone()).unwrap_or_default()
    }

    #[test]
    fn replacement_has_disk_sources_until_move() {
        let second = place(None, 2, STICKY);
        assert_eq!(sources(second.as_ref()), ids([1]));
        let mut third = place(second, 3, STICKY).unwrap_or_default();
        assert_eq!(third.sources, ids([2, 1]));
        third.moved_to(AllocId(2));
        assert_eq!(third.sources, ids([2, 1]), "too late for the second");
        third.moved_to(AllocId(3));
        assert_eq!(sources(place(Some(third), 4, STICKY).as_ref()), ids([3]));
    }

    #[test]
    fn group_without_sticky_disk_has_no_disk_record() {
        let sticky = place(None, 2, STICKY);
        assert_eq!(place(sticky, 3, OWN), None);
        assert_eq!(sources(place(None, 4, STICKY).as_ref()), ids([3]));
    }

    #[test]
    fn collected_alloc_is_removed_from_disk_sources() {
        let mut disk = place(place(None, 2, STICKY), 3, STICKY).unwrap_or_default();
        disk.lose(AllocId(3));
        assert_eq!((disk.holder, disk.sources.clone()), (None, ids([2, 1])));
        disk.lose(AllocId(2));
        let next = place(Some(disk), 4, STICKY).unwrap_or_default();
        assert_eq!(next.sources, ids([1]));
        let mut rest = Disk::of(Some(AllocId(1)));
        rest.lose(AllocId(1));
        assert!(rest.is_forgotten());
    }

    #[test]
    fn remote_disk_source_hides_local_ones_except_its_fetchers() {
        let mut known = Disk::of(Some(AllocId(1)));
        known.replace_elsewhere(RemotePrevious::default());
        assert_eq!(known.elsewhere_of(AllocId(1)), None, "it was here before");
        let waits = place(Some(known), 2, STICKY);
        assert_eq!(sources(waits.as_ref()), ids([1]));
        let fetches = place(waits, 3, MIGRATES);
        assert_eq!(sources(fetches.as_ref()), []);
        let next = place(fetches, 4, MIGRATES).unwrap_or_default();
        assert_eq!(next.sources, ids([3]));
        assert!(next.elsewhere_of(AllocId(4)).is_some());
        assert_eq!(next.elsewhere_of(AllocId(3)), None);
    }

    #[test]
    fn disk_elsewhere_is_followed_so_often_at_most() {
        let of = |alloc| RemotePrevious {
            alloc: AllocId(alloc),
            ..RemotePrevious::default()
        };
        let mut disk = Disk::default();
        assert!(!disk.lies_with(of(9)), "nothing was asked for");
        disk.replace_elsewhere(of(9));
        let mut waits = place(Some(disk), 10, MIGRATES).unwrap_or_default();
        let followed = (1..9).rev().filter(|one| waits.lies_with(of(*one)));
        assert_eq!(followed.collect::<Vec<_>>(), [8, 7, 6, 5, 4]);
        let asked = waits.elsewhere_of(AllocId(10)).map(|it| it.alloc);
        assert_eq!(asked, Some(AllocId(4)));
    }

    #[test]
    fn lease_keeps_disk_sources_until_transfer_completes() {
        let mut disk = place(None, 2, STICKY).unwrap_or_default();
        disk.lease(AllocId(2), NOW + RETENTION_LEASE);
        let leased = |disk: &Disk, at| [1, 2, 3].map(|id| disk.is_leased(AllocId(id), at));
        assert_eq!(leased(&disk, NOW), [true, true, false]);
        assert_eq!(leased(&disk, NOW + RETENTION_LEASE), [false; 3]);
        assert_eq!(leased(&disk, Timestamp(-1)), [false; 3], "clock set back");
        disk.transfer_complete(AllocId(1), NOW + AFTER_TRANSFER);
        assert_eq!(leased(&disk, NOW + AFTER_TRANSFER), [true, true, false]);
        disk.transfer_complete(AllocId(2), NOW + AFTER_TRANSFER);
        assert_eq!(leased(&disk, NOW + AFTER_TRANSFER), [false; 3]);
    }

    #[test]
    fn oldest_disk_source_is_kept_at_limit() {
        let last = (2..40).fold(None, |disk, new| place(disk, new, STICKY));
        let sources = sources(last.as_ref());
        assert_eq!(sources.len(), MAX_SOURCES);
        assert_eq!(sources.last(), Some(&AllocId(1)));
    }
}
