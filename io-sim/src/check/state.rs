//! What holds in every state that the agent rests in between two inputs.

use drover_core::agent::Agent;
use drover_core::alloc::runner::{AllocRunner, Phase as AllocPhase};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskLife};
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};

use super::{Checker, Place, Verdict, ensure};
use crate::inbox::Source;
use crate::world::World;

impl Checker {
    /// Looks at everything after a step.
    pub(crate) fn state(&mut self, world: &World, agent: &Agent) -> Verdict {
        if !self.leaving && !agent.view().stopped() {
            self.deadlines_are_kept(agent)?;
        }
        self.nothing_lives_without_an_owner(world, agent)?;
        for alloc in agent.view().allocs() {
            self.an_allocation_waits_for_something(agent, alloc)?;
            self.note_completed(world, alloc);
            for task in alloc.tasks() {
                if let Some(launch) = &task.record().launch
                    && launch.start_failed.is_some()
                {
                    self.start_failed.insert(launch.id);
                }
                self.a_task_waits_for_something(task)?;
                self.the_dead_do_not_run(world, task)?;
                self.what_runs_is_there(world, task)?;
                self.states_fit_phases(task)?;
            }
        }
        Ok(())
    }

    /// Remembers which places of batch jobs are done, as far as that is saved.
    fn note_completed(&mut self, world: &World, alloc: &AllocRunner) {
        let record = alloc.record();
        let done = record.finished
            && record.status == ClientStatus::Complete
            && record.desired == DesiredStatus::Run
            && alloc.job().job_type.runs_to_completion();
        if done {
            let place = Place::of(alloc);
            let saved = world.disk.records().get(&Key::Alloc(record.id));
            if saved == Some(&Record::Alloc(record.clone())) {
                self.completed
                    .entry(place)
                    .or_insert((record.id, record.create_index));
            }
        }
    }

    /// The agent wants to be called when the first of its machines does.
    fn deadlines_are_kept(&mut self, agent: &Agent) -> Verdict {
        let first = agent
            .view()
            .allocs()
            .filter_map(AllocRunner::deadline)
            .map(|(at, _)| at)
            .min();
        let Some(first) = first else { return Ok(()) };
        self.reach("deadlines_are_kept");
        let called = agent.poll_timeout().map(|(at, _)| at);
        ensure(
            called.is_some_and(|at| at <= first),
            "deadlines_are_kept",
            || format!("first {first:?}, called {called:?}"),
        )
    }

    /// Whatever lives belongs to an allocation that the agent knows.
    fn nothing_lives_without_an_owner(&mut self, world: &World, agent: &Agent) -> Verdict {
        for (_, process) in world.alive() {
            self.reach("nothing_lives_without_an_owner");
            let owned = agent.view().alloc(process.key.alloc).is_some();
            ensure(owned, "nothing_lives_without_an_owner", || {
                process.name.to_string()
            })?;
        }
        Ok(())
    }

    /// No allocation is stuck: a deadline, a predecessor, or a task that is not over.
    fn an_allocation_waits_for_something(&mut self, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        self.reach("an_allocation_waits_for_something");
        let record = alloc.record();
        let holds = match alloc.phase() {
            AllocPhase::Prerun(pipeline) if pipeline.awaited().is_some() => true,
            AllocPhase::Prerun(_) => {
                let previous = record.previous.and_then(|id| agent.view().alloc(id));
                previous
                    .is_some_and(|previous| !previous.record().finished || previous.has_remains())
            }
            AllocPhase::Tasks => {
                alloc
                    .tasks()
                    .iter()
                    .any(|task| !matches!(task.phase(), Phase::Waiting | Phase::Dead(_)))
                    || alloc.deadline().is_some()
            }
            AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => alloc.deadline().is_some(),
            AllocPhase::Finished => {
                !record.destroying || alloc.tasks().iter().any(TaskRunner::has_remains)
            }
            AllocPhase::Destroyed => true,
        };
        ensure(holds, "an_allocation_waits_for_something", || {
            let phases: Vec<_> = alloc.tasks().iter().map(|task| task.phase()).collect();
            format!("{} {:?} {phases:?}", record.name, alloc.phase())
        })
    }

    /// Every phase of a task that neither runs nor waits for its turn has a deadline.
    fn a_task_waits_for_something(&mut self, task: &TaskRunner) -> Verdict {
        self.reach("a_task_waits_for_something");
        let holds = match task.phase() {
            Phase::Waiting | Phase::Running => true,
            Phase::Dead(_) => !task.has_remains() || task.deadline().is_some(),
            Phase::Preparing(_)
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Stopping { .. }
            | Phase::Cleaning(_)
            | Phase::Pausing(_) => task.deadline().is_some(),
        };
        ensure(holds, "a_task_waits_for_something", || {
            format!("{:?} {:?}", task.spec().key, task.phase())
        })
    }

    /// Of a task that is over and clean nothing lives.
    fn the_dead_do_not_run(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let clean = (task.is_dead() || matches!(task.phase(), Phase::Waiting | Phase::Pausing(_)))
            && !task.has_remains();
        if !clean {
            return Ok(());
        }
        self.reach("the_dead_do_not_run");
        let alive = world
            .alive()
            .find(|(_, process)| process.key == task.spec().key);
        ensure(alive.is_none(), "the_dead_do_not_run", || {
            format!("{alive:?}")
        })
    }

    /// A task that is said to run has a process, or its end is on the way.
    fn what_runs_is_there(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        if !matches!(task.phase(), Phase::Running) || self.leaving {
            return Ok(());
        }
        self.reach("what_runs_is_there");
        let launch = task.record().launch.as_ref().map(|launch| launch.id);
        let process = launch.and_then(|launch| world.processes.get(&launch));
        let lives = process.is_some_and(|process| process.alive);
        let on_its_way = launch.is_some_and(|launch| world.inbox.has(Source::Exit(launch)));
        ensure(lives || on_its_way, "what_runs_is_there", || {
            format!("{:?}", task.spec().key)
        })
    }

    /// The state that is reported fits the phase.
    fn states_fit_phases(&mut self, task: &TaskRunner) -> Verdict {
        self.reach("states_fit_phases");
        let state = task.state();
        let fits = match task.phase() {
            Phase::Dead(_) => state.state == TaskLife::Dead && state.finished_at.is_some(),
            Phase::Running | Phase::Stopping { .. } => state.state == TaskLife::Running,
            Phase::Waiting | Phase::Preparing(_) | Phase::Starting(_) | Phase::Pausing(_) => {
                state.state == TaskLife::Pending && state.finished_at.is_none()
            }
            Phase::Recovering(_) | Phase::Delaying(_) | Phase::Cleaning(_) => {
                state.state != TaskLife::Dead
            }
        };
        ensure(fits, "states_fit_phases", || {
            format!("{:?} {:?} {:?}", task.spec().key, task.phase(), state.state)
        })
    }
}
