//! What holds in every state that the agent rests in between two inputs.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::AllocId;
use drover_core::model::alloc::TaskLife;
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};

use super::lives::{Place, Reported, alive_in, is_done, lives, saved_alloc, saved_task};
use super::touched::Look;
use super::{Checker, Property, Verdict};
use crate::inbox::Source;
use crate::world::World;

impl Checker {
    /// Looks at what a step touched; now and then at everything.
    pub(crate) fn state(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.awake(world);
        self.look_at_the_clock(world);
        let stale = agent.view().counters().stale;
        let before = core::mem::replace(&mut self.lives.stale, stale);
        self.sometimes(Property::SometimesAnAnswerIsStale, before < stale);
        self.force_follows_the_grace(world, agent)?;
        self.the_index_never_falls_back(agent)?;
        self.variables_outlive_the_agent(agent)?;
        self.services(agent)?;
        self.evaluations(agent)?;
        self.placements_fit(agent)?;
        self.each_launch_is_looked_for()?;
        match self.touched.take() {
            Look::Everything => self.everything(world, agent),
            Look::Allocs(touched) => {
                for id in touched {
                    self.touched_alloc(world, agent, id)?;
                }
                Ok(())
            }
        }
    }

    /// Looks at all there is.
    pub(super) fn everything(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.nothing_lives_without_an_owner(world, agent)?;
        for alloc in agent.view().allocs() {
            self.allocation(world, agent, alloc)?;
        }
        self.all_is_seen();
        self.disk_lies_in_one_place(agent)?;
        for job in agent.view().jobs() {
            self.no_job_goes_back(job)?;
        }
        self.rollouts(agent)?;
        self.the_last_word_of_a_driver_counts(agent)?;
        self.a_driver_speaks_of_itself(agent)?;
        self.look_at_devices(agent);
        self.who_waits_is_named(agent)?;
        self.what_is_shown_is_true(agent)?;
        self.the_agent_finds_nothing_wrong_with_itself(agent)?;
        self.nothing_waits_for_a_nudge(world, agent)
    }

    fn touched_alloc(&mut self, world: &World, agent: &Agent, id: AllocId) -> Verdict {
        match agent.view().alloc(id) {
            Some(alloc) => self.allocation(world, agent, alloc),
            None => {
                let left = alive_in(world, id);
                let name = left.map(|process| process.name.to_string());
                self.owned(name)
            }
        }
    }

    /// Looks at one allocation.
    fn allocation(&mut self, world: &World, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        self.deadlines_are_kept_unless_leaving(agent, alloc)?;
        self.an_allocation_waits_for_something(agent, alloc)?;
        self.who_waits_names_its_claims(agent, alloc)?;
        self.an_allocation_goes_forward(alloc)?;
        self.who_is_preempted_matters_less(agent, alloc)?;
        self.leased_disk_stays(world, agent, alloc)?;
        self.no_more_is_collected_than_needed(agent, alloc)?;
        self.placements(world, agent, alloc)?;
        self.placed(agent, alloc)?;
        self.health_takes_its_time(world, alloc)?;
        self.a_rollout_succeeds_whole(agent, alloc)?;
        for task in alloc.tasks() {
            self.a_task_waits_for_something(agent, task)?;
            self.a_task_is_of_its_allocations_version(alloc, task)?;
            self.the_dead_do_not_run(world, task)?;
            self.who_fails_with_its_script_ends(task)?;
            self.a_token_is_renewed_in_time(world, task)?;
            self.what_runs_is_there(world, task)?;
            self.states_fit_phases(task)?;
            self.a_dead_task_stays_dead(world, task)?;
            self.events_are_bounded_and_in_order(task)?;
            self.what_is_remembered_of_an_end_is_true(world, task)?;
            self.note_task(world, task);
        }
        self.note_alloc(world, alloc);
        Ok(())
    }

    fn deadlines_are_kept_unless_leaving(&mut self, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        if self.leaving || agent.view().stopped() {
            return Ok(());
        }
        self.deadlines_are_kept(agent, alloc)
    }

