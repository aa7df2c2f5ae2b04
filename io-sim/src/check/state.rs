//! What holds in every state that the agent rests in between two inputs.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::AllocId;
use drover_core::model::alloc::{DesiredStatus, TaskLife};
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};

use super::history::{Reported, TaskPath, alive_in, is_done, lives, saved_alloc, saved_task};
use super::touched::Scope;
use super::{Checker, Property, Verdict};
use crate::inbox::Source;
use crate::world::World;

impl Checker {
    /// Looks at what a step touched; now and then at everything.
    pub(crate) fn state(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.agent_restored(world);
        self.check_clock(world);
        let stale = agent.view().counters().stale;
        let before = core::mem::replace(&mut self.lives.stale, stale);
        self.sometimes(Property::SometimesAnswerIsStale, before < stale);
        self.force_kill_follows_kill_timeout(world, agent)?;
        self.index_never_goes_back(agent)?;
        self.variables_survive_agent_restart(agent)?;
        self.namespaces_survive_agent_restart(agent)?;
        self.acl_survives_agent_restart(world, agent)?;
        self.deleted_token_lets_nobody_in(agent)?;
        self.services(world, agent)?;
        self.restart_reaches_all_running_tasks(agent)?;
        self.store_error_is_current(agent)?;
        self.oversized_directory_is_told()?;
        self.due_check_restarts_happened(world)?;
        self.rendering_has_a_limit(agent)?;
        self.evaluations(agent)?;
        self.dry_run_foretells_registration(agent)?;
        self.asked_version_is_latest(agent)?;
        self.versions(agent)?;
        self.scaled_group_has_its_count(agent)?;
        self.periodic_jobs(world, agent)?;
        self.image_updates(world)?;
        self.draining(world, agent)?;
        self.found_fact_is_kept(agent)?;
        self.canaries(world, agent)?;
        self.rolling_update_uses_max_parallel(agent)?;
        self.node_has_applied_meta(agent)?;
        self.driver_changes_with_news(world, agent)?;
        self.failed_probe_is_asked_again_in_time(world, agent)?;
        self.ended_stream_is_opened_again_in_time(world, agent)?;
        self.scheduler_has_its_settings(agent)?;
        self.placements_fit(agent)?;
        self.free_claim_is_granted_at_once(agent)?;
        self.restored_launch_is_recovered()?;
        for alloc in agent.view().allocs() {
            self.delays_of_ending_alloc(world, alloc)?;
            self.leased_disk_is_kept(world, agent, alloc)?;
        }
        self.placed_allocs_are_as_servers_said(world, agent)?;
        self.pause_after_failed_call_is_bounded(world, agent)?;
        self.waits_are_over_in_time(world, agent)?;
        match self.touched.take() {
            Scope::Everything => self.everything(world, agent),
            Scope::Allocs(touched) => {
                for id in touched {
                    self.touched_alloc(world, agent, id)?;
                }
                Ok(())
            }
        }
    }

    /// Looks at all there is.
    pub(super) fn everything(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.live_process_has_known_alloc(world, agent)?;
        for alloc in agent.view().allocs() {
            self.allocation(world, agent, alloc)?;
        }
        self.all_allocs_observed();
        self.disk_has_one_location(agent)?;
        for job in agent.view().jobs() {
            self.job_version_never_goes_back(job)?;
        }
        self.rollouts(agent)?;
        self.last_driver_report_counts(agent)?;
        self.driver_sets_only_own_attributes(agent)?;
        self.probe_device_situations(agent);
        self.waiting_alloc_is_in_pending(agent)?;
        self.waiting_job_is_not_dead(agent)?;
        self.garbage_is_collected_in_time(world, agent)?;
        self.replacements_are_not_too_late(world, agent)?;
        self.delayed_replacements_have_evaluations(world, agent)?;
        self.view_matches_world(agent)?;
        self.agent_self_audit_finds_nothing(agent)?;
        self.no_progress_needs_another_input(world, agent)
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
        self.deadlines_are_kept_unless_shutting_down(agent, alloc)?;
        self.nonterminal_alloc_has_deadline_or_awaited_event(agent, alloc)?;
        self.waiting_alloc_names_ungranted_claims(Some(world), agent, alloc)?;
        self.alloc_status_goes_forward(alloc)?;
        self.task_starts_when_it_is_its_turn(agent, alloc)?;
        self.preempted_alloc_has_lower_priority(agent, alloc)?;
        self.gc_collects_no_more_than_needed(agent, alloc)?;
        self.note_failure(world, alloc);
        self.placements(world, agent, alloc)?;
        self.placed(world, agent, alloc)?;
        self.health(world, agent, alloc)?;
        self.healthy_alloc_ran_min_healthy_time(world, alloc)?;
        self.checks_of(world, agent, alloc)?;
        self.successful_deployment_has_all_copies_healthy(agent, alloc)?;
        for task in alloc.tasks() {
            self.nonterminal_task_has_deadline_or_awaited_event(agent, task)?;
            self.task_has_job_version_of_alloc(alloc, task)?;
            self.dead_task_has_no_process(world, task)?;
            self.remembered_restart_is_carried_out(task)?;
            self.session_ends_with_its_launch(world, task)?;
            self.fatal_change_script_kills_task(task)?;
            self.token_is_renewed_before_expiry(world, task)?;
            self.running_task_has_process(world, task)?;
            self.task_state_matches_phase(task)?;
            self.dead_task_stays_dead(world, task)?;
            self.task_events_are_bounded_and_in_order(task)?;
            self.saved_exit_matches_process_exit(world, task)?;
            self.restart_pause_goes_on_after_agent_restart(world, task)?;
            self.success_is_code_zero_without_signal(world, agent, task)?;
            self.note_task(world, task);
        }
        self.note_alloc(world, alloc);
        Ok(())
    }

