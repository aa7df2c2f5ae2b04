//! What restarts cost: counted here again, from what was reported and what the world saw start.

use drover_core::agent::requests::{self, Request, RestartScope};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::event::TaskEvent;
use drover_core::model::policy::{RestartMode, RestartRules};
use drover_core::task::runner::TaskRunner;
use drover_core::time::{Span, Timestamp};

use super::history::{Restart, TaskMemory};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// The attempts of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    since: Option<Timestamp>,
    used: u32,
}

impl Interval {
    /// One more attempt. Returns whether the policy has room for it.
    fn attempt(&mut self, rules: &RestartRules, wall: Timestamp) -> Allowance {
        if self.since.is_none_or(|since| wall > since + rules.interval) {
            *self = Interval {
                since: Some(wall),
                used: 0,
            };
        }
        self.used += 1;
        let last_moment = self
            .since
            .is_some_and(|since| wall == since + rules.interval);
        match rules.mode {
            _ if self.used <= rules.attempts => Allowance::Within,
            // One more, after the rest of the interval; at its last moment that is at once.
            RestartMode::Delay if self.used == rules.attempts + 1 || last_moment => {
                Allowance::Delayed
            }
            RestartMode::Delay | RestartMode::Fail => Allowance::None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowance {
    Within,
    Delayed,
    None,
}

impl TaskMemory {
    /// Books a restart that was told. Returns whether the policy has room for it.
    fn book(&mut self, rules: &RestartRules, mut restart: Restart) -> bool {
        if self.rules.replace(*rules) != Some(*rules) {
            // A new policy holds from now.
            self.restarts.clear();
        }
        let mut interval = Interval::default();
        let paid = |earlier: &&Restart| !earlier.asked && !earlier.free;
        for earlier in self.restarts.iter().filter(paid) {
            interval.attempt(rules, earlier.wall);
        }
        let allowance = if restart.asked || restart.free {
            Allowance::Delayed
        } else {
            interval.attempt(rules, restart.wall)
        };
        restart.within = allowance == Allowance::Within;
        self.restarts.push(restart);
        let asked = self.restarts.iter().filter(|restart| restart.asked);
        allowance != Allowance::None && asked.count() <= self.asks
    }

    /// How many starts are paid for: the first, those that were told, and those that make up for
    /// a launch that never started.
    fn paid(&self) -> usize {
        1 + self.restarts.len() + self.never_started + self.asks
    }
}

impl Checker {
    /// An operator asks something of tasks: what it makes free.
    pub(super) fn operator_asks(&mut self, agent: &drover_core::agent::Agent, asked: &Request) {
        let Request::Restart(requests::Restart { alloc: id, tasks }) = asked else {
            return;
        };
        self.lives.asked_again.insert(*id);
        if *tasks == RestartScope::All {
            self.lives.rerun.insert(*id);
        }
        let alloc = agent.view().alloc(*id);
        for task in alloc.into_iter().flat_map(AllocRunner::tasks) {
            let meant = match tasks {
                RestartScope::Task(name) => task.spec().key.task == *name,
                RestartScope::Running | RestartScope::All => true,
            };
            if meant {
                let memory = self.lives.task(&task.spec().key);
                memory.asks += 1;
                if *tasks == RestartScope::All {
                    memory.forgiven = task.state().finished_at.or(memory.forgiven);
                    memory.over = false;
                }
            }
        }
    }

    /// The agent tells that a task is started again, at a cost or because somebody asked.
    pub(super) fn restart_reported(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let rules = task.spec().restart_rules();
        let now = world.now();
        let asked = event
            .details
            .get("restart_reason")
            .is_some_and(String::is_empty);
        let free = !asked && self.restart_is_free(task, event)?;
        let memory = self.lives.task(&task.spec().key);
        // Whatever ended the launch: this followed.
        memory.cut_off = None;
        let restart = Restart {
            number: task.state().restarts,
            at: now.at,
            wall: now.wall,
            life: world.life,
            offset: world.wall_offset,
            asked,
            free,
            within: false,
        };
        let allowance = memory.book(&rules, restart);
        let reported = memory.restarts.clone();
        self.holds(Property::RestartsStayWithinPolicy, allowance, || {
            format!("{:?}: {rules:?} {reported:?}", task.spec().key)
        })
    }

    /// A start is the first one, or paid for; and the pause before it was long enough.
    pub(super) fn restart_is_paid_for(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let memory = self.lives.task(key);
        memory.cut_off = None;
        memory.launches.push(launch);
        let (starts, paid) = (memory.launches.len(), memory.paid());
        let last = memory.restarts.last().copied();
        self.holds(Property::RestartsStayWithinPolicy, starts <= paid, || {
            format!("{key:?} starts {starts} times, {paid} are paid for")
        })?;
        let rules = alloc
            .task(&key.task)
            .map(|task| task.spec().restart_rules());
        match (last, rules) {
            (Some(last), Some(rules)) if last.within => {
                self.restart_delay_is_at_least_policy_delay(world, key, &last, rules.delay)
            }
            _ => Ok(()),
        }
    }

    /// Between an exit and the restart by policy lies at least the policy's delay.
    fn restart_delay_is_at_least_policy_delay(
        &mut self,
        world: &World,
        key: &TaskKey,
        last: &Restart,
        delay: Span,
    ) -> Verdict {
        // Over a restart of the agent the pause is measured by the wall clock.
        if last.life != world.life && last.offset != world.wall_offset {
            return Ok(());
        }
        let pause = world.at - last.at;
        self.holds(
            Property::RestartDelayIsAtLeastPolicyDelay,
            pause >= delay,
            || format!("{key:?} starts after {pause}, not {delay}"),
        )
    }
}
