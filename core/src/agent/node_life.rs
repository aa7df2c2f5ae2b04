//! What people decide about this node: whether it takes new allocations, and whether it is drained.
//!
//! - **A drain never forgets.** It is in the node's record, and what is told to end is in the records of
//!   allocations, so that the next agent goes on where this one ended.
//! - **The deadline is kept** by the boot clock as long as an agent lives; the next one goes on by the wall clock,
//!   and waits no longer than was asked for.
//! - **What is stopped next** says [`crate::scheduler::drain`], whenever an allocation ended or was told to, and at
//!   the deadline. Nobody looks in between.
//! - **Metadata** that is applied while the agent runs lies over that of the configuration (`Node::meta`), and jobs
//!   whose constraints it may fulfil are evaluated.
//! - **A drained node stays ineligible** until somebody makes it eligible again; the jobs that could not be placed
//!   meanwhile wait in their blocked evaluations, and are evaluated then.

use crate::model::job::JobStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Agent, cx};
use crate::alloc::runner::Update;
use crate::effect::{Refusal, Reply};
use crate::ids::{AllocId, JobKey};
use crate::model::drain::{
    DrainDeadline, DrainSpec, DrainStatus, DrainStrategy, Eligibility, LastDrain,
};
use crate::model::eval::{Evaluation, Trigger};
use crate::model::node::NodeEvent;
use crate::scheduler::drain::{Drained, Pace, drain_step};
use crate::store::node::NodeRecord;
use crate::store::{Key, Record, Saved};
use crate::time::{Instant, Now, Span, Timestamp};

/// What people decided about this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeLife {
    pub(super) record: Arc<NodeRecord>,
    /// When the deadline of the drain comes, by the boot clock; none if it has none, or if it is over.
    deadline: Option<Instant>,
    /// Whether the deadline is over.
    forced: bool,
    /// Whether it has to be looked at what is drained next.
    due: bool,
    /// The operator's keys, as the configuration gives them.
    pub(super) configured_meta: BTreeMap<String, String>,
}

impl NodeLife {
    pub(super) fn is_default(&self) -> bool {
        *self == NodeLife::default()
    }

    /// When what is left is stopped.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// An allocation ended, or was told to.
    pub(super) fn alloc_changed(&mut self) {
        self.due |= self.record.drain.is_some();
    }

    /// Whether it has to be looked at what is drained next; it is looked at then.
    pub(super) fn take_due(&mut self) -> bool {
        core::mem::take(&mut self.due)
    }

    /// The deadline may be over.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        if self.deadline.is_some_and(|at| at <= now.at) {
            (self.deadline, self.forced, self.due) = (None, true, true);
        }
    }

    /// The record is another one. A deadline is reached after `left`, if there is one.
    fn follow(&mut self, now: Now) {
        let drain = self.record.drain;
        self.due = drain.is_some();
        (self.deadline, self.forced) = match drain.map(|drain| (drain.spec.deadline, drain)) {
            None | Some((DrainDeadline::Never, _)) => (None, false),
            Some((DrainDeadline::Force, _)) => (None, true),
            Some((DrainDeadline::After(span), drain)) => {
                let left = drain.force_at.unwrap_or(now.wall) - now.wall;
                let left = Span(left.0.min(span.0));
                match left.is_zero() {
                    true => (None, true),
                    false => (Some(now.at + left), false),
                }
            }
        };
    }
}

impl Agent {
    pub(super) fn restore_node(&mut self, saved: &Saved, now: Now) {
        self.node_life.configured_meta = self.config.node.meta.clone();
        if let Some(record) = &saved.node {
            self.node_life.record = record.clone();
            self.node_life.follow(now);
            self.describe_meta();
        }
    }

    /// What is known of the operator's keys while the agent runs, with these besides.
    pub(super) fn meta_with(
        &self,
        more: &BTreeMap<String, Option<String>>,
    ) -> BTreeMap<String, Option<String>> {
        let mut meta = self.node_life.record.meta.clone();
        meta.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        let configured = &self.node_life.configured_meta;
        // That a key is not there is to be known only of one that else would be.
        meta.retain(|key, value| value.is_some() || configured.contains_key(key));
        meta
    }

