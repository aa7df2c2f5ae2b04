//! Operations in flight: what was asked of the outside, for whom, and how long its answer is awaited.
//!
//! There is one table of them. An owner keeps the number ([`Op`]) of what it asked for and nothing else:
//!
//! - **The time for an answer begins when the request leaves** ([`Operations::on_sent`], called for every
//!   effect at the end of each step). What the ledger holds back until a commit has no deadline yet:
//!   nobody outside is blamed for a full disk.
//! - **An answer goes through the table** ([`Operations::answered`]). One that nobody awaits (late, doubled,
//!   of somebody else) ends here, and is counted as stale.
//! - **An operation whose time is over** is reported to its owner, once ([`Operations::overdue`]).
//! - Whoever wants an answer no more ends the operation ([`Operations::end`]).
//!
//! Two kinds live on after their first answer or after their deadline. A *stream* (templates that are watched,
//! open sessions, reports of drivers and plugins) goes on under its number until it is ended. The late answer to a
//! *destroy*, or to the move of a disk, is not stale: that nothing of a launch is alive, or that a disk has
//! moved, is true whenever it is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::CallKind;
use crate::ids::{AllocId, JobKey, TaskKey, VolumeId};
use crate::op::Op;
use crate::time::{Instant, Span};

/// Who awaits an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// A task.
    Task(TaskKey),
    /// An allocation, for itself.
    Alloc(AllocId),
    /// Whoever knows the machine.
    Machine,
    /// Whoever speaks with the servers of the cluster.
    Server,
    /// A job, for its images.
    Job(JobKey),
}

impl Owner {
    /// The allocation that it is a part of.
    pub fn alloc(&self) -> Option<AllocId> {
        match self {
            Owner::Task(key) => Some(key.alloc),
            Owner::Alloc(alloc) => Some(*alloc),
            Owner::Machine | Owner::Server | Owner::Job(_) => None,
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// To start a task.
    Start,
    /// To find a launch of an earlier life of the agent.
    Recover,
    /// To ask a task to end.
    Stop,
    /// To send a signal.
    Signal,
    /// To run a program beside a task.
    Exec,
    /// To open a session beside a task, and to hear of its end.
    Session,
    /// To end what is left of a launch.
    Destroy,
    /// The work of a hook.
    Hook,
    /// What a check of a service finds.
    Check,
    /// To take over a disk.
    MoveDisk,
    /// To render templates and to watch them.
    Templates,
    /// What this probe finds.
    Probe(Arc<str>),
    /// Reports of this driver.
    Driver(Arc<str>),
    /// Reports of this plugin's devices.
    Devices(Arc<str>),
    /// How full the disk is.
    DiskUsage,
    /// How much the directories of allocations take.
    DirUsage,
    /// The local time of this zone.
    TimeZone(Arc<str>),
    /// The directory of this volume.
    Volume(VolumeId),
    /// A call to the servers.
    Call(CallKind),
    /// What the tag of an image means in its registry.
    Image,
}

impl Purpose {
    /// Whether reports follow after the first answer.
    fn is_stream(&self) -> bool {
        matches!(
            self,
            Purpose::Session | Purpose::Templates | Purpose::Driver(_) | Purpose::Devices(_)
        )
    }

    /// Whether its answer is true whenever it comes.
    fn is_true_when_late(&self) -> bool {
        matches!(self, Purpose::Destroy | Purpose::MoveDisk)
    }
}

/// How long an answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wait {
    /// The request did not leave yet. From when it does, the answer may take this long.
    Held(Span),
    /// Until then.
    Until(Instant),
    /// As long as it takes.
    Open,
    /// It was answered; reports follow.
    Reports,
    /// No longer; the answer counts nevertheless.
    Over,
}

/// An operation in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operation {
    /// Who awaits the answer.
    pub owner: Owner,
    /// What was asked for.
    pub purpose: Purpose,
    /// How long it is awaited.
    pub wait: Wait,
}