    /// Remembers what is shown and saved of an allocation.
    fn note_alloc(&mut self, world: &World, alloc: &AllocRunner) {
        let record = alloc.record();
        if let Some(saved) = saved_alloc(world, record.id) {
            self.lives.note_saved_alloc(record.id, saved);
        }
        let memory = self.lives.allocs.entry(record.id).or_default();
        memory.shown = Some(Reported::from(&**record));
        self.coverage.status(alloc);
        let saved = world.disk.records().get(&Key::Alloc(record.id));
        if is_done(alloc) && saved == Some(&Record::Alloc(record.clone())) {
            let by = (record.id, record.create_index);
            self.lives.completed.entry(Place::of(alloc)).or_insert(by);
        }
    }

    /// Remembers what is shown and saved of a task.
    fn note_task(&mut self, world: &World, task: &TaskRunner) {
        let key = &task.spec().key;
        if let Some(launch) = &task.record().launch
            && launch.start_failed.is_some()
        {
            self.lives.start_failed.insert(launch.id);
        }
        if let Some(saved) = saved_task(world, key) {
            self.lives.note_saved_task(key, saved);
            saved
                .launch
                .iter()
                .for_each(|launch| self.exits.saved(launch));
        }
        let resists = task.is_dead() && task.has_remains();
        self.sometimes(Property::SometimesSomethingResists, resists);
    }

    /// After a restart each launch that may be alive is looked for.
    fn each_launch_is_looked_for(&mut self) -> Verdict {
        let left = self.lives.to_find.pop_first();
        self.holds(Property::EachLaunchIsLookedFor, left.is_none(), || {
            format!("{left:?}")
        })
    }

    /// Whatever lives belongs to an allocation that the agent knows.
    fn nothing_lives_without_an_owner(&mut self, world: &World, agent: &Agent) -> Verdict {
        let known = |id| agent.view().alloc(id).is_some();
        let stray = world.alive().find(|(_, process)| !known(process.key.alloc));
        self.owned(stray.map(|(_, process)| process.name.to_string()))
    }

    fn owned(&mut self, stray: Option<String>) -> Verdict {
        self.holds(
            Property::NothingLivesWithoutAnOwner,
            stray.is_none(),
            || format!("{stray:?}"),
        )
    }

    /// Of a task that is over and clean nothing lives.
    fn the_dead_do_not_run(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let clean = (task.is_dead() || matches!(task.phase(), Phase::Waiting | Phase::Pausing(_)))
            && !task.has_remains();
        if !clean {
            return Ok(());
        }
        let alive = lives(world, &task.spec().key);
        self.holds(Property::TheDeadDoNotRun, !alive, || {
            format!("{:?}", task.spec().key)
        })
    }

    /// A task that is said to run has a process, or its end is on the way.
    fn what_runs_is_there(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        if !matches!(task.phase(), Phase::Running) || self.leaving {
            return Ok(());
        }
        let launch = task.record().launch.as_ref().map(|launch| launch.id);
        let process = launch.and_then(|launch| world.processes.get(&launch));
        let lives = process.is_some_and(|process| process.alive);
        let on_its_way = launch.is_some_and(|launch| world.inbox.has(Source::Exit(launch)));
        self.holds(Property::WhatRunsIsThere, lives || on_its_way, || {
            format!("{:?}", task.spec().key)
        })
    }

    /// The state that is reported fits the phase.
    pub(super) fn states_fit_phases(&mut self, task: &TaskRunner) -> Verdict {
        let state = task.state();
        let fits = match task.phase() {
            Phase::Dead(_) => state.state == TaskLife::Dead && state.finished_at.is_some(),
            Phase::Running | Phase::Stopping(_) => state.state == TaskLife::Running,
            Phase::Waiting | Phase::Preparing(_) | Phase::Starting(_) | Phase::Pausing(_) => {
                state.state == TaskLife::Pending && state.finished_at.is_none()
            }
            Phase::Recovering(_) | Phase::Delaying(_) | Phase::Cleaning(_) => {
                state.state != TaskLife::Dead
            }
        };
        self.holds(Property::StatesFitPhases, fits, || {
            format!("{:?} {:?} {:?}", task.spec().key, task.phase(), state.state)
        })
    }
}
