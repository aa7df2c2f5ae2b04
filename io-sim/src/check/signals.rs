//! Signals that people send, and sessions that they open.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::requests::{Request, RestartScope};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, RequestId, TaskKey};
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of what people ask of tasks that live.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Signals for one task that lived when somebody asked, and of which nobody had told that it ended.
    for_the_living: BTreeSet<RequestId>,
    /// Tasks that run, and whose allocation somebody asks in this step to restart what runs.
    restarted: Vec<TaskKey>,
    /// Sessions in such a task, if it was not asked to end yet.
    sessions: BTreeSet<RequestId>,
}

impl Signals {
    /// Somebody is about to ask.
    pub(super) fn asked(
        &mut self,
        world: &World,
        agent: &Agent,
        request: RequestId,
        asked: &Request,
    ) {
        if let Request::Restart(asked) = asked {
            self.restarted = match asked.tasks {
                RestartScope::Running => running(world, agent, asked.alloc),
                RestartScope::Task(_) | RestartScope::All => Vec::new(),
            };
            return;
        }
        let (alloc, name, requests) = match asked {
            Request::Signal(asked) => (asked.alloc, asked.task.as_ref(), &mut self.for_the_living),
            Request::OpenSession(asked) => (asked.alloc, Some(&asked.task), &mut self.sessions),
            _ => return,
        };
        let alloc = agent.view().alloc(alloc);
        let task = name.and_then(|name| alloc?.task(name));
        let ends = matches!(asked, Request::Signal(_));
        if agent.view().shutdown().is_none() && task.is_some_and(|it| lives(world, it, ends)) {
            requests.insert(request);
        }
    }
}

/// The tasks of an allocation that run, unless it is to end.
fn running(world: &World, agent: &Agent, alloc: AllocId) -> Vec<TaskKey> {
    let view = agent.view();
    let alloc = view.alloc(alloc).filter(|alloc| {
        let over = alloc.record().is_terminal() || alloc.record().finished || alloc.is_ending();
        view.shutdown().is_none() && !over
    });
    let tasks = alloc.into_iter().flat_map(|alloc| alloc.tasks().iter());
    let runs = |task: &&TaskRunner| {
        matches!(task.phase(), Phase::Running) && !task.is_ending() && lives(world, task, false)
    };
    tasks
        .filter(runs)
        .map(|task| task.spec().key.clone())
        .collect()
}

/// Whether the agent knows a task to live that does; also one that was asked to end, if it `may_end`.
fn lives(world: &World, task: &TaskRunner, may_end: bool) -> bool {
    let runs = match task.phase() {
        Phase::Running | Phase::Delaying(_) | Phase::Deregistering(_) => true,
        Phase::Stopping(_) => may_end,
        Phase::Waiting
        | Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Cleaning(_)
        | Phase::Pausing(_)
        | Phase::Dead(_) => false,
    };
    let launch = task.record().launch.as_ref().map(|launch| launch.id);
    let process = launch.and_then(|launch| world.processes.get(launch));
    runs && process.is_some_and(|process| process.alive)
}

/// Whether somebody is told that a task does not run.
fn is_said_to_be_over(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused(Refusal::Conflict(why)) if why == "Task not running")
}

impl Checker {
    /// Nobody is told of a task that lives that it does not run, also if it waits to be asked to end, or was.
    pub(super) fn living_task_takes_signals(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        if !self.signals.for_the_living.remove(&request) {
            return Ok(());
        }
        let refused = is_said_to_be_over(reply);
        self.holds(Property::LivingTaskTakesSignals, !refused, || {
            format!("{request:?} {reply:?}")
        })
    }

    /// Where what runs of an allocation is to be restarted, nothing of it runs on as it did.
    pub(super) fn restart_reaches_all_running_tasks(&mut self, agent: &Agent) -> Verdict {
        for key in core::mem::take(&mut self.signals.restarted) {
            let task = agent
                .view()
                .alloc(key.alloc)
                .and_then(|it| it.task(&key.task));
            let runs_on = task.is_some_and(|task| matches!(task.phase(), Phase::Running));
            self.holds(Property::RestartReachesAllRunningTasks, !runs_on, || {
                format!("{key:?} runs on")
            })?;
        }
        Ok(())
    }

    /// A task of which a restart is remembered does not run on: also if it was asked for before the task ran, or of an
    /// agent before.
    pub(super) fn remembered_restart_is_carried_out(&mut self, task: &TaskRunner) -> Verdict {
        let runs_on = matches!(task.phase(), Phase::Running) && task.record().restarting;
        self.holds(Property::RememberedRestartIsCarriedOut, !runs_on, || {
            format!("{:?} runs on", task.spec().key)
        })
    }

    /// The same of whoever opens a session, until the task is asked to end.
    pub(super) fn living_task_takes_sessions(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        if !self.signals.sessions.remove(&request) {
            return Ok(());
        }
        let refused = is_said_to_be_over(reply);
        self.holds(Property::LivingTaskTakesSessions, !refused, || {
            format!("{request:?} {reply:?}")
        })
    }
}
