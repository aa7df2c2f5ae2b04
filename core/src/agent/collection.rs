//! Carries out garbage collection: [`crate::scheduler::collection`] says which ended allocations are removed,
//! [`crate::scheduler::garbage`] what is forgotten with time.
//!
//! Allocations are counted after each plan, because what jobs still need is known then; when a disk moved; when the
//! free space was measured; and when somebody asks for it. Garbage is looked for when the oldest of it
//! is old enough.

use std::collections::BTreeSet;

use super::{Agent, cx};
use crate::ids::AllocId;
use crate::model::alloc::DesiredStatus;
use crate::scheduler::collection::{Goal, collect};
use crate::scheduler::garbage::{Garbage, INTERVAL, Kept, Limits, garbage};
use crate::scheduler::gc_snapshot::GcSnapshot;
use crate::store::record::JobRecord;
use crate::time::{Instant, Now, Timestamp};

impl Agent {
    /// Removes what is too much, and forgets what is too old. Returns what it touched.
    pub(super) fn collect(&mut self, now: Now) -> BTreeSet<AllocId> {
        let all = core::mem::take(&mut self.collect_all);
        self.forget_garbage(now, all);
        let goal = Goal {
            keep: self.config.keep_terminal,
            under_pressure: self.machine.disk_pressure.take_pressure(),
            all,
        };
        let collection = collect(&self.gc_snapshot(now.wall), goal);
        let measured = collection.others || self.config.notices;
        let may_free_more = measured && self.shutdown.is_none();
        let disk_pressure = &mut self.machine.disk_pressure;
        let mut cx = cx(&self.config, &mut self.shared, now);
        disk_pressure.check(&mut cx, collection.for_space, may_free_more);
        for id in &collection.remove {
            self.remove(now, *id);
        }
        collection.remove.into_iter().collect()
    }

    /// What is kept of what is over.
    pub(super) fn gc_snapshot(&self, now: Timestamp) -> GcSnapshot<'_> {
        let local = &self.local;
        let replaced_later = local.re_evaluate_at.keys();
        let unplaced = local.blocked.keys().chain(&local.unknown);
        let allocs = self.allocs.values().map(|alloc| &**alloc.record());
        GcSnapshot {
            now,
            allocs: allocs.collect(),
            unreported: self.unreported(),
            allocs_of: &local.allocs,
            deployments: &local.deployments,
            disks: &self.shared.disks,
            waiting: replaced_later.chain(unplaced).collect(),
        }
    }

    /// Removes an allocation that ended. Asking again changes nothing.
    pub(super) fn remove(&mut self, now: Now, id: AllocId) {
        self.record_on_job(id);
        if let Some(alloc) = self.allocs.get_mut(&id) {
            let of_servers = alloc.record().of_servers;
            alloc.destroy(&mut cx(&self.config, &mut self.shared, now));
            if of_servers {
                self.disks_lose(now, id);
            }
        }
    }

    /// What the job has to know of an ended allocation when that is removed: that its copy is complete.
    fn record_on_job(&mut self, id: AllocId) {
        let alloc = self.allocs.get(&id).map(|alloc| alloc.record().clone());
        // What servers placed is none of the job's copies, whatever its name.
        let Some(alloc) = alloc.filter(|alloc| !alloc.of_servers) else {
            return;
        };
        let Some(job) = self.local.jobs.get(&alloc.job) else {
            return;
        };
        // A canary is beside its copy, which goes on without it.
        if alloc.next.is_some() || alloc.destroying || alloc.canary {
            return;
        }
        let mut left = JobRecord::clone(job);
        if alloc.desired == DesiredStatus::Run && alloc.job_version == job.job.version {
            left.done.insert(alloc.group.clone(), alloc.index);
        }
        if left != **job {
            self.save_job(&alloc.job, left);
        }
    }

    /// Something may have become garbage: it is looked for in a while.
    pub(super) fn expect_garbage(&mut self, now: Now) {
        if self.config.retention.is_some() {
            let soon = now.at + INTERVAL;
            self.garbage_at = Some(self.garbage_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// When garbage is looked for: not before jobs were planned, since what they still need is known then.
    pub(super) fn garbage_due(&self) -> Option<Instant> {
        self.garbage_at.filter(|_| !self.shared.fingerprint_pending)
    }

    /// Forgets what is old enough, if it is time to look; all that is garbage, however young, if that is `forced`.
    fn forget_garbage(&mut self, now: Now, forced: bool) {
        if forced {
            self.forget(now, Limits::None);
        }
        if self.garbage_due().is_none_or(|at| at > now.at) {
            return;
        }
        self.garbage_at = None;
        if let Some(limits) = self.config.retention {
            let next = self.forget(now, Limits::Age(limits)).next;
            self.garbage_at = next.map(|left| now.at + left.max(INTERVAL));
        }
    }

    fn forget(&mut self, now: Now, limits: Limits) -> Garbage {
        let kept = Kept {
            gc_snapshot: self.gc_snapshot(now.wall),
            jobs: &self.local.jobs,
            evals: &self.local.evals,
            records: self.collected.by_age().map(|one| &one.alloc).collect(),
        };
        let garbage = garbage(&kept, limits);
        for key in &garbage.jobs {
            self.forget_dead_job(now, key);
        }
        garbage.evals.iter().for_each(|id| self.forget_eval(*id));
        for id in &garbage.deployments {
            self.forget_deployment(*id);
        }
        garbage
            .records
            .iter()
            .for_each(|id| self.forget_record(*id));
        let records = garbage.evals.len() + garbage.deployments.len() + garbage.records.len();
        if records > 0 {
            // What goes may be what the index was last used for.
            cx(&self.config, &mut self.shared, now).next_index_without_a_record();
        }
        garbage
    }
}
