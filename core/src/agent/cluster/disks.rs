//! Which disk an allocation gets that servers placed: that of the one that it replaces, wherever that lies.
//!
//! Servers name one previous allocation. It may have ended before it got its own disk, and then what is wanted lies
//! further back:
//!
//! - **It was never run here**, because servers gave it up before it came, or because it cannot be run. Then its
//!   replacement gets what it was to get ([`Server::passed_over`](crate::server::Server::passed_over)).
//! - **It ended here while it waited** for what another node has: its replacement awaits the same.
//! - **It ended on another node**, which says from where it was to get it ([`crate::alloc::remote`]). If that was on this
//!   node, the disk never left it.

use super::super::{Agent, cx};
use crate::cluster::PlacedAlloc;
use crate::ids::AllocId;
use crate::model::group::{EphemeralDisk, TaskGroup};
use crate::model::remote::RemotePrevious;
use crate::model::secret::Secret;
use crate::store::disk::Disk;
use crate::store::record::AllocRecord;
use crate::time::Now;

/// How many allocations that were never run here may follow each other before nobody looks further back.
const MOST_PASSED_OVER: usize = 16;

impl Agent {
    /// The disk of an allocation that servers placed, if there is something to remember of it: it gets that of the one
    /// that it replaces, if its group wants that. Where that one is on another node, at least its end is awaited.
    pub(super) fn disk_of_placed(
        &self,
        placed: &PlacedAlloc,
        group: &TaskGroup,
        token: Option<&Secret>,
    ) -> Option<Disk> {
        let previous = self.whose_disk(replaced_by(placed, token)?)?;
        let id = previous.alloc;
        let disk = match self.of_servers(id) {
            Some(previous) => self.disk_left_by(previous),
            // It is of this node, which has it no more.
            None if self.allocs.contains_key(&id) || self.servers_know_end(id) => return None,
            None => {
                let mut disk = Disk::default();
                disk.replace_elsewhere(previous);
                disk
            }
        };
        let settings = group.ephemeral_disk.unwrap_or_default();
        disk.placed(placed.id, settings, |id| self.of_servers(id).is_some())
    }

    /// The allocation itself, or what it was to replace if it was never run here.
    fn whose_disk(&self, mut previous: RemotePrevious) -> Option<RemotePrevious> {
        for _ in 0..MOST_PASSED_OVER {
            let is_here = self.allocs.contains_key(&previous.alloc);
            let server = self.server.as_ref().filter(|_| !is_here);
            let Some(replaced) = server.and_then(|server| server.passed_over(previous.alloc))
            else {
                break;
            };
            previous = replaced.cloned()?;
        }
        Some(previous)
    }

    /// An allocation that servers placed is not run here, and never was: who replaces it gets what it was to get.
    pub(super) fn pass_over(&mut self, placed: &PlacedAlloc, token: Option<&Secret>) {
        if let Some(server) = &mut self.server {
            server.pass_over(placed.id, replaced_by(placed, token));
        }
    }

    /// An allocation waits for one of another node that turned out to be of this one: it gets its disk from here.
    pub(in crate::agent) fn find_disk_here(&mut self, now: Now, id: AllocId) {
        let Some(alloc) = self.allocs.get(&id).filter(|alloc| alloc.awaits_claims()) else {
            return;
        };
        let record = alloc.record().clone();
        let group = alloc.job().group(record.group.as_str());
        let settings = group.and_then(|group| group.ephemeral_disk);
        let known = self.shared.disks.get(&record.slot());
        let awaited = known.and_then(|disk| disk.elsewhere_of(id));
        let awaited = awaited.filter(|previous| previous.of_servers && previous.alloc != id);
        let Some(previous) = awaited.and_then(|previous| self.of_servers(previous.alloc)) else {
            return;
        };
        let settings: EphemeralDisk = settings.unwrap_or_default();
        let disk = self.disk_left_by(previous);
        let disk = disk.placed(id, settings, |id| self.of_servers(id).is_some());
        cx(&self.config, &mut self.shared, now).save_disk(record.slot(), disk);
    }

    fn of_servers(&self, id: AllocId) -> Option<&AllocRecord> {
        let alloc = self.allocs.get(&id).map(|alloc| alloc.record());
        let alloc = alloc.filter(|alloc| alloc.of_servers && !alloc.destroying);
        alloc.map(|alloc| &**alloc)
    }

    /// What an allocation of servers has of its disk, or was to get: also what it still awaits of another node.
    fn disk_left_by(&self, previous: &AllocRecord) -> Disk {
        let known = self.shared.disks.get(&previous.slot());
        let sources = known.map(|disk| disk.sources_of(previous.id).to_vec());
        Disk {
            holder: Some(previous.id),
            sources: sources.unwrap_or_default(),
            elsewhere: known.and_then(|disk| disk.elsewhere.clone()),
            ..Disk::default()
        }
    }
}

/// What an allocation that servers placed replaces, if that is on another node; this node's own is known by its id.
fn replaced_by(placed: &PlacedAlloc, token: Option<&Secret>) -> Option<RemotePrevious> {
    Some(RemotePrevious {
        alloc: placed.previous?,
        token: token.cloned().unwrap_or_default(),
        of_servers: true,
        ..RemotePrevious::default()
    })
}
