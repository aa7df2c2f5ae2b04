//! What garbage collection depends on: allocations, deployments and disks, and which of them are still
//! needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{by_id, reconcile};
use crate::ids::{AllocId, DeploymentId, GroupName, JobKey, Slot};
use crate::model::alloc::{ClientStatus, DesiredStatus};
use crate::model::eval::Deployment;
use crate::model::job::JobStatus;
use crate::store::disk::Disk;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::Timestamp;

/// The state on which garbage collection decides.
#[derive(Clone, Debug)]
pub struct GcSnapshot<'a> {
    /// The wall clock.
    pub now: Timestamp,
    /// All allocations whose directories are not removed yet, by id.
    pub allocs: Vec<&'a AllocRecord>,
    /// Those that servers placed here and of whose end they do not know yet.
    pub unreported: BTreeSet<AllocId>,
    /// Which of them belong to which job.
    pub allocs_of: &'a BTreeMap<JobKey, BTreeSet<AllocId>>,
    /// All roll-outs.
    pub deployments: &'a BTreeMap<DeploymentId, Arc<Deployment>>,
    /// The disks of slots that have a record.
    pub disks: &'a BTreeMap<Slot, Arc<Disk>>,
    /// Jobs of which something is replaced later, or waits to be placed.
    pub waiting: BTreeSet<&'a JobKey>,
}

impl<'a> GcSnapshot<'a> {
    /// The records of a job's allocations.
    pub fn records_of(&self, job: &JobKey) -> Vec<&'a AllocRecord> {
        let of_job = self.allocs_of.get(job);
        let records = of_job.map(|ids| by_id::find_all(&self.allocs, ids));
        records.unwrap_or_default()
    }

    fn alloc(&self, id: AllocId) -> Option<&'a AllocRecord> {
        by_id::find(&self.allocs, id).copied()
    }

    /// Where a job is in its life.
    pub fn status_of(&self, record: &JobRecord) -> JobStatus {
        let key = record.job.key();
        let records = self.records_of(&key);
        let waits = self.waiting.contains(&key);
        job_status(record, records.into_iter(), waits)
    }

    /// Whether something still depends on an allocation that ended: its replacement, who gets its disk,
    /// its roll-out, or the servers that have yet to hear of it.
    pub fn is_needed(&self, alloc: &AllocRecord) -> bool {
        self.is_needed_beside(alloc, &self.awaited_disks(false))
    }

    /// The same, if the disks of these allocations are awaited.
    pub(super) fn is_needed_beside(
        &self,
        alloc: &AllocRecord,
        awaited: &BTreeSet<AllocId>,
    ) -> bool {
        let is_unreported = self.unreported.contains(&alloc.id);
        let awaits = self.awaits_replacement(alloc) || awaited.contains(&alloc.id);
        is_unreported || awaits || self.counts(alloc)
    }

    /// Whether another node may still fetch the disk of this allocation.
    pub fn is_leased(&self, alloc: &AllocRecord) -> bool {
        // Most have none, and a slot is dear to name.
        if self.disks.is_empty() {
            return false;
        }
        let disk = self.disks.get(&alloc.slot());
        disk.is_some_and(|disk| disk.is_leased(alloc.id, self.now))
    }

    /// The allocations whose disks somebody may still take over; or those, too, whose taker ended without.
    pub(super) fn awaited_disks(&self, without: bool) -> BTreeSet<AllocId> {
        let may_take =
            |holder: &AllocRecord| without || !holder.finished || self.awaits_replacement(holder);
        // Where the holder is gone, the latest source is the next that may have taken over what the others have.
        let awaited = self.disks.values().filter_map(|disk| {
            let mut chain = disk.holder.iter().chain(&disk.sources);
            let taker = self.alloc(*chain.next()?)?;
            may_take(taker).then_some(chain.copied())
        });
        awaited.flatten().collect()
    }

    /// Whether the allocation's end still decides about a replacement.
    fn awaits_replacement(&self, alloc: &AllocRecord) -> bool {
        // Those of servers are replaced by them.
        !alloc.of_servers && alloc.next.is_none() && self.waiting.contains(&alloc.job)
    }

    /// Whether a roll-out that is under way still counts the allocation: what it proved would be
    /// forgotten, and the roll-out never be over.
    fn counts(&self, alloc: &AllocRecord) -> bool {
        let rollout = alloc.deployment.and_then(|id| self.deployments.get(&id));
        rollout.is_some_and(|rollout| rollout.is_active())
    }
}

/// Where a job is in its life, by its allocations and whether something of it
/// is replaced later or waits to be placed.
pub fn job_status<'a>(
    record: &JobRecord,
    mut allocs: impl Iterator<Item = &'a AllocRecord> + Clone,
    waits: bool,
) -> JobStatus {
    let live = |alloc: &AllocRecord| {
        !alloc.finished && matches!(alloc.status, ClientStatus::Running | ClientStatus::Pending)
    };
    if allocs.clone().any(live) {
        return JobStatus::Running;
    }
    if record.job.is_template() {
        return match record.job.stop {
            true => JobStatus::Dead,
            false => JobStatus::Running,
        };
    }
    // It was preempted and has no replacement yet.
    let evicted = |alloc: &AllocRecord| {
        let left = alloc.desired == DesiredStatus::Evict && alloc.next.is_none();
        left && alloc.index < wanted(record, &alloc.group)
    };
    let any_evicted = allocs.clone().any(evicted);
    // Of a job that wants no copies nothing is waited for.
    let mut groups = record.job.task_groups.iter();
    let wants_copies = groups.any(|group| reconcile::copies(&record.job, group) > 0);
    let never_placed = wants_copies && allocs.next().is_none() && record.done.is_empty();
    let more_to_come = !record.job.stop && (waits || never_placed || any_evicted);
    match more_to_come {
        true => JobStatus::Pending,
        false => JobStatus::Dead,
    }
}

/// How many copies of a group are wanted; none of one that the job no longer has.
pub fn wanted(job: &JobRecord, group: &GroupName) -> u32 {
    let group = job.job.group(group.as_str());
    group.map_or(0, |group| reconcile::copies(&job.job, group))
}
