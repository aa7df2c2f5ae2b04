//! Signals that people send.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::RequestId;
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of signals.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Those for one task that lived when somebody asked, and of which nobody had told that it ended.
    for_the_living: BTreeSet<RequestId>,
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
        let Request::Signal(asked) = asked else {
            return;
        };
        let alloc = agent.view().alloc(asked.alloc);
        let task = asked.task.as_ref().and_then(|name| alloc?.task(name));
        let lives = |task: &TaskRunner| {
            let runs = matches!(task.phase(), Phase::Running | Phase::Stopping(_));
            let launch = task.record().launch.as_ref().map(|launch| launch.id);
            let process = launch.and_then(|launch| world.processes.get(&launch));
            runs && process.is_some_and(|process| process.alive)
        };
        if agent.view().shutdown().is_none() && task.is_some_and(lives) {
            self.for_the_living.insert(request);
        }
    }
}

impl Checker {
    /// Nobody is told of a task that lives that it does not run, also if it was asked to end.
    pub(super) fn living_task_takes_signals(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        if !self.signals.for_the_living.remove(&request) {
            return Ok(());
        }
        let refused =
            matches!(reply, Reply::Refused(Refusal::Conflict(why)) if why == "Task not running");
        self.holds(Property::LivingTaskTakesSignals, !refused, || {
            format!("{request:?} {reply:?}")
        })
    }
}
