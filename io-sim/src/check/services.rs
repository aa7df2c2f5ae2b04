//! Services: whoever is registered runs, and a change of who is can be heard.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, Input, Registration};
use drover_core::effect::{DriverEffect, Effect, request};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found, ShutdownMode};
use drover_core::model::alloc::TaskLife;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};

/// What is known of services in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    /// Launches of which the agent was told that they are over, or which it asked to end.
    over: BTreeSet<LaunchId>,
    /// Who was registered after the last step, and the index that people could see.
    last: Option<(Vec<Name>, u64)>,
}

/// What people see of an instance that may change.
type Name = (String, String, u16);

impl Services {
    pub(super) fn delivered(&mut self, input: &Input) {
        let Input::Driver(_, reported) = input else {
            return;
        };
        let over = match reported {
            DriverInput::Exited { .. }
            | DriverInput::StartFailed { .. }
            | DriverInput::StartLost { .. }
            | DriverInput::Destroyed { result: Ok(_), .. } => true,
            DriverInput::Recovered { found, .. } => *found != Found::Running,
            _ => false,
        };
        if over {
            self.over.insert(reported.launch());
        }
    }

    pub(super) fn asked(&mut self, effect: &Effect) {
        if let Effect::Driver(
            _,
            _,
            DriverEffect::Stop(request::Stop { launch, .. })
            | DriverEffect::Destroy(request::Destroy { launch, .. }),
        ) = effect
        {
            self.over.insert(*launch);
        }
    }

    pub(super) fn lives(&self, task: &TaskRunner) -> bool {
        let launch = task.record().launch.as_ref();
        launch.is_some_and(|launch| !self.over.contains(&launch.id))
    }
}

impl Checker {
    /// Looks at all registrations. An agent that leaves its tasks alone listens to nobody any more.
    pub(super) fn services(&mut self, agent: &Agent) -> Verdict {
        if agent.view().shutdown() == Some(ShutdownMode::KeepTasks) {
            return Ok(());
        }
        let now = agent.view().services();
        for one in &now {
            self.no_service_registered_for_dead_task(agent, one)?;
        }
        self.service_change_raises_index(agent, &now)
    }

    /// Who is registered runs, as far as the agent can know, and nobody ends it; or it is a group's, and
    /// its task is to run again.
    fn no_service_registered_for_dead_task(
        &mut self,
        agent: &Agent,
        one: &Registration,
    ) -> Verdict {
        let alloc = agent.view().alloc(one.alloc);
        let so = alloc.is_some_and(|alloc| {
            let mut tasks = alloc.tasks().iter().filter(|task| match &one.task {
                Some(name) => task.spec().key.task == *name,
                None => true,
            });
            let of_group = one.task.is_none();
            let goes_on = |task: &TaskRunner| {
                self.services.lives(task) || (of_group && is_to_start_again(task))
            };
            !alloc.record().is_terminal() && tasks.any(goes_on)
        });
        self.holds(Property::NoServiceRegisteredForDeadTask, so, || {
            format!("{one:?}")
        })
    }

    /// Whoever waits for a change of services hears of it.
    fn service_change_raises_index(&mut self, agent: &Agent, now: &[Registration]) -> Verdict {
        let name = |one: &Registration| (one.id.clone(), one.address.clone(), one.port);
        let names: Vec<Name> = now.iter().map(name).collect();
        let index = agent.view().index();
        let before = self.services.last.replace((names.clone(), index));
        let Some((before, reported)) = before.filter(|(before, _)| *before != names) else {
            return Ok(());
        };
        self.holds(Property::ServiceChangeRaisesIndex, reported < index, || {
            format!("at {index} it was {before:?} and is {names:?}")
        })
    }
}

/// Whether a task ran, is not over, and nobody asked it to end.
fn is_to_start_again(task: &TaskRunner) -> bool {
    let state = task.state();
    state.started_at.is_some() && state.state != TaskLife::Dead && !task.is_ending()
}
