//! Carries out garbage collection: [`crate::scheduler::collection`] says which ended allocations are removed,
//! [`crate::scheduler::garbage`] what is forgotten with time.
//!
//! Nobody has to remember to ask for it: what it decides by counts its own changes (plans, because what jobs still need
//! is known then; disks that moved; reports that servers took), and a step does not end before the last change was
//! looked at. Garbage is looked for when the oldest of it is old enough.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Agent, cx};
use crate::ids::AllocId;
use crate::model::alloc::DesiredStatus;
use crate::scheduler::collection::{Goal, collect};
use crate::scheduler::garbage::{Garbage, INTERVAL, Kept, Limits, garbage};
use crate::scheduler::gc_snapshot::GcSnapshot;
use crate::server::Server;
use crate::store::record::JobRecord;
use crate::time::{Instant, Now, Timestamp};

/// What garbage collection has to do yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CollectionState {
    /// What was known the last time; nothing at the start, since an earlier life may have kept too much.
    seen: Option<Facts>,
    /// Whether somebody asked for all that can go.
    all: bool,
    /// When garbage is looked for that only time makes.
    garbage_at: Option<Instant>,
}

/// How often that changed by which it is decided what goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Facts {
    plans: u64,
    disks: u64,
    /// Of allocations of servers, whose end these may know now.
    reports: u64,
}

impl Agent {
    /// Whether something may have to go that did not have to the last time.
    pub(super) fn collection_is_due(&self, now: Now) -> bool {
        self.collection.all
            || self.collection.seen != Some(self.collection_facts())
            || self.machine.disk_pressure.awaits_collection()
            || self.garbage_due().is_some_and(|at| at <= now.at)
    }

    fn collection_facts(&self) -> Facts {
        Facts {
            plans: self.local.plans,
            disks: self.shared.disk_changes,
            reports: self.server.as_ref().map_or(0, Server::acknowledgements),
        }
    }

    /// All that can go is removed in this step.
    pub(super) fn collect_all(&mut self) {
        self.collection.all = true;
    }

    /// Removes what is too much, and forgets what is too old. Returns what it touched.
    pub(super) fn collect(&mut self, now: Now) -> BTreeSet<AllocId> {
        self.collection.seen = Some(self.collection_facts());
        let all = core::mem::take(&mut self.collection.all);
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
            let due = self.collection.garbage_at;
            self.collection.garbage_at = Some(due.map_or(soon, |at| at.min(soon)));
        }
    }

    /// When garbage is looked for: not before jobs were planned, since what they still need is known then.
    pub(super) fn garbage_due(&self) -> Option<Instant> {
        let due = self.collection.garbage_at;
        due.filter(|_| !self.shared.fingerprint_pending)
    }

    /// Forgets what is old enough, if it is time to look; all that is garbage, however young, if that is `forced`.
    fn forget_garbage(&mut self, now: Now, forced: bool) {
        if forced {
            self.forget(now, Limits::None);
        }
        if self.garbage_due().is_none_or(|at| at > now.at) {
            return;
        }
        self.collection.garbage_at = None;
        if let Some(limits) = self.config.retention {
            let next = self.forget(now, Limits::Age(limits)).next;
            self.collection.garbage_at = next.map(|left| now.at + left.max(INTERVAL));
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
