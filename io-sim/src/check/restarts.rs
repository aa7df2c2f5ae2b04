//! What restarts cost: counted here again, from what was reported and what the world saw start.

use drover_core::agent::Agent;
use drover_core::agent::requests::{self, Request, RestartScope};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::op::Op;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Span, Timestamp};

use super::history::{Pause, Restart, TaskMemory};
use super::policy::{self, Restarts};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// However short the delay of a policy is: between so many starts of an interval and each of those that follow
/// lies a pause, so that no node is taken down.
const QUICK: u32 = 20;
const LEAST: Span = Span::millis(100);

/// The attempts of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    since: Option<Timestamp>,
    used: u32,
}

impl Interval {
    /// One more attempt. Returns whether the policy has room for it.
    fn attempt(&mut self, rules: &Restarts, wall: Timestamp) -> Allowance {
        if self.since.is_none_or(|since| wall > since + rules.interval) {
            *self = Interval {
                since: Some(wall),
                used: 0,
            };
        }
        self.used += 1;
        match rules.waits {
            _ if self.used <= rules.attempts => Allowance::Within,
            true => Allowance::Delayed,
            false => Allowance::None,
        }
    }

    /// How much is left of it.
    fn rest(&self, rules: &Restarts, wall: Timestamp) -> Span {
        let since = self.since.unwrap_or(wall);
        let left = (since + rules.interval) - wall;
        left.clamp(Span::ZERO, rules.interval)
    }
}

/// What a policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowance {
    /// A restart after the delay of the policy.
    Within,
    /// One after the rest of the interval, in which there are no more attempts.
    Delayed,
    /// None.
    None,
}

impl TaskMemory {
    /// The policy that holds from now.
    fn ruled_by(&mut self, rules: Restarts) {
        if self.rules.replace(rules) != Some(rules) {
            self.rules_changed |= !self.restarts.is_empty();
            self.by_older_rules += self.restarts.len();
            self.restarts.clear();
        }
    }

    /// The attempts of the interval that lasts, those that may have been free left out unless `all` count.
    fn interval(&self, rules: &Restarts, all: bool) -> Interval {
        let mut interval = Interval::default();
        let paid = |it: &&Restart| !it.asked && (!it.free || all && it.uncertain);
        for earlier in self.restarts.iter().filter(paid) {
            interval.attempt(rules, earlier.wall);
        }
        interval
    }

    /// Books a restart that was told. Returns whether the policy has room for it, and the pause before it; none if
    /// that is not known.
    fn book(&mut self, rules: &Restarts, mut restart: Restart) -> (bool, Option<Span>) {
        self.ruled_by(*rules);
        let mut interval = self.interval(rules, false);
        let (allowance, pause) = if restart.asked {
            (Allowance::Delayed, Some(Span::ZERO))
        } else if restart.free {
            (Allowance::Delayed, None)
        } else {
            let allowance = interval.attempt(rules, restart.wall);
            let pause = match allowance {
                Allowance::Within => rules.delay,
                Allowance::Delayed | Allowance::None => interval.rest(rules, restart.wall),
            };
            let pause = match interval.used > QUICK {
                true => pause.max(LEAST),
                false => pause,
            };
            let known = !self.rules_changed && !self.restarts.iter().any(|it| it.uncertain);
            (allowance, known.then_some(pause))
        };
        restart.least = pause;
        self.restarts.push(restart);
        let asked = self.restarts.iter().filter(|restart| restart.asked);
        let holds = allowance != Allowance::None && asked.count() <= self.asks;
        (holds, pause)
    }

    /// How many starts are paid for: the first, those that were told, and those that make up for
    /// a launch that never started.
    fn paid(&self) -> usize {
        1 + self.by_older_rules + self.restarts.len() + self.never_started + self.asks
    }
}