impl Operation {
    /// When the wait for its answer ends, where that is known.
    pub fn until(&self) -> Option<Instant> {
        match self.wait {
            Wait::Until(at) => Some(at),
            Wait::Held(_) | Wait::Open | Wait::Reports | Wait::Over => None,
        }
    }
}

/// Every operation in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Operations {
    open: BTreeMap<Op, Operation>,
    /// The deadlines again, in order of time.
    due: BTreeSet<(Instant, Op)>,
}

impl Operations {
    /// An operation that is asked for in this step. Its answer may take `limit` from when it leaves.
    pub fn begin(&mut self, op: Op, owner: Owner, purpose: Purpose, limit: Span) {
        let wait = Wait::Held(limit);
        let operation = Operation {
            owner,
            purpose,
            wait,
        };
        self.open.insert(op, operation);
    }

    /// The request of `op` leaves the agent: the time for its answer begins.
    pub fn on_sent(&mut self, now: Instant, op: Op) {
        if let Some(Operation {
            wait: Wait::Held(limit),
            ..
        }) = self.open.get(&op)
        {
            let until = Wait::Until(now + *limit);
            self.set(op, until);
        }
    }

    /// The answer to `op` came for `owner`, whether it `succeeded` or not. Returns what was awaited; nothing
    /// if the answer is stale.
    pub fn answered(&mut self, owner: &Owner, op: Op, succeeded: bool) -> Option<Operation> {
        let operation = self.open.get(&op)?;
        if operation.owner != *owner || operation.wait == Wait::Reports {
            return None;
        }
        let operation = operation.clone();
        if succeeded && operation.purpose.is_stream() {
            self.set(op, Wait::Reports);
        } else {
            self.end(op);
        }
        Some(operation)
    }

    /// A report under `op` came for `owner`, to whom it is the answer and to which more follow. `false` if
    /// it is stale.
    pub fn reported(&mut self, owner: &Owner, op: Op) -> bool {
        let awaited = self.is_awaited(owner, op);
        if awaited {
            self.set(op, Wait::Reports);
        }
        awaited
    }

    /// Whether `owner` awaits anything under this number.
    pub fn is_awaited(&self, owner: &Owner, op: Op) -> bool {
        self.open.get(&op).is_some_and(|one| one.owner == *owner)
    }

    /// The next operation whose time is over. It is awaited no more.
    pub fn overdue(&mut self, now: Instant) -> Option<(Op, Operation)> {
        let (_, op) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let operation = self.open.get(&op)?.clone();
        if operation.purpose.is_true_when_late() {
            self.set(op, Wait::Over);
        } else {
            self.end(op);
        }
        Some((op, operation))
    }

    /// The answer to `op` is awaited for `limit` from now, or for as long as it takes.
    pub fn extend(&mut self, now: Instant, op: Op, limit: Option<Span>) {
        let wait = limit.map_or(Wait::Open, |limit| Wait::Until(now + limit));
        self.set(op, wait);
    }

    /// The answer to `op` is awaited no longer than `limit` from now.
    pub fn shorten_deadline(&mut self, now: Instant, op: Op, limit: Span) {
        let until = now + limit;
        let wait = match self.open.get(&op).map(|one| one.wait) {
            Some(Wait::Held(before)) => Wait::Held(before.min(limit)),
            Some(Wait::Until(before)) => Wait::Until(before.min(until)),
            Some(Wait::Open) => Wait::Until(until),
            Some(Wait::Reports | Wait::Over) | None => return,
        };
        self.set(op, wait);
    }

    /// Nobody awaits `op` any more.
    pub fn end(&mut self, op: Op) {
        if let Some(at) = self.open.remove(&op).and_then(|one| one.until()) {
            self.due.remove(&(at, op));
        }
    }

    /// Nobody awaits these any more.
    pub fn end_all(&mut self, mut which: impl FnMut(&Operation) -> bool) {
        let all = self.open.iter().filter(|(_, one)| which(one));
        for op in all.map(|(op, _)| *op).collect::<Vec<_>>() {
            self.end(op);
        }
    }

