//! How much the directories of allocations take, beside what their groups ask for (`ephemeral_disk { size }`).
//!
//! While any allocation runs, the directories are measured now and then. Whose directory takes all that was asked for,
//! or more, is told so, each of its tasks by an event, once until it takes clearly less again. Nothing else follows: a
//! job that runs elsewhere with more than it asked for runs here, too, unless the agent's configuration wants limits
//! ([`crate::alloc::hooks::disk_quota`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Agent, cx};
use crate::cx::Cx;
use crate::effect::{Effect, NodeEffect};
use crate::ids::AllocId;
use crate::model::alloc::ClientStatus;
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::time::{Instant, Now};

/// A directory that lacks no more than this is full: the last block is never filled to its last byte.
const FULL: u64 = 64 * 1024;

/// What is known of the directories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DirUsage {
    next: Next,
    /// Who was told, and did not take clearly less since.
    over: BTreeSet<AllocId>,
    /// What was measured and is not looked at yet, in bytes.
    measured: BTreeMap<AllocId, u64>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Next {
    /// Nothing, while nothing runs.
    #[default]
    Nothing,
    /// A question, then.
    Question(Instant),
    /// A question, now.
    Now,
    /// The answer to this one.
    Answer(Op),
}

impl DirUsage {
    /// Whether nothing is known and nothing is awaited.
    pub(super) fn is_idle(&self) -> bool {
        *self == DirUsage::default()
    }

    /// When [`DirUsage::handle_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.next {
            Next::Question(at) => Some(at),
            Next::Nothing | Next::Now | Next::Answer(_) => None,
        }
    }

    /// The question whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match self.next {
            Next::Answer(op) => Some(op),
            Next::Nothing | Next::Question(_) | Next::Now => None,
        }
    }

    /// The pause before the next question may be over.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.next = Next::Now;
        }
    }

    /// Takes the answer.
    pub(super) fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: Result<BTreeMap<AllocId, u64>, Failure>,
    ) {
        let Some(interval) = cx.config.dir_usage.filter(|_| self.awaited() == Some(op)) else {
            return cx.count_stale();
        };
        self.next = Next::Question(cx.now.at + interval);
        self.measured = result.unwrap_or_default();
    }

    /// The answer did not come in time.
    pub(super) fn on_overdue(&mut self, cx: &Cx<'_>) {
        self.next = match cx.config.dir_usage {
            Some(interval) => Next::Question(cx.now.at + interval),
            None => Next::Nothing,
        };
    }

    /// An allocation is gone.
    pub(super) fn on_removed(&mut self, alloc: AllocId) {
        self.over.remove(&alloc);
    }

    /// Whether this use of that much is to be told.
    fn passes(&mut self, alloc: AllocId, used: u64, size: u64) -> bool {
        let clearly_less = size - size / 10;
        if used >= size.saturating_sub(FULL) {
            return self.over.insert(alloc);
        }
        if used < clearly_less {
            self.over.remove(&alloc);
        }
        false
    }
}

impl Agent {
    /// Asks how much the directories take of what runs, if it is time for that.
    pub(super) fn measure_dirs(&mut self, now: Now) {
        let Some(interval) = self.config.dir_usage.filter(|_| self.shutdown.is_none()) else {
            return;
        };
        let records = self.allocs.values().map(|alloc| alloc.record());
        let mut running = records.filter(|alloc| alloc.status == ClientStatus::Running);
        let next = match self.machine.dir_usage.next {
            Next::Question(_) | Next::Answer(_) => return,
            Next::Nothing if running.next().is_none() => return,
            Next::Nothing => Next::Question(now.at + interval),
            Next::Now => {
                let allocs: Vec<AllocId> = running.map(|alloc| alloc.id).collect();
                if allocs.is_empty() {
                    Next::Nothing
                } else {
                    let limit = self.config.timeouts.hook;
                    let mut cx = cx(&self.config, &mut self.shared, now);
                    let op = cx.operation(Owner::Machine, Purpose::DirUsage, limit);
                    cx.send(Effect::Node(NodeEffect::MeasureDirs { op, allocs }));
                    Next::Answer(op)
                }
            }
        };
        self.machine.dir_usage.next = next;
    }

    /// Tells those whose directories take more than they asked for. Returns them.
    pub(super) fn tell_dir_usage(&mut self, now: Now) -> BTreeSet<AllocId> {
        let measured = core::mem::take(&mut self.machine.dir_usage.measured);
        let mut told = BTreeSet::new();
        for (id, used) in measured {
            let Some(alloc) = self.allocs.get_mut(&id) else {
                continue;
            };
            let size = alloc.disk_size();
            if self.machine.dir_usage.passes(id, used, size) {
                alloc.disk_exceeded(&mut cx(&self.config, &mut self.shared, now), used, size);
                told.insert(id);
            }
        }
        told
    }
}
