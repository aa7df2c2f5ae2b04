//! What ends without the task's doing is not paid for by the task: a restart of the machine, and a start
//! that was lost. Counted here from what the agent was told, not from what it remembers.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::TaskKey;
use drover_core::input::Found;
use drover_core::model::event::TaskEvent;
use drover_core::op::Op;
use drover_core::task::runner::{Phase, TaskRunner};

use super::history::CutOff;
use super::policy::completes;
use super::{Checker, Property, Verdict, Violation};

/// So many lost starts in a row cost nothing.
const FREE: u32 = 3;

impl Checker {
    /// The agent is told what became of a launch.
    pub(super) fn is_found(&mut self, agent: &Agent, key: &TaskKey, op: Op, found: &Found) {
        let Some(used) = used_if_awaited(agent, key, op) else {
            return;
        };
        let rebooted = *found == Found::Rebooted;
        self.lives.task(key).cut_off = rebooted.then_some(CutOff::Reboot { used });
    }

    /// The agent is told that a start was lost.
    pub(super) fn start_is_lost(&mut self, agent: &Agent, key: &TaskKey, op: Op) {
        self.sometimes(Property::SometimesStartIsLost, true);
        let Some(used) = used_if_awaited(agent, key, op) else {
            return;
        };
        let memory = self.lives.task(key);
        memory.cut_off = Some(CutOff::Start { used });
        memory.lost_starts.at_least += 1;
        memory.lost_starts.at_most += 1;
    }

    /// A task is started again. Whether that costs nothing.
    pub(super) fn restart_is_free(
        &mut self,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Result<bool, Violation> {
        let key = &task.spec().key;
        let memory = self.lives.task(key);
        let lost = memory.lost_starts;
        let Some(cut_off) = memory.cut_off.take() else {
            return Ok(false);
        };
        let now_used = task.record().budget.used;
        match cut_off {
            CutOff::Reboot { used } => {
                self.holds(
                    Property::RebootUsesNoRestartAttempt,
                    now_used == used,
                    || format!("{key:?}: {now_used} attempts are used, {used} were"),
                )?;
                let delay = event.details.get("start_delay").map(String::as_str);
                let pauses = matches!(task.phase(), Phase::Pausing(_)) && delay != Some("0");
                self.holds(Property::RebootCausesNoRestartDelay, !pauses, || {
                    format!("{key:?} pauses for {delay:?} ns")
                })?;
                Ok(true)
            }
            CutOff::Start { used } if lost.at_most <= FREE => {
                self.holds(
                    Property::FirstLostStartsUseNoAttempt,
                    now_used == used,
                    || format!("{key:?}: {now_used} attempts are used, {used} were: {lost:?}"),
                )?;
                Ok(true)
            }
            CutOff::Start { .. } => Ok(lost.at_least <= FREE),
        }
    }

    /// A task is not started again: its own doing, or what its policy says of it.
    pub(super) fn the_end_was_the_tasks_own(
        &mut self,
        alloc: &AllocRunner,
        task: &TaskRunner,
    ) -> Verdict {
        let key = &task.spec().key;
        let rules = self.restart_rules(alloc, task);
        let completes = self.files.of(alloc).is_some_and(|file| completes(file));
        let once = completes && rules.is_none_or(|rules| rules.attempts == 0);
        let memory = self.lives.task(key);
        let lost = memory.lost_starts;
        match memory.cut_off.take() {
            Some(CutOff::Reboot { .. }) => {
                self.holds(Property::RebootUsesNoRestartAttempt, once, || {
                    format!("{key:?} is not started again after a reboot")
                })
            }
            Some(CutOff::Start { .. }) => {
                let paid = lost.at_most > FREE;
                self.holds(Property::FirstLostStartsUseNoAttempt, paid, || {
                    format!("{key:?} is not started again: {lost:?}")
                })
            }
            None => Ok(()),
        }
    }
}

/// What of a task's budget is used, if this operation's answer is awaited.
fn used_if_awaited(agent: &Agent, key: &TaskKey, op: Op) -> Option<u32> {
    let task = agent.view().alloc(key.alloc)?.task(&key.task)?;
    let awaited = task.awaited() == Some(op);
    awaited.then(|| task.record().budget.used)
}