    /// What is awaited under this number.
    pub fn get(&self, op: Op) -> Option<&Operation> {
        self.open.get(&op)
    }

    /// All of them, in the order in which they were asked for.
    pub fn iter(&self) -> impl Iterator<Item = (Op, &Operation)> {
        self.open.iter().map(|(op, one)| (*op, one))
    }

    /// The next deadline, and whose.
    pub fn deadline(&self) -> Option<(Instant, Op)> {
        self.due.first().copied()
    }

    fn set(&mut self, op: Op, wait: Wait) {
        let Some(operation) = self.open.get_mut(&op) else {
            return;
        };
        if let Some(before) = operation.until() {
            self.due.remove(&(before, op));
        }
        operation.wait = wait;
        if let Some(until) = operation.until() {
            self.due.insert((until, op));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Span = Span::secs(10);

    fn late(at: i64) -> Instant {
        Instant(0) + Span::secs(at)
    }

    fn one(purpose: Purpose) -> Operations {
        let mut all = Operations::default();
        all.begin(Op(1), Owner::Machine, purpose, LIMIT);
        all
    }

    #[test]
    fn timeout_of_held_operation_starts_when_sent() {
        let mut all = one(Purpose::Start);
        assert_eq!(all.deadline(), None, "it did not leave yet");
        assert_eq!(all.overdue(late(1000)), None);
        all.on_sent(late(1000), Op(1));
        all.on_sent(late(1005), Op(1));
        assert_eq!(all.deadline(), Some((late(1010), Op(1))), "it leaves once");
        assert_eq!(all.overdue(late(1009)), None, "spurious");
        assert!(all.overdue(late(1010)).is_some());
        assert_eq!(all.overdue(late(1010)), None, "reported once");
        assert_eq!(all.answered(&Owner::Machine, Op(1), false), None, "stale");
    }

    #[test]
    fn only_awaited_answer_counts_once() {
        let mut all = one(Purpose::Start);
        all.on_sent(late(0), Op(1));
        assert_eq!(all.answered(&Owner::Machine, Op(2), false), None);
        let other = Owner::Alloc(AllocId(1));
        assert_eq!(all.answered(&other, Op(1), false), None, "of somebody else");
        assert!(all.answered(&Owner::Machine, Op(1), false).is_some());
        assert_eq!(all.answered(&Owner::Machine, Op(1), false), None, "doubled");
        assert_eq!(all, Operations::default(), "nothing is left of it");
    }

    #[test]
    fn late_destroy_answer_counts() {
        let mut all = one(Purpose::Destroy);
        all.on_sent(late(0), Op(1));
        assert!(all.overdue(late(10)).is_some());
        assert_eq!(all.deadline(), None);
        let answered = all.answered(&Owner::Machine, Op(1), false);
        assert_eq!(answered.map(|one| one.wait), Some(Wait::Over));
    }

    #[test]
    fn stream_operation_lasts_until_ended() {
        let mut all = one(Purpose::Templates);
        all.on_sent(late(0), Op(1));
        assert!(all.answered(&Owner::Machine, Op(1), true).is_some());
        assert_eq!(all.deadline(), None, "it may be silent from now on");
        assert_eq!(all.answered(&Owner::Machine, Op(1), false), None, "doubled");
        assert!(all.reported(&Owner::Machine, Op(1)));
        all.end(Op(1));
        assert!(!all.reported(&Owner::Machine, Op(1)));
    }

    #[test]
    fn shortened_deadline_is_never_extended() {
        let mut all = one(Purpose::Hook);
        all.shorten_deadline(late(0), Op(1), Span::secs(3));
        all.on_sent(late(5), Op(1));
        all.shorten_deadline(late(5), Op(1), Span::secs(60));
        assert_eq!(all.deadline(), Some((late(8), Op(1))));
        all.extend(late(5), Op(1), None);
        assert_eq!(all.deadline(), None, "as long as it takes");
        all.shorten_deadline(late(6), Op(1), Span::secs(1));
        assert_eq!(all.deadline(), Some((late(7), Op(1))));
    }
}
