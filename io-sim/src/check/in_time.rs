//! The other side of waiting: what is to happen after a while happens, in whatever life of the agent.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::HookEffect;
use drover_core::ids::AllocId;
use drover_core::op::Op;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};
use drover_core::work::HookWork;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// How late an agent may be called back, and the most that is added to a pause.
const SLACK: Span = Span::secs(66);

/// How far the clocks of two lives of an agent may differ.
const ROUNDING: Span = Span::secs(2);

/// The longest pause after a renewal of tokens that failed.
const RENEW_AGAIN: Span = Span::secs(30);

/// How often a disk is asked for that another node does not give.
const FETCH_TRIES: u32 = 5;

/// What is remembered in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct InTime {
    /// Work of hooks that was asked for, and is not awaited any more.
    hooks: BTreeSet<Op>,
    cancelled: BTreeSet<Op>,
    /// How often the disk of an allocation was fetched from another node, and whose work that is.
    fetches: BTreeMap<AllocId, u32>,
    /// When this life began.
    began: Option<Instant>,
}

impl InTime {
    pub(super) fn agent_died(&mut self) {
        *self = InTime::default();
    }

    /// A hook's work leaves, or is not wanted any more.
    pub(super) fn hook(&mut self, effect: &HookEffect) {
        match effect {
            HookEffect::Cancel { op } => {
                self.cancelled.insert(*op);
            }
            HookEffect::Run {
                op, alloc, work, ..
            } => {
                self.hooks.insert(*op);
                if matches!(work, HookWork::FetchDisk(_)) {
                    *self.fetches.entry(*alloc).or_default() += 1;
                }
            }
        }
    }
}

impl Checker {
    /// Whether what was decided is held back, or the agent does nothing any more.
    pub(super) fn rests(&self, agent: &Agent) -> bool {
        let view = agent.view();
        let ends = view.shutdown().is_some() || view.stopped() || self.leaving;
        ends || self.commits.in_flight().is_some()
    }

    /// Looks at what had to happen by now.
    pub(super) fn waits_are_over_in_time(&mut self, world: &World, agent: &Agent) -> Verdict {
        let began = *self.in_time.began.get_or_insert(world.scene.at);
        let late = agent
            .poll_timeout()
            .is_some_and(|(at, _)| at <= world.scene.at);
        if self.rests(agent) || late {
            return Ok(());
        }
        self.first_reports_are_awaited_for_a_while(world, agent, began)?;
        for alloc in agent.view().allocs() {
            self.max_run_duration_ends_alloc(world, alloc)?;
            self.silence_ends_alloc_in_time(world, alloc)?;
            for task in alloc.tasks() {
                self.hook_of_killed_task_is_cancelled(task)?;
                self.failed_renewal_is_repeated_in_time(world, task)?;
            }
        }
        Ok(())
    }

    /// Nobody waits for what a killed task would have needed.
    fn hook_of_killed_task_is_cancelled(&mut self, task: &TaskRunner) -> Verdict {
        let Phase::Preparing(pipeline) = task.phase() else {
            return Ok(());
        };
        let left = pipeline
            .awaited()
            .filter(|op| self.in_time.hooks.contains(op));
        let Some(op) = left.filter(|_| task.is_ending()) else {
            return Ok(());
        };
        let cancelled = self.in_time.cancelled.contains(&op);
        self.holds(Property::HookOfKilledTaskIsCancelled, cancelled, || {
            format!("{:?} {op:?}", task.spec().key)
        })
    }

    fn failed_renewal_is_repeated_in_time(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let key = &task.spec().key;
        let Some(failed) = self.identities.failed.get(key).copied() else {
            return Ok(());
        };
        if !matches!(task.phase(), Phase::Running) || task.is_ending() {
            self.identities.failed.remove(key);
            return Ok(());
        }
        let waited = world.scene.at - failed;
        let holds = waited.0 <= RENEW_AGAIN.0 + SLACK.0;
        self.holds(Property::FailedRenewalIsRepeatedInTime, holds, || {
            format!("{key:?} waits for {waited}")
        })
    }

    /// An allocation does not live longer than its job file allows, since it was made.
    fn max_run_duration_ends_alloc(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        let file = self.files.of(alloc);
        let group = file.and_then(|file| policy::group(file, record.group.as_str()));
        let Some(limit) = group.and_then(|group| group.max_run_duration) else {
            return Ok(());
        };
        let goes_on = !alloc.is_ending() && !record.is_terminal() && !record.finished;
        if world.scene.wall_jumps > 0 || !goes_on || limit.0 <= 0 {
            return Ok(());
        }
        let lived = world.now().wall - record.create_time;
        let holds = lived.0 <= limit.0 + ROUNDING.0;
        self.holds(Property::MaxRunDurationEndsAlloc, holds, || {
            format!("{} has lived for {lived} of {limit}", record.name)
        })
    }

    /// The disk of another node is asked for a few times only.
    pub(crate) fn fetching_a_disk_is_given_up(&mut self, alloc: AllocId) -> Verdict {
        let times = self.in_time.fetches.get(&alloc).copied().unwrap_or(0);
        self.holds(
            Property::FetchingADiskIsGivenUp,
            times < FETCH_TRIES,
            || format!("{alloc} was asked for {times} times"),
        )
    }

    /// What never reports holds up the node for a while and no longer.
    fn first_reports_are_awaited_for_a_while(
        &mut self,
        world: &World,
        agent: &Agent,
        began: Instant,
    ) -> Verdict {
        let limit = Span(self.first_report.0 + SLACK.0);
        let waits = world.scene.at - began > limit && !agent.view().is_fingerprinted();
        self.holds(Property::FirstReportsAreAwaitedForAWhile, !waits, || {
            format!("the agent waits since {began:?}: {:?}", agent.pending())
        })
    }
}