    fn deadlines_are_kept_unless_shutting_down(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        if self.leaving || agent.view().stopped() {
            return Ok(());
        }
        self.poll_timeout_matches_earliest_deadline(agent, alloc)
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
        if record.finished && record.desired == DesiredStatus::Run {
            self.lives.ended.insert(TaskPath::of(alloc));
        }
        let saved = world.disk.records().get(&Key::Alloc(record.id));
        if is_done(alloc) && saved == Some(&Record::Alloc(record.clone())) {
            let by = (record.id, record.create_index);
            self.lives
                .completed
                .entry(TaskPath::of(alloc))
                .or_insert(by);
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
            if *saved == **task.record() {
                self.identities.saved(key);
            }
            saved
                .launch
                .iter()
                .for_each(|launch| self.exits.saved(launch));
        }
        let resists = task.is_dead() && task.has_remains();
        self.sometimes(Property::SometimesDestroyFails, resists);
    }

    /// After a restart of the agent every launch that may be alive is recovered.
    fn restored_launch_is_recovered(&mut self) -> Verdict {
        let left = self.lives.to_find.pop_first();
        self.holds(Property::RestoredLaunchIsRecovered, left.is_none(), || {
            format!("{left:?}")
        })
    }

    /// Every live process belongs to an allocation that the agent knows.
    fn live_process_has_known_alloc(&mut self, world: &World, agent: &Agent) -> Verdict {
        let known = |id| agent.view().alloc(id).is_some();
        let stray = world.alive().find(|(_, process)| !known(process.key.alloc));
        self.owned(stray.map(|(_, process)| process.name.to_string()))
    }

    fn owned(&mut self, stray: Option<String>) -> Verdict {
        self.holds(Property::LiveProcessHasKnownAlloc, stray.is_none(), || {
            format!("{stray:?}")
        })
    }

    /// A dead and cleaned-up task has no live process.
    fn dead_task_has_no_process(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        let clean = (task.is_dead() || matches!(task.phase(), Phase::Waiting | Phase::Pausing(_)))
            && !task.has_remains();
        if !clean {
            return Ok(());
        }
        let alive = lives(world, &task.spec().key);
        self.holds(Property::DeadTaskHasNoProcess, !alive, || {
            format!("{:?}", task.spec().key)
        })
    }

    /// A task reported as running has a process, or its exit is being delivered or told by nobody yet: its engine is away.
    fn running_task_has_process(&mut self, world: &World, task: &TaskRunner) -> Verdict {
        if !matches!(task.phase(), Phase::Running) || self.leaving {
            return Ok(());
        }
        let launch = task.record().launch.as_ref().map(|launch| launch.id);
        let process = launch.and_then(|launch| world.processes.get(launch));
        let lives = process.is_some_and(|process| process.alive);
        let on_its_way = launch.is_some_and(|launch| {
            world.scene.inbox.has(Source::Exit(launch)) || world.engine.hides(launch)
        });
        self.holds(Property::RunningTaskHasProcess, lives || on_its_way, || {
            format!("{:?}", task.spec().key)
        })
    }

    /// The reported task state matches the task's phase.
    pub(super) fn task_state_matches_phase(&mut self, task: &TaskRunner) -> Verdict {
        let state = task.state();
        let fits = match task.phase() {
            Phase::Dead(_) => state.state == TaskLife::Dead && state.finished_at.is_some(),
            Phase::Running | Phase::Stopping(_) => state.state == TaskLife::Running,
            Phase::Waiting | Phase::Preparing(_) | Phase::Starting(_) | Phase::Pausing(_) => {
                state.state == TaskLife::Pending && state.finished_at.is_none()
            }
            Phase::Recovering(_)
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Cleaning(_) => state.state != TaskLife::Dead,
        };
        self.holds(Property::TaskStateMatchesPhase, fits, || {
            format!("{:?} {:?} {:?}", task.spec().key, task.phase(), state.state)
        })
    }
}
