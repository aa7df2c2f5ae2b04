//! How jobs are taken in and placed: as it was set last, by this agent or the one before.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::effect::Reply;
use drover_core::ids::RequestId;
use drover_core::model::scheduler::SchedulerConfig;
use drover_core::model::task::Task;

use super::draining::saved_node;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What was set in this life of the agent, and what the disk held when it began.
#[derive(Clone, Debug, Default)]
pub(super) struct Scheduler {
    set: Option<SchedulerConfig>,
    /// Whether `memory_max` counted at some time in this life.
    counts_memory_max: BTreeSet<bool>,
    /// Requests that bring work, asked while that was forbidden.
    forbidden: BTreeSet<RequestId>,
}

impl Scheduler {
    pub(super) fn agent_restored(&mut self, world: &World) {
        let saved = saved_node(world).and_then(|node| node.scheduler);
        self.set = saved.map(|saved| saved.config);
        let counts = self.set.is_none_or(|set| set.memory_oversubscription);
        self.counts_memory_max = [counts].into();
        self.forbidden.clear();
    }

    /// Whether this request brings work and was asked while that was forbidden.
    pub(super) fn forbids(&self, request: RequestId) -> bool {
        self.forbidden.contains(&request)
    }

    /// Whether a task may have this limit and this reservation, in bytes; none is 0.
    pub(super) fn allows_memory(&self, task: &Task, given: (u64, u64)) -> bool {
        let bytes = |mib: i64| u64::try_from(mib).unwrap_or(0) << 20;
        let wanted = &task.resources;
        let plain = (bytes(wanted.memory_mb), 0);
        let with_max = match wanted.memory_max_mb {
            0 => plain,
            -1 => (0, bytes(wanted.memory_mb)),
            max => (bytes(max), bytes(wanted.memory_mb)),
        };
        let counts = |counts| self.counts_memory_max.contains(&counts);
        counts(true) && given == with_max || counts(false) && given == plain
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        if agent.view().shutdown().is_some() {
            return;
        }
        let forbids = self.set.is_some_and(|set| set.reject_job_registration);
        let brings_work = matches!(
            asked,
            Request::Register(_)
                | Request::TakeOver(_)
                | Request::DispatchJob(_)
                | Request::RevertJob(_)
                | Request::ScaleJob(_)
        );
        if forbids && brings_work {
            self.forbidden.insert(request);
        }
        if let Request::SetScheduler(asked) = asked {
            let known = agent.view().scheduler_config().modify_index;
            if asked.expect_index.is_none_or(|expect| expect == known) {
                self.set = Some(asked.config);
                let counts = asked.config.memory_oversubscription;
                self.counts_memory_max.insert(counts);
            }
        }
    }
}

impl Checker {
    /// The settings are those that were set last, and what placement goes by is the same.
    pub(super) fn scheduler_has_its_settings(&mut self, agent: &Agent) -> Verdict {
        let Some(set) = self.scheduler.set else {
            return Ok(());
        };
        let shown = agent.view().scheduler_config().config;
        let used = agent.view().preemption();
        let same = shown == set && used == set.preemption;
        self.holds(Property::SchedulerHasItsSettings, same, || {
            format!("{shown:?} and {used:?}, not {set:?}")
        })
    }

    /// While registrations are rejected nobody's job is taken in.
    pub(super) fn rejected_registration_brings_no_job(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        if !self.scheduler.forbidden.remove(&request) {
            return Ok(());
        }
        let refused = matches!(reply, Reply::Refused(_));
        self.holds(Property::RejectedRegistrationBringsNoJob, refused, || {
            format!("{request:?} {reply:?}")
        })
    }
}