impl Checker {
    /// An operator asks something of tasks: what it makes free.
    pub(super) fn operator_asks(&mut self, agent: &Agent, asked: &Request) {
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
                    // One that is being cleaned up yet ends all the same.
                    if task.is_dead() {
                        memory.hopeless = None;
                    }
                }
            }
        }
    }

    /// What the job file of an allocation says of restarts of a task.
    pub(super) fn restart_rules(&self, alloc: &AllocRunner, task: &TaskRunner) -> Option<Restarts> {
        let file = self.files.of(alloc)?;
        let group = policy::group(file, alloc.record().group.as_str())?;
        let task = policy::task(group, task.spec().key.task.as_str())?;
        Some(policy::restarts(file, group, task))
    }

    /// The agent tells that a task is started again, at a cost or because somebody asked.
    pub(super) fn restart_reported(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let key = &task.spec().key;
        let now = world.now();
        let asked = event
            .details
            .get("restart_reason")
            .is_some_and(String::is_empty);
        let cut_off = self.lives.task(key).cut_off.is_some();
        let lost = self.lives.task(key).lost_starts;
        let free = !asked && self.restart_is_free(task, event)?;
        let uncertain = cut_off && lost.at_most > lost.at_least;
        self.hopeless_start_is_not_repeated(key, asked)?;
        let Some(rules) = self.restart_rules(alloc, task) else {
            return Ok(());
        };
        let memory = self.lives.task(key);
        // Whatever ended the launch: this followed.
        memory.cut_off = None;
        let restart = Restart {
            number: task.state().restarts,
            at: now.at,
            wall: now.wall,
            life: world.scene.life,
            offset: world.scene.wall_offset,
            asked,
            free,
            uncertain,
            least: None,
        };
        let (allowance, pause) = memory.book(&rules, restart);
        let reported = memory.restarts.clone();
        self.holds(Property::RestartsStayWithinPolicy, allowance, || {
            format!("{key:?}: {rules:?} {reported:?}")
        })?;
        self.restart_pause_is_that_of_policy(world, task, event, pause)
    }

    /// The pause before a restart is the one that the policy wants, and at most a quarter longer.
    fn restart_pause_is_that_of_policy(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
        expected: Option<Span>,
    ) -> Verdict {
        let key = &task.spec().key;
        let told = event.details.get("start_delay");
        let told = Span(told.and_then(|told| told.parse().ok()).unwrap_or(-1));
        self.lives.task(key).pauses.push(Pause {
            number: task.state().restarts,
            life: world.scene.life,
            began: world.elapsed(),
            wall_jumps: world.scene.wall_jumps,
            whole: told,
        });
        let Some(expected) = expected else {
            return Ok(());
        };
        let longest = Span(expected.0.saturating_add(expected.0 / 4));
        let holds = (expected..=longest).contains(&told);
        self.holds(Property::RestartPauseIsThatOfPolicy, holds, || {
            format!("{key:?} pauses for {told}, its job file wants {expected} to {longest}")
        })
    }

    /// A pause ends when it was told to, also if another agent goes on with it. Only a wall clock that was set may
    /// shorten it, or make it begin anew.
    pub(super) fn restart_pause_goes_on_after_agent_restart(
        &mut self,
        world: &World,
        task: &TaskRunner,
    ) -> Verdict {
        let Phase::Pausing(until) = task.phase() else {
            return Ok(());
        };
        let key = &task.spec().key;
        let Some(pause) = self.lives.task(key).pauses.last().copied() else {
            return Ok(());
        };
        let ahead = i128::from(until.0) - i128::from(world.scene.at.0);
        let ends = i128::from(world.elapsed().0) + ahead;
        let due = i128::from(pause.began.0) + i128::from(pause.whole.0);
        let life_began = i128::from(self.lives.began_after.0);
        let holds = if pause.life == world.scene.life {
            ends == due
        } else if pause.wall_jumps == world.scene.wall_jumps {
            ends == due.max(life_began)
        } else {
            ends <= life_began + i128::from(pause.whole.0)
        };
        self.holds(Property::RestartPauseGoesOnAfterAgentRestart, holds, || {
            format!("{key:?} pauses until {ends}, not {due}: {pause:?}")
        })
    }

    /// The agent tells that a task is not started again: its policy allows no more, or its start is hopeless.
    pub(super) fn restart_budget_is_used_in_full(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        task: &TaskRunner,
    ) -> Verdict {
        let key = &task.spec().key;
        let Some(rules) = self.restart_rules(alloc, task) else {
            return Ok(());
        };
        let memory = self.lives.task(key);
        memory.ruled_by(rules);
        let hopeless = memory.hopeless.is_some();
        // What failed before the driver was asked has reasons of its own.
        let asked_driver = !matches!(
            memory.last_event,
            Some(
                EventType::HookFailed
                    | EventType::FailedArtifactDownload
                    | EventType::FailedValidation
                    | EventType::SetupFailure
            )
        );
        if hopeless || rules.attempts == 0 || memory.rules_changed || !asked_driver {
            return Ok(());
        }
        let mut interval = memory.interval(&rules, true);
        let used_up = interval.attempt(&rules, world.now().wall) == Allowance::None;
        let restarts = memory.restarts.len();
        self.holds(Property::RestartBudgetIsUsedInFull, used_up, || {
            format!("{key:?} fails after {restarts} restarts: {rules:?}")
        })
    }

    /// The driver calls a start hopeless, and the agent waits for its word.
    pub(super) fn start_is_hopeless(&mut self, agent: &Agent, key: &TaskKey, op: Op) {
        let alloc = agent.view().alloc(key.alloc);
        let task = alloc.and_then(|alloc| alloc.task(&key.task));
        let awaited = task.filter(|task| task.awaited() == Some(op));
        let launch = awaited.and_then(|task| Some(task.record().launch.as_ref()?.id));
        if let Some(launch) = launch {
            self.lives.task(key).hopeless = Some(launch);
        }
    }

    /// A start of which the driver says that another try is of no use is not repeated, unless somebody asks.
    fn hopeless_start_is_not_repeated(&mut self, key: &TaskKey, asked: bool) -> Verdict {
        let hopeless = self.lives.task(key).hopeless.take();
        self.holds(
            Property::HopelessStartIsNotRepeated,
            asked || hopeless.is_none(),
            || format!("{key:?} is started again after {hopeless:?}"),
        )
    }

    /// A start is the first one, or paid for; and the pause before it was long enough.
    pub(super) fn restart_is_paid_for(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let memory = self.lives.task(key);
        memory.cut_off = None;
        memory.hopeless = None;
        memory.killed = false;
        memory.launches.push(launch);
        let (starts, paid) = (memory.launches.len(), memory.paid());
        let last = memory.restarts.last().copied();
        self.holds(Property::RestartsStayWithinPolicy, starts <= paid, || {
            format!("{key:?} starts {starts} times, {paid} are paid for")
        })?;
        match last.and_then(|last| Some((last, last.least?))) {
            Some((last, delay)) => {
                self.restart_delay_is_at_least_policy_delay(world, key, &last, delay)
            }
            None => Ok(()),
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
        if last.life != world.scene.life && last.offset != world.scene.wall_offset {
            return Ok(());
        }
        let pause = world.scene.at - last.at;
        self.holds(
            Property::RestartDelayIsAtLeastPolicyDelay,
            pause >= delay,
            || format!("{key:?} starts after {pause}, not {delay}"),
        )
    }
}
