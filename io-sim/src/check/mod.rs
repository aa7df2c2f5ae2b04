//! The invariants: what holds after every step, whatever the order and whatever goes wrong.

mod effects;
mod rest;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Effect, Reply, Told};
use drover_core::ids::{AllocId, GroupName, JobKey, LaunchId};
use drover_core::input::RequestId;

use crate::world::World;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub invariant: &'static str,
    /// What was found instead.
    pub detail: String,
}

impl Violation {
    /// `invariant` does not hold, and why.
    pub fn new(invariant: &'static str, detail: impl Into<String>) -> Violation {
        Violation {
            invariant,
            detail: detail.into(),
        }
    }
}

impl Violation {
    /// Whether the same invariant is violated.
    pub fn is_like(&self, other: &Violation) -> bool {
        self.invariant == other.invariant
    }
}

/// What a check finds.
pub type Verdict = Result<(), Violation>;

/// `Err` with the named invariant unless `holds`.
pub(crate) fn ensure(
    holds: bool,
    invariant: &'static str,
    detail: impl FnOnce() -> String,
) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(invariant, detail()))
    }
}

/// One copy of one group of one version of one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(JobKey, u64, u64, GroupName, u32);

impl Place {
    /// The place that an allocation fills.
    pub(crate) fn of(alloc: &AllocRunner) -> Place {
        let record = alloc.record();
        let created = alloc.job().create_index;
        let (job, group) = (record.job.clone(), record.group.clone());
        Place(job, created, record.job_version, group, record.index)
    }
}

/// What the checks remember from step to step.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    terminated: BTreeMap<LaunchId, u32>,
    start_failed: BTreeSet<LaunchId>,
    asked_again: BTreeSet<AllocId>,
    completed: BTreeMap<Place, (AllocId, u64)>,
    index: u64,
    /// Whether the agent was told to end and leave the tasks alone: it listens to nobody then.
    pub(crate) leaving: bool,
    replies: BTreeMap<RequestId, Reply>,
    reached: BTreeMap<&'static str, u64>,
}

impl Checker {
    /// Looks at one effect before it is carried out.
    pub(crate) fn effect(&mut self, world: &World, agent: &Agent, effect: &Effect) -> Verdict {
        match effect {
            Effect::Driver(_, key, effect) => self.driver_effect(world, agent, key, effect),
            Effect::Tell(Told::Event(key, event)) => self.told_event(world, agent, key, event),
            Effect::Tell(Told::Index(index)) => {
                let before = core::mem::replace(&mut self.index, *index);
                ensure(before < *index, "what_is_told_is_never_older", || {
                    format!("index {index}")
                })
            }
            Effect::Reply(RequestId(0), _) => Ok(()),
            Effect::Reply(request, reply) => {
                let before = self.replies.insert(*request, reply.clone());
                ensure(before.is_none(), "one_reply_to_one_request", || {
                    format!("{request:?}")
                })
            }
            Effect::Forget(..) | Effect::Hook(_) | Effect::Store(_) | Effect::Stopped => Ok(()),
        }
    }

    /// The answer to a request, once there is one.
    pub fn reply(&self, request: RequestId) -> Option<&Reply> {
        self.replies.get(&request)
    }

    /// The tasks of this allocation may run again: an operator said so.
    pub(crate) fn asked_again(&mut self, alloc: AllocId) {
        self.asked_again.insert(alloc);
    }

    pub(crate) fn agent_died(&mut self) {
        self.terminated.clear();
        self.leaving = false;
        self.index = 0;
    }

    /// How often each check had something to look at.
    pub fn reached(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.reached.iter().map(|(name, times)| (*name, *times))
    }

    fn reach(&mut self, check: &'static str) {
        *self.reached.entry(check).or_default() += 1;
    }
}