    /// Keys of the node get other values, and jobs are evaluated that may wait for them.
    pub(super) fn apply_meta(&mut self, now: Now, more: &BTreeMap<String, Option<String>>) {
        let meta = self.meta_with(more);
        if meta == self.node_life.record.meta {
            return;
        }
        self.edit_node(now, |node| node.meta = meta);
        self.describe_meta();
        self.local.mark_blocked();
    }

    fn describe_meta(&mut self) {
        let mut meta = self.node_life.configured_meta.clone();
        for (key, value) in &self.node_life.record.meta {
            match value {
                Some(value) => drop(meta.insert(key.clone(), value.clone())),
                None => drop(meta.remove(key)),
            }
        }
        self.config.node.meta = meta;
        self.node_changed = self.server.is_some();
    }

    /// The node takes new allocations from now on, or does not.
    pub(super) fn set_eligibility(&mut self, now: Now, eligibility: Eligibility) -> Reply {
        let known = &self.node_life.record;
        if known.drain.is_some() && eligibility == Eligibility::Eligible {
            let why = "can not set node's scheduling eligibility to eligible while it is draining";
            return Reply::Refused(Refusal::Conflict(why.to_owned()));
        }
        if known.eligibility == eligibility {
            return node_changed(0, &[]);
        }
        let index = self.edit_node(now, |node| node.eligibility = eligibility);
        let evals = self.eligibility_changed(now);
        node_changed(index, &evals)
    }

    /// Every job is evaluated that is not dead and runs something itself.
    pub(super) fn evaluate_node(&mut self, now: Now) -> Reply {
        let jobs = self.local.jobs.iter();
        let live = jobs.filter(|(key, record)| {
            !record.job.is_template() && self.view().job_status(key) != JobStatus::Dead
        });
        let live: Vec<JobKey> = live.map(|(key, _)| key.clone()).collect();
        let live = live.iter();
        let evals: Vec<_> = live
            .map(|key| self.evaluate(now, key, Trigger::NodeUpdate))
            .collect();
        node_changed(self.shared.index, &evals)
    }

    /// The node is drained from now on, or in another way than before.
    pub(super) fn start_drain(
        &mut self,
        now: Now,
        spec: DrainSpec,
        meta: &BTreeMap<String, String>,
    ) -> Reply {
        let force_at = match spec.deadline {
            DrainDeadline::After(span) => Some(now.wall + span),
            DrainDeadline::Force | DrainDeadline::Never => None,
        };
        let before = self.node_life.record.drain;
        let index = self.edit_node(now, |node| {
            let started_at = node.drain.map_or(now.wall, |drain| drain.started_at);
            node.drain = Some(DrainStrategy {
                spec,
                started_at,
                force_at,
            });
            node.eligibility = Eligibility::Ineligible;
            node.last_drain = Some(LastDrain {
                started_at,
                ..changed_drain(node, now.wall, DrainStatus::Draining, meta)
            });
        });
        self.node_life.follow(now);
        self.local.mark_blocked();
        let message = match before {
            None => "Node drain strategy set",
            Some(_) => "Node drain strategy updated",
        };
        self.note_on_node(now, "Drain", message);
        node_changed(index, &[])
    }

    /// The node is not drained any more; what was told to end ends.
    pub(super) fn cancel_drain(
        &mut self,
        now: Now,
        mark_eligible: bool,
        meta: &BTreeMap<String, String>,
    ) -> Reply {
        let known = &self.node_life.record;
        let (drains, before) = (known.drain.is_some(), known.eligibility);
        let becomes_eligible = mark_eligible && before == Eligibility::Ineligible;
        if !drains && !becomes_eligible {
            return node_changed(self.shared.index, &[]);
        }
        let index = self.edit_node(now, |node| {
            if drains {
                let canceled = changed_drain(node, now.wall, DrainStatus::Canceled, meta);
                node.last_drain = Some(canceled);
            }
            node.drain = None;
            if mark_eligible {
                node.eligibility = Eligibility::Eligible;
            }
        });
        self.node_life.follow(now);
        if drains {
            self.note_on_node(now, "Drain", "Node drain disabled");
        }
        let evals = match becomes_eligible {
            true => self.eligibility_changed(now),
            false => Vec::new(),
        };
        self.local.mark_blocked();
        node_changed(index, &evals)
    }

