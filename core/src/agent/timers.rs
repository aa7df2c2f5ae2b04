//! When the agent wants to be called back, and why.

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::alloc::runner::AllocTimer;
use crate::ids::{AllocId, JobKey};
use crate::op::Op;
use crate::server::{Server, ServerTimer};
use crate::time::Instant;

/// Why [`Agent::poll_timeout`] wants to be called back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimerName {
    /// A commit is tried again, or changes waited long enough for one.
    Store,
    /// A probe, a driver or a plugin is asked again, or did not answer.
    Machine,
    /// Garbage is looked for that only time makes.
    Garbage,
    /// A job has to be checked again.
    Job(JobKey),
    /// The deadline of a drain comes.
    Drain,
    /// The time of a periodic job comes.
    Periodic(JobKey),
    /// The images of a job are looked at.
    Images(JobKey),
    /// A roll-out of a job made no progress in time.
    Progress(JobKey),
    /// The time for the answer of an operation is over.
    Operation(Op),
    /// One of an allocation.
    Alloc(AllocId, AllocTimer),
    /// A token of the API expires.
    Acl,
    /// The servers of the cluster are to hear something.
    Server(ServerTimer),
}

impl Agent {
    /// When [`Agent::handle_timeout`] has to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerName)> {
        if self.stopped {
            return None;
        }
        let store = self
            .shared
            .ledger
            .deadline()
            .map(|at| (at, TimerName::Store));
        if self.keeps_tasks() {
            return store;
        }
        let job = self
            .local
            .re_evaluate_at
            .iter()
            .map(|(key, at)| (*at, key))
            .min();
        let job = job.map(|(at, key)| (at, TimerName::Job(key.clone())));
        let periodic = (self.launches.deadline(|key| self.is_overlap_unknown(key)))
            .filter(|_| self.shutdown.is_none());
        let periodic = periodic.map(|(at, key)| (at, TimerName::Periodic(key.clone())));
        let images = self.images.deadline(self.launches.wall_ahead());
        let images = images.filter(|_| self.shutdown.is_none());
        let images = images.map(|(at, key)| (at, TimerName::Images(key.clone())));
        let progress = self.local.progress.iter().flat_map(|(key, groups)| {
            let times = groups.values().map(|one| one.at);
            times.map(move |at| (at, key))
        });
        let progress = progress.min();
        let progress = progress.map(|(at, key)| (at, TimerName::Progress(key.clone())));
        let alloc = self.queue.iter().find_map(|(at, id)| {
            let (_, timer) = self.allocs.get(id)?.deadline()?;
            Some((*at, TimerName::Alloc(*id, timer)))
        });
        let operation = self.shared.operations.deadline();
        let operation = operation.map(|(at, op)| (at, TimerName::Operation(op)));
        let machine = self.machine.deadline().map(|at| (at, TimerName::Machine));
        let garbage = self.garbage_due().map(|at| (at, TimerName::Garbage));
        let drain = self.node_life.deadline().map(|at| (at, TimerName::Drain));
        let acl = self.acl.deadline().map(|at| (at, TimerName::Acl));
        let server = self.server.as_ref().and_then(Server::deadline);
        let server = server.map(|(at, timer)| (at, TimerName::Server(timer)));
        let all = [
            store, machine, garbage, drain, acl, job, periodic, images, progress, operation, alloc,
            server,
        ];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// The next timer of an allocation; none if it has none.
    pub(super) fn set_timer(&mut self, id: AllocId, at: Option<Instant>) {
        let old = match at {
            Some(at) => self.timers.insert(id, at),
            None => self.timers.remove(&id),
        };
        if old == at {
            return;
        }
        if let Some(old) = old {
            self.queue.remove(&(old, id));
        }
        if let Some(at) = at {
            self.queue.insert((at, id));
        }
    }
}
