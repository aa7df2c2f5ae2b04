//! What holds when the faults are over and enough time has passed.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, Awaiting, JobWait, TaskWait, Wait};
use drover_core::alloc::runner::AllocRunner;
use drover_core::config::DiskUsageLimits;
use drover_core::ids::{AllocId, GroupName, JobKey, Slot, TaskKey};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::{Deployment, DeploymentStatus, EvalStatus, Trigger};
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::model::task::Stage;
use drover_core::store::Saved;
use drover_core::store::node::NodeRecord;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::task::runner::TaskRunner;

use super::canaries::{stands, waits_for_people};
use super::history::TaskPath;
use super::limits::{EVALS_OF_JOB, EVALS_OF_PURGED_JOBS};
use super::policy::copies;
use super::wait_for::awaits_services;
use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// Looks at everything at rest.
    pub(crate) fn rest(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.agent_restored(world);
        self.everything(world, agent)?;
        self.node_and_servers_agree(world, agent)?;
        self.pending_is_empty_at_rest(world, agent)?;
        self.live_process_belongs_to_running_alloc(world, agent)?;
        self.live_process_has_its_directories(world)?;
        self.live_task_has_env_of_its_version(world, agent)?;
        self.purged_job_is_forgotten(agent)?;
        self.ended_launch_has_no_statistics(world, agent)?;
        self.every_directory_has_known_alloc(world, agent)?;
        self.every_network_has_living_alloc(world, agent)?;
        self.ended_launch_is_destroyed(agent)?;
        for job in agent.view().jobs() {
            self.deployments_end(agent, job)?;
            self.wanted_copies_exist(world, agent, job)?;
            self.running_alloc_has_latest_job_version(agent, job)?;
        }
        for alloc in agent.view().allocs() {
            self.poststop_runs_after_main_ran(world, alloc)?;
            self.unreadable_task_is_cleaned_up(world, alloc)?;
            self.group_stops_with_its_leader(alloc)?;
            self.sidecars_stop_after_main_tasks(alloc)?;
        }
        self.failed_alloc_is_replaced(agent)?;
        self.plan_at_rest_is_empty(world, agent)?;
        self.done_job_is_dead(agent)?;
        self.ended_session_is_forgotten(agent)?;
        self.checks_pass_at_rest(world, agent)?;
        self.no_wait_for_healthy_services(world, agent)?;
        self.task_has_current_templates(world, agent)?;
        self.templates_of_running_task_are_watched(world, agent)?;
        self.templates_of_dead_task_are_not_watched(world, agent)?;
        self.disk_usage_is_below_limit(world, agent)?;
        self.drain_ends(world, agent)?;
        self.jobs_wait_only_for_closed_node(agent)?;
        self.no_wait_for_fulfilled_constraint(agent)?;
        self.no_wait_for_present_volume(world, agent)?;
        self.volumes_have_directories(world, agent)?;
        self.content_has_its_namespace(world, agent)?;
        self.expired_token_is_removed(world, agent)?;
        self.node_attributes_match_fingerprints(world, agent)?;
        self.latest_time_is_launched(world, agent)?;
        self.moved_tag_is_found(world, agent)?;
        self.finished_dispatched_jobs_are_collected(agent)?;
        self.idempotency_token_dispatches_once(agent)?;
        self.token_is_valid(world, agent)?;
        self.store_has_no_orphan_records(world)?;
        self.garbage_is_collected(world)?;
        self.store_matches_state(world, agent)
    }

    /// Who was to be forgotten is, also if somebody asked to stop it once more meanwhile.
    fn purged_job_is_forgotten(&mut self, agent: &Agent) -> Verdict {
        for key in self.replies.purged_for_good() {
            let known = agent.view().job(&key).is_some();
            self.holds(Property::PurgedJobIsForgotten, !known, || key.to_string())?;
        }
        Ok(())
    }

    /// A disk that is too full holds nothing that could be garbage-collected: what ended and is kept
    /// nevertheless still decides about a job.
    fn disk_usage_is_below_limit(&mut self, world: &World, agent: &Agent) -> Verdict {
        // What came since it was looked at last is seen when that is done again.
        let looks_again = |limits: DiskUsageLimits| {
            let fine = self.disk_was_fine_at;
            fine.is_none_or(|at| world.scene.at - at > limits.interval)
        };
        let exceeded =
            |limits: DiskUsageLimits| world.fullness() > limits.disk_percent && looks_again(limits);
        let exceeded = self.disk_limits.is_some_and(exceeded);
        let view = agent.view();
        let pending = agent.pending();
        let decides = |alloc: &&AllocRunner| {
            let record = alloc.record();
            let waits = pending.awaits_job(&record.job);
            let rollout = record.deployment.and_then(|id| view.deployment(id));
            waits || rollout.is_some_and(|it| it.is_active())
        };
        let own = view.allocs().filter(|alloc| !alloc.record().of_servers);
        let mut ended = own.filter(|alloc| alloc.record().finished);
        let now = world.now().wall;
        let leased = |alloc: &&AllocRunner| {
            let disk = view.disk_of(alloc.record());
            disk.is_some_and(|disk| disk.is_leased(alloc.record().id, now))
        };
        let kept = ended.find(|alloc| exceeded && !decides(alloc) && !leased(alloc));
        self.holds(Property::DiskUsageIsBelowLimit, kept.is_none(), || {
            let name = kept.map(|alloc| alloc.record().name.clone());
            format!("{} % are full, and {name:?} is kept", world.fullness())
        })
    }

    /// At rest only unplaceable jobs and delayed reschedules are pending. The
    /// machine is asked again and again, and may be about to answer.
    fn pending_is_empty_at_rest(&mut self, world: &World, agent: &Agent) -> Verdict {
        let renewed = renewed(world, agent);
        let pending = agent.pending();
        let asks = pending.awaiting.iter().any(|one| one.wait == Wait::Node);
        let allowed = |one: &Awaiting| match &one.wait {
            Wait::Store => !renewed.is_empty(),
            Wait::Node => one.until.is_some_and(|until| until > world.scene.at),
            // What it waits for has a property of its own.
            Wait::Drain => true,
            Wait::Servers(_) => false,
            Wait::Job(_, JobWait::Placement | JobWait::Reschedule) => true,
            // What is known of its zone came to an end just now.
            Wait::Job(_, JobWait::TimeZone) => asks,
            // A time may have come just now.
            Wait::Job(_, JobWait::Images) => one.until.is_some_and(|until| until > world.scene.at),
            Wait::Job(_, JobWait::Fingerprint) | Wait::Alloc(..) => false,
            // What it waits for has a property of its own.
            Wait::Task(_, TaskWait::Services) => true,
            Wait::Task(key, TaskWait::Stage) => {
                agent.view().alloc(key.alloc).is_some_and(awaits_services)
            }
            Wait::Task(key, _) => renewed.contains(key),
        };
        let other = pending.awaiting.iter().find(|one| !allowed(one));
        self.holds(Property::PendingIsEmptyAtRest, other.is_none(), || {
            format!("{other:?}")
        })
    }

    /// Every live process belongs to a running task of an allocation that is desired to run.
    fn live_process_belongs_to_running_alloc(&mut self, world: &World, agent: &Agent) -> Verdict {
        for (launch, process) in world.alive() {
            let alloc = agent.view().alloc(process.key.alloc);
            let wanted = alloc.is_some_and(|alloc| {
                let task = alloc.task(&process.key.task);
                let known = task.and_then(|task| task.record().launch.as_ref());
                alloc.record().desired == DesiredStatus::Run
                    && known.is_some_and(|known| known.id == *launch)
                    && task.is_some_and(|task| !task.is_dead())
            });
            self.holds(Property::LiveProcessBelongsToRunningAlloc, wanted, || {
                process.name.to_string()
            })?;
        }
        Ok(())
    }

    /// Every allocation directory belongs to an allocation that the agent knows.
    fn every_directory_has_known_alloc(&mut self, world: &World, agent: &Agent) -> Verdict {
        let left = world
            .dirs
            .allocs
            .iter()
            .find(|id| agent.view().alloc(**id).is_none());
        self.holds(
            Property::EveryDirectoryHasKnownAlloc,
            left.is_none(),
            || format!("{left:?}"),
        )
    }

    /// Every ended launch is destroyed.
    fn ended_launch_is_destroyed(&mut self, agent: &Agent) -> Verdict {
        for alloc in agent.view().allocs() {
            let ended = alloc.record().desired.is_terminal() || alloc.record().status.is_terminal();
            let clean = alloc.record().finished
                && !alloc.record().destroying
                && !alloc.tasks().iter().any(TaskRunner::has_remains);
            self.holds(Property::EndedLaunchIsDestroyed, !ended || clean, || {
                alloc.record().name.to_string()
            })?;
        }
        Ok(())
    }

    /// The deployment of the latest version has ended, unless something cannot be placed.
    fn deployments_end(&mut self, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let Some(rollout) = job.deployment.and_then(|id| view.deployment(id)) else {
            return Ok(());
        };
        let of_job = |one: &Awaiting| matches!(one.wait, Wait::Job(..));
        let waits = agent.pending().awaiting.iter().any(of_job);
        let over = !rollout.is_active() || waits || waits_for_people(job, rollout);
        self.holds(Property::DeploymentsEnd, over, || {
            format!("{} {rollout:?}", job.job.id)
        })
    }

    /// Every copy of a running job has an allocation, is complete, or has a known reason why not.
    fn wanted_copies_exist(&mut self, world: &World, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let key = job.job.key();
        self.holds(Property::WantedCopiesExist, !job.purge, || {
            format!("{key} is still there")
        })?;
        let live = |alloc: &&AllocRunner| !alloc.record().finished;
        if job.job.stop {
            let left = view.allocs_of(&key).find(live);
            let name = left.map(|left| left.record().name.clone());
            return self.holds(Property::WantedCopiesExist, left.is_none(), || {
                format!("{name:?} is alive")
            });
        }
        let waits = agent.pending().awaits_job(&key);
        for group in &job.job.task_groups {
            let name = GroupName::from(group.name.as_str());
            for index in 0..copies(&job.job, group) {
                let done = job.done.contains(&name, index);
                let ended = self
                    .lives
                    .ended
                    .contains(&TaskPath::in_job(job, &name, index));
                self.holds(Property::CopyIsDoneByItsVersion, ended || !done, || {
                    format!("{key} {name}[{index}] of version {}", job.job.version)
                })?;
                let here = |alloc: &&AllocRunner| {
                    alloc.record().group == name && alloc.record().index == index
                };
                let mut allocs = view.allocs_of(&key).filter(here);
                // One with a new token may be starting again for it just now.
                let filled = |alloc| {
                    fills(&job.job, alloc)
                        || world.tokens.are_renewed_in(alloc)
                        || awaits_services(alloc)
                };
                let filled = allocs.clone().any(filled) || stands(view, job, &group.name);
                let canary = |alloc: &&AllocRunner| !alloc.record().canary;
                let alive = allocs.clone().filter(live).filter(canary).count();
                self.holds(Property::WantedCopiesExist, filled || done || waits, || {
                    let last = allocs.next().map(|alloc| alloc.record().clone());
                    format!("{key} {name}[{index}]: {last:?}")
                })?;
                self.holds(Property::WantedCopiesExist, alive <= 1, || {
                    format!("{key} {name}[{index}] has {alive} allocations")
                })?;
            }
            let wanted = copies(&job.job, group);
            let select_for_gc = view
                .allocs_of(&key)
                .filter(live)
                .any(|alloc| alloc.record().group == name && alloc.record().index >= wanted);
            self.holds(Property::WantedCopiesExist, !select_for_gc, || {
                format!("{key} {name} has too many")
            })?;
        }
        Ok(())
    }

    /// An allocation with an unreadable record becomes terminal.
    fn unreadable_task_is_cleaned_up(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let mut tasks = alloc.tasks().iter();
        if !tasks.any(|task| world.disk.unread.contains(&task.spec().key)) {
            return Ok(());
        }
        let record = alloc.record();
        self.holds(Property::UnreadableTaskIsCleanedUp, record.finished, || {
            format!("{} {:?}", record.name, alloc.phase())
        })
    }

    /// Every live process has its directories.
    fn live_process_has_its_directories(&mut self, world: &World) -> Verdict {
        for (_, process) in world.alive() {
            let key = &process.key;
            let there = world.dirs.allocs.contains(&key.alloc)
                && world.dirs.tasks.contains(&(key.alloc, key.task.clone()));
            self.holds(Property::LiveProcessHasItsDirectories, there, || {
                process.name.to_string()
            })?;
        }
        Ok(())
    }

    /// Every running allocation has the latest job version, unless that cannot be placed or its deployment failed.
    fn running_alloc_has_latest_job_version(&mut self, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let rollout = job.deployment.and_then(|id| view.deployment(id));
        let held = |one: &Deployment| {
            let paused = one.status == DeploymentStatus::Paused;
            paused || one.unpromoted().next().is_some()
        };
        let failed = rollout.is_some_and(|one| one.status == DeploymentStatus::Failed || held(one));
        let key = job.job.key();
        if job.job.stop || failed || !view.blocked(&key).is_empty() {
            return Ok(());
        }
        let old = view.allocs_of(&key).map(AllocRunner::record).find(|alloc| {
            let runs = !alloc.finished && alloc.desired == DesiredStatus::Run;
            runs && alloc.job_version != job.job.version
        });
        let old = old.map(|alloc| format!("{} {}", alloc.name, alloc.job_version));
        self.holds(
            Property::RunningAllocHasLatestJobVersion,
            old.is_none(),
            || format!("{old:?}, not {}", job.job.version),
        )
    }

    /// What comes after the end ran wherever a main task ran and ended, unless the allocation was
    /// to leave nothing behind: its time was over, it is garbage-collected, or a record of it could not
    /// be read.
    fn poststop_runs_after_main_ran(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        let stage_of = |stage| {
            let tasks = alloc.tasks().iter();
            tasks.filter(move |task| task.spec().stage() == stage)
        };
        let started = |task: &TaskRunner| {
            let mut processes = world.launches_of(&task.spec().key);
            processes.any(|(_, process)| process.starts > 0)
        };
        let main_ran = stage_of(Stage::Main).any(started);
        let setup_failed = alloc.tasks().iter().any(|task| {
            let events = &task.state().events;
            events.iter().any(|e| e.kind == EventType::SetupFailure)
        });
        let limit = alloc.job().group(record.group.as_str());
        let limited = limit.is_some_and(|group| group.max_run_duration.is_some());
        let mut tasks = alloc.tasks().iter();
        let quarantined = tasks.any(|task| world.disk.unread.contains(&task.spec().key));
        let exempt = limited || record.destroying || setup_failed || quarantined;
        if !record.finished || !main_ran || exempt {
            return Ok(());
        }
        for task in stage_of(Stage::Poststop) {
            let asked = self.lives.tasks.get(&task.spec().key);
            let tried = asked.is_some_and(|task| !task.launches.is_empty());
            let holds = tried || task.state().failed;
            self.holds(Property::PoststopRunsAfterMainRan, holds, || {
                format!("{} {:?}", record.name, task.record())
            })?;
        }
        Ok(())
    }

    /// Each evaluation is of a job that is there, or the only one of a job that it purged.
    fn evaluations_have_jobs(&mut self, world: &World) -> bool {
        let saved = world.disk.saved();
        let left = saved.evals.values();
        let left = left.filter(|eval| !saved.jobs.contains_key(&eval.job));
        let left: Vec<_> = left.collect();
        self.sometimes(
            Property::SometimesEvaluationOutlivesItsJob,
            !left.is_empty(),
        );
        let purged = left.iter().all(|eval| {
            eval.trigger == Trigger::JobDeregister && eval.status == EvalStatus::Complete
        });
        let jobs: BTreeSet<&JobKey> = left.iter().map(|eval| &eval.job).collect();
        purged && jobs.len() == left.len() && left.len() <= EVALS_OF_PURGED_JOBS
    }

    /// Each stored record belongs to a job, and job histories stay within their limit.
    fn store_has_no_orphan_records(&mut self, world: &World) -> Verdict {
        let saved = world.disk.saved();
        let task_is_owned = |key: &(AllocId, _)| saved.allocs.contains_key(&key.0);
        let tasks = saved.tasks.keys().all(task_is_owned);
        let owned = |job: &JobKey| saved.jobs.contains_key(job);
        let placed = |id: &AllocId| saved.placed.contains_key(id);
        let of_job = |alloc: &AllocRecord| match alloc.of_servers {
            true => placed(&alloc.id),
            false => owned(&alloc.job),
        };
        let allocs = saved.allocs.values().all(|alloc| of_job(alloc));
        let evals = self.evaluations_have_jobs(world);
        let rollouts = saved.deployments.values().all(|one| owned(&one.job));
        let of_version = |one: &AllocRecord| {
            let job = saved.jobs.get(&one.job);
            job.is_some_and(|job| job.version(one.job_version).is_some())
        };
        let collected = saved.collected.values().all(|one| of_version(&one.alloc));
        let of_alloc = |slot: &Slot| slot.alloc.as_ref().is_some_and(placed);
        let disks = saved.disks.keys();
        let disks = disks
            .filter(|slot| !of_alloc(slot))
            .all(|slot| owned(&slot.job));
        let of_cluster = saved.placed.keys().chain(saved.announced.keys());
        let at_servers = |id: &AllocId| {
            let servers = world.link.servers.as_ref();
            servers.is_some_and(|it| it.alloc(*id).is_some_and(|it| it.now().is_some()))
        };
        let is_here = |id: &AllocId| saved.allocs.contains_key(id);
        let placements = of_cluster.into_iter().all(is_here)
            && saved
                .reported
                .keys()
                .all(|id| is_here(id) || at_servers(id));
        let text_is_owned = |(job, version): &(JobKey, u64)| {
            let job = saved.jobs.get(job);
            job.is_some_and(|job| job.version(*version).is_some())
        };
        let texts = saved.submissions.keys().all(text_is_owned);
        let owned =
            tasks && allocs && collected && evals && rollouts && disks && texts && placements;
        self.holds(Property::StoreHasNoOrphanRecords, owned, || {
            format!("tasks {tasks}, allocs {allocs}, collected {collected}, evals {evals}, roll-outs {rollouts}, disks {disks}, texts {texts}, placements {placements}")
        })?;
        for (key, job) in &saved.jobs {
            let evals = saved.evals.values().filter(|eval| eval.job == *key);
            let evals = evals.filter(|eval| !eval.status.is_open()).count();
            let rollouts = saved.deployments.values();
            let rollouts = rollouts.filter(|one| one.job == *key).count();
            let versions = job.versions.len() + 1;
            let holds = evals <= EVALS_OF_JOB && rollouts <= versions;
            self.holds(Property::StoreHasNoOrphanRecords, holds, || {
                format!("{key}: {evals} evaluations, {rollouts} roll-outs, {versions} versions")
            })?;
        }
        Ok(())
    }

    /// The store's records match the agent's state.
    fn store_matches_state(&mut self, world: &World, agent: &Agent) -> Verdict {
        // Who gets a new token may have been started again for it a moment ago.
        if agent.pending().awaits_store() && !renewed(world, agent).is_empty() {
            return Ok(());
        }
        let differs = differs(&world.disk.saved(), agent);
        self.holds(Property::StoreMatchesState, differs.is_empty(), || {
            format!("the store and the agent differ in {differs:?}")
        })
    }
}