    /// Stops what is drained next. Returns the allocations that were told to end.
    pub(super) fn drain_on(&mut self, now: Now) -> BTreeSet<AllocId> {
        let Some(drain) = self.node_life.record.drain else {
            return BTreeSet::new();
        };
        let pace = Pace {
            forced: self.node_life.forced,
            ignore_system_jobs: drain.spec.ignore_system_jobs,
        };
        // What servers placed they move themselves.
        let own = (self.allocs.values()).filter(|alloc| !alloc.record().of_servers);
        let drained = own.map(|alloc| Drained {
            record: alloc.record(),
            job: alloc.job(),
            is_gone: alloc.is_gone(),
        });
        let step = drain_step(pace, drained);
        let mut jobs: BTreeSet<JobKey> = BTreeSet::new();
        for id in &step.stop {
            if let Some(alloc) = self.allocs.get_mut(id) {
                let cx = &mut cx(&self.config, &mut self.shared, now);
                alloc.update(cx, Update::Drain);
                jobs.insert(alloc.job_key().clone());
            }
        }
        for job in jobs {
            self.evaluate(now, &job, Trigger::NodeDrain);
        }
        if step.complete {
            self.drain_is_complete(now);
        }
        step.stop.into_iter().collect()
    }

    fn drain_is_complete(&mut self, now: Now) {
        self.edit_node(now, |node| {
            let nothing = BTreeMap::new();
            let complete = changed_drain(node, now.wall, DrainStatus::Complete, &nothing);
            node.last_drain = Some(complete);
            node.drain = None;
        });
        self.node_life.follow(now);
        // What could not be placed waits for something else from now on.
        self.local.mark_blocked();
        self.note_on_node(now, "Drain", "Node drain complete");
    }

    /// Changes what is known of the node, at a new index.
    pub(super) fn edit_node(&mut self, now: Now, change: impl FnOnce(&mut NodeRecord)) -> u64 {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        let mut record = NodeRecord::clone(&self.node_life.record);
        record.modify_index = index;
        change(&mut record);
        let record = Arc::new(record);
        cx.remember(Key::Node, Record::Node(record.clone()));
        self.node_life.record = record;
        index
    }

    /// The node is eligible again, or not any more. Returns the evaluations of the jobs that may be placed now.
    fn eligibility_changed(&mut self, now: Now) -> Vec<Arc<Evaluation>> {
        let eligible = self.node_life.record.eligibility == Eligibility::Eligible;
        let message = match eligible {
            true => "Node marked as eligible for scheduling",
            false => "Node marked as ineligible for scheduling",
        };
        self.note_on_node(now, "Cluster", message);
        // Who waited for something else waits for this first.
        self.local.mark_blocked();
        if !eligible {
            return Vec::new();
        }
        let blocked: Vec<JobKey> = self.local.blocked.keys().cloned().collect();
        let blocked = blocked.iter();
        blocked
            .map(|key| self.evaluate(now, key, Trigger::NodeUpdate))
            .collect()
    }

    fn note_on_node(&mut self, now: Now, subsystem: &str, message: &str) {
        self.machine.note(NodeEvent {
            time: now.wall,
            subsystem: subsystem.to_owned(),
            message: message.to_owned(),
            details: BTreeMap::new(),
        });
    }
}

/// The last drain, as it is after a change of it.
fn changed_drain(
    node: &NodeRecord,
    now: Timestamp,
    status: DrainStatus,
    meta: &BTreeMap<String, String>,
) -> LastDrain {
    let drains = node.drain.is_some() && status != DrainStatus::Draining;
    let known = node.last_drain.clone().filter(|last| {
        // One that is over is another one.
        drains || last.status == DrainStatus::Draining
    });
    let mut last = known.unwrap_or(LastDrain {
        started_at: now,
        updated_at: now,
        status,
        meta: BTreeMap::new(),
    });
    (last.updated_at, last.status) = (now, status);
    let meta = meta.iter().map(|(key, value)| (key.clone(), value.clone()));
    last.meta.extend(meta);
    last
}

fn node_changed(index: u64, evals: &[Arc<Evaluation>]) -> Reply {
    Reply::NodeChanged {
        evals: evals.iter().map(|eval| eval.id).collect(),
        eval_index: evals
            .iter()
            .map(|eval| eval.create_index)
            .max()
            .unwrap_or(0),
        index,
    }
}