/// The tables in which the store differs from what the agent knows.
fn differs(saved: &Saved, agent: &Agent) -> Vec<&'static str> {
    let view = agent.view();
    let allocs = || view.allocs();
    let records = allocs().map(|alloc| (alloc.record().id, alloc.record().clone()));
    let tasks = allocs().flat_map(|alloc| alloc.tasks()).map(|task| {
        let key = &task.spec().key;
        ((key.alloc, key.task.clone()), task.record().clone())
    });
    let collected = view.collected().map(|one| (one.alloc.id, one.clone()));
    let jobs = view.jobs().map(|job| (job.job.key(), job.clone()));
    let evals = view.evals().map(|eval| (eval.id, eval.clone()));
    let deployments = view.deployments().map(|one| (one.id, one.clone()));
    let new = NodeRecord::default();
    let node = saved.node.as_deref().unwrap_or(&new);
    let same = [
        ("allocations", saved.allocs == records.collect()),
        ("tasks", saved.tasks == tasks.collect()),
        ("collected", saved.collected == collected.collect()),
        ("jobs", saved.jobs == jobs.collect()),
        ("disks", saved.disks == *view.disks()),
        ("texts", saved.submissions == *view.submissions()),
        ("node", *node == *view.node_record()),
        ("evaluations", saved.evals == evals.collect()),
        ("deployments", saved.deployments == deployments.collect()),
        ("variables", saved.variables == **view.variables()),
        ("policies", saved.acl_policies == *view.acl_policies()),
        ("tokens", saved.acl_tokens == *view.acl_tokens()),
    ];
    let differs = same.into_iter().filter(|(_, same)| !same);
    differs.map(|(name, _)| name).collect()
}

/// Whether an allocation fills its place, for good or until somebody asks for another.
fn fills(job: &Job, alloc: &AllocRunner) -> bool {
    let record = alloc.record();
    match record.status {
        ClientStatus::Running => record.desired == DesiredStatus::Run,
        ClientStatus::Failed => record.desired == DesiredStatus::Run,
        ClientStatus::Complete => job.job_type.runs_to_completion(),
        ClientStatus::Pending | ClientStatus::Lost | ClientStatus::Unknown => false,
    }
}

/// The tasks that never come to rest, and the store with them, which is to remember it: they are told of
/// new tokens now and then, and may be started again for that just now.
fn renewed(world: &World, agent: &Agent) -> BTreeSet<TaskKey> {
    let alive = agent.view().allocs();
    let alive = alive.filter(|alloc| world.tokens.are_renewed_in(alloc));
    let keys = alive.flat_map(|alloc| alloc.tasks().iter().map(|task| &task.spec().key));
    keys.filter(|key| world.tokens.are_renewed_of(key))
        .cloned()
        .collect()
}
