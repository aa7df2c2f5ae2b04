//! What holds when the faults are over and enough time has passed.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, Awaiting, JobWait, Wait};
use drover_core::alloc::runner::AllocRunner;
use drover_core::config::RoomLimits;
use drover_core::ids::{AllocId, GroupName, JobKey, TaskKey};
use drover_core::local::KEPT_EVALS;
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::model::task::Stage;
use drover_core::scheduler::reconcile::copies;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// Looks at what must be so long before anybody looks at the machine again: that would make up for
    /// what was forgotten.
    pub(crate) fn soon(&mut self, agent: &Agent) -> Verdict {
        // Until the disk answers, which may take long, nobody can be told to end.
        if agent.pending().awaits_store() {
            return Ok(());
        }
        for job in agent.view().jobs() {
            self.nobody_waits_in_vain(agent, job)?;
        }
        Ok(())
    }

    /// Looks at everything at rest.
    pub(crate) fn rest(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.awake(world);
        self.everything(world, agent)?;
        self.nothing_is_awaited(world, agent)?;
        self.what_lives_is_wanted(world, agent)?;
        self.what_lives_has_its_directories(world)?;
        self.nothing_is_measured_of_the_dead(world, agent)?;
        self.no_directory_is_left_behind(world, agent)?;
        self.what_ended_is_cleaned(agent)?;
        for job in agent.view().jobs() {
            self.rollouts_end(agent, job)?;
            self.what_is_wanted_is_there(world, agent, job)?;
            self.what_runs_is_the_latest_version(agent, job)?;
            self.nobody_waits_in_vain(agent, job)?;
        }
        for alloc in agent.view().allocs() {
            self.poststop_runs_where_main_ran(world, alloc)?;
            self.a_quarantine_ends(world, alloc)?;
            self.a_group_ends_with_its_leader(alloc)?;
            self.sidecars_end_with_the_mains(alloc)?;
        }
        self.a_task_knows_its_templates(world, agent)?;
        self.who_runs_is_watched(world, agent)?;
        self.nobody_is_watched_in_vain(world, agent)?;
        self.the_disk_has_room(world, agent)?;
        self.the_machine_is_known(world, agent)?;
        self.dispatched_jobs_go(agent)?;
        self.one_job_for_one_token(agent)?;
        self.a_token_is_good(world, agent)?;
        self.the_disk_holds_no_strays(world)?;
        self.garbage_goes(world)?;
        self.the_disk_holds_what_is_known(world, agent)
    }

    /// A disk that is too full holds nothing that could be cleaned away: what ended and is kept
    /// nevertheless still decides about a job.
    fn the_disk_has_room(&mut self, world: &World, agent: &Agent) -> Verdict {
        let crowded = |limits: RoomLimits| world.fullness() > limits.disk_percent;
        let crowded = self.room.is_some_and(crowded);
        let view = agent.view();
        let pending = agent.pending();
        let decides = |alloc: &&AllocRunner| {
            let record = alloc.record();
            let waits = pending.awaits_job(&record.job);
            let rollout = record.deployment.and_then(|id| view.deployment(id));
            waits || rollout.is_some_and(|it| it.status == DeploymentStatus::Running)
        };
        let mut ended = view.allocs().filter(|alloc| alloc.record().finished);
        let now = world.now().wall;
        let leased = |alloc: &&AllocRunner| {
            let disk = view.disk_of(alloc.record());
            disk.is_some_and(|disk| disk.is_leased(alloc.record().id, now))
        };
        let kept = ended.find(|alloc| crowded && !decides(alloc) && !leased(alloc));
        self.holds(Property::TheDiskHasRoom, kept.is_none(), || {
            let name = kept.map(|alloc| alloc.record().name.clone());
            format!("{} % are full, and {name:?} is kept", world.fullness())
        })
    }

    /// Only jobs without a place, and failed allocations between two tries, wait for anything. The
    /// machine is asked again and again, and may be about to answer.
    fn nothing_is_awaited(&mut self, world: &World, agent: &Agent) -> Verdict {
        let renewed = renewed(world, agent);
        let allowed = |one: &Awaiting| match &one.wait {
            Wait::Store => !renewed.is_empty(),
            Wait::Node => one.until.is_some_and(|until| until > world.at),
            Wait::Job(_, JobWait::Placement | JobWait::Reschedule) => true,
            Wait::Job(_, JobWait::Fingerprint) | Wait::Alloc(..) => false,
            Wait::Task(key, _) => renewed.contains(key),
        };
        let pending = agent.pending();
        let other = pending.awaiting.iter().find(|one| !allowed(one));
        self.holds(Property::NothingIsAwaited, other.is_none(), || {
            format!("{other:?}")
        })
    }

    /// What lives belongs to an allocation that shall run, and its task knows it.
    fn what_lives_is_wanted(&mut self, world: &World, agent: &Agent) -> Verdict {
        for (launch, process) in world.alive() {
            let alloc = agent.view().alloc(process.key.alloc);
            let wanted = alloc.is_some_and(|alloc| {
                let task = alloc.task(&process.key.task);
                let known = task.and_then(|task| task.record().launch.as_ref());
                alloc.record().desired == DesiredStatus::Run
                    && known.is_some_and(|known| known.id == *launch)
                    && task.is_some_and(|task| !task.is_dead())
            });
            self.holds(Property::WhatLivesIsWanted, wanted, || {
                process.name.to_string()
            })?;
        }
        Ok(())
    }

    /// Directories belong to allocations that the agent knows.
    fn no_directory_is_left_behind(&mut self, world: &World, agent: &Agent) -> Verdict {
        let left = world
            .dirs
            .allocs
            .iter()
            .find(|id| agent.view().alloc(**id).is_none());
        self.holds(Property::NoDirectoryIsLeftBehind, left.is_none(), || {
            format!("{left:?}")
        })
    }

    /// Nothing is left of what ended.
    fn what_ended_is_cleaned(&mut self, agent: &Agent) -> Verdict {
        for alloc in agent.view().allocs() {
            let ended = alloc.record().desired.is_terminal() || alloc.record().status.is_terminal();
            let clean = alloc.record().finished
                && !alloc.record().destroying
                && !alloc.tasks().iter().any(TaskRunner::has_remains);
            self.holds(Property::WhatEndedIsCleaned, !ended || clean, || {
                alloc.record().name.to_string()
            })?;
        }
        Ok(())
    }

    /// The roll-out of the latest version is over, unless something has no place.
    fn rollouts_end(&mut self, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let Some(rollout) = job.deployment.and_then(|id| view.deployment(id)) else {
            return Ok(());
        };
        let of_job = |one: &Awaiting| matches!(one.wait, Wait::Job(..));
        let waits = agent.pending().awaiting.iter().any(of_job);
        let over = rollout.status != DeploymentStatus::Running || waits;
        self.holds(Property::RolloutsEnd, over, || {
            format!("{} {rollout:?}", job.job.id)
        })
    }

    /// Every place of a job that runs is filled, is done, or somebody knows why it is not.
    fn what_is_wanted_is_there(
        &mut self,
        world: &World,
        agent: &Agent,
        job: &JobRecord,
    ) -> Verdict {
        let view = agent.view();
        let key = job.job.key();
        self.holds(Property::WhatIsWantedIsThere, !job.purge, || {
            format!("{key} is still there")
        })?;
        let live = |alloc: &&AllocRunner| !alloc.record().finished;
        if job.job.stop {
            let left = view.allocs_of(&key).find(live);
            let name = left.map(|left| left.record().name.clone());
            return self.holds(Property::WhatIsWantedIsThere, left.is_none(), || {
                format!("{name:?} lives")
            });
        }
        let waits = agent.pending().awaits_job(&key);
        for group in &job.job.task_groups {
            let name = GroupName::from(group.name.as_str());
            for index in 0..copies(&job.job, group) {
                let done = job.done.contains(&(name.clone(), index));
                let here = |alloc: &&AllocRunner| {
                    alloc.record().group == name && alloc.record().index == index
                };
                let mut allocs = view.allocs_of(&key).filter(here);
                // One with a new token may be starting again for it just now.
                let filled = |alloc| fills(&job.job, alloc) || world.renews_in(alloc);
                let filled = allocs.clone().any(filled);
                let alive = allocs.clone().filter(live).count();
                self.holds(
                    Property::WhatIsWantedIsThere,
                    filled || done || waits,
                    || {
                        let last = allocs.next().map(|alloc| alloc.record().clone());
                        format!("{key} {name}[{index}]: {last:?}")
                    },
                )?;
                self.holds(Property::WhatIsWantedIsThere, alive <= 1, || {
                    format!("{key} {name}[{index}] has {alive} allocations")
                })?;
            }
            let wanted = copies(&job.job, group);
            let surplus = view
                .allocs_of(&key)
                .filter(live)
                .any(|alloc| alloc.record().group == name && alloc.record().index >= wanted);
            self.holds(Property::WhatIsWantedIsThere, !surplus, || {
                format!("{key} {name} has too many")
            })?;
        }
        Ok(())
    }

    /// An allocation of which a record could not be read is over.
    fn a_quarantine_ends(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let mut tasks = alloc.tasks().iter();
        if !tasks.any(|task| world.unread.contains(&task.spec().key)) {
            return Ok(());
        }
        let record = alloc.record();
        self.holds(Property::AQuarantineEnds, record.finished, || {
            format!("{} {:?}", record.name, alloc.phase())
        })
    }

    /// What lives has its directories.
    fn what_lives_has_its_directories(&mut self, world: &World) -> Verdict {
        for (_, process) in world.alive() {
            let key = &process.key;
            let there = world.dirs.allocs.contains(&key.alloc)
                && world.dirs.tasks.contains(&(key.alloc, key.task.clone()));
            self.holds(Property::WhatLivesHasItsDirectories, there, || {
                process.name.to_string()
            })?;
        }
        Ok(())
    }

    /// What runs is of the latest version, unless that has no place or its roll-out failed.
    fn what_runs_is_the_latest_version(&mut self, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let rollout = job.deployment.and_then(|id| view.deployment(id));
        let failed = rollout.is_some_and(|one| one.status == DeploymentStatus::Failed);
        let key = job.job.key();
        if job.job.stop || failed || !view.blocked(&key).is_empty() {
            return Ok(());
        }
        let old = view.allocs_of(&key).map(AllocRunner::record).find(|alloc| {
            let runs = !alloc.finished && alloc.desired == DesiredStatus::Run;
            runs && alloc.job_version != job.job.version
        });
        let old = old.map(|alloc| format!("{} {}", alloc.name, alloc.job_version));
        self.holds(Property::WhatRunsIsTheLatestVersion, old.is_none(), || {
            format!("{old:?}, not {}", job.job.version)
        })
    }

    /// What comes after the end ran wherever a main task ran and ended, unless the allocation was
    /// to leave nothing behind: its time was over, it is cleaned away, or a record of it could not
    /// be read.
    fn poststop_runs_where_main_ran(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
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
        let quarantined = tasks.any(|task| world.unread.contains(&task.spec().key));
        let exempt = limited || record.destroying || setup_failed || quarantined;
        if !record.finished || !main_ran || exempt {
            return Ok(());
        }
        for task in stage_of(Stage::Poststop) {
            let asked = self.lives.tasks.get(&task.spec().key);
            let tried = asked.is_some_and(|task| !task.launches.is_empty());
            let holds = tried || task.state().failed;
            self.holds(Property::PoststopRunsWhereMainRan, holds, || {
                format!("{} {:?}", record.name, task.record())
            })?;
        }
        Ok(())
    }

    /// Each record on the disk belongs to a job, and histories are as long as they may be.
    fn the_disk_holds_no_strays(&mut self, world: &World) -> Verdict {
        let saved = world.disk.saved();
        let task_is_owned = |key: &(AllocId, _)| saved.allocs.contains_key(&key.0);
        let tasks = saved.tasks.keys().all(task_is_owned);
        let owned = |job: &JobKey| saved.jobs.contains_key(job);
        let allocs = saved.allocs.values().all(|alloc| owned(&alloc.job));
        let evals = saved.evals.values().all(|eval| owned(&eval.job));
        let rollouts = saved.deployments.values().all(|one| owned(&one.job));
        let of_version = |one: &AllocRecord| {
            let job = saved.jobs.get(&one.job);
            job.is_some_and(|job| job.version(one.job_version).is_some())
        };
        let collected = saved.collected.values().all(|one| of_version(&one.alloc));
        let disks = saved.disks.keys().all(|slot| owned(&slot.job));
        let owned = tasks && allocs && collected && evals && rollouts && disks;
        self.holds(Property::TheDiskHoldsNoStrays, owned, || {
            format!("tasks {tasks}, allocs {allocs}, collected {collected}, evals {evals}, roll-outs {rollouts}, disks {disks}")
        })?;
        for (key, job) in &saved.jobs {
            let evals = saved.evals.values().filter(|eval| eval.job == *key).count();
            let rollouts = saved.deployments.values();
            let rollouts = rollouts.filter(|one| one.job == *key).count();
            let versions = job.versions.len() + 1;
            let holds = evals <= KEPT_EVALS && rollouts <= versions;
            self.holds(Property::TheDiskHoldsNoStrays, holds, || {
                format!("{key}: {evals} evaluations, {rollouts} roll-outs, {versions} versions")
            })?;
        }
        Ok(())
    }

    /// What the disk holds is what the agent knows.
    fn the_disk_holds_what_is_known(&mut self, world: &World, agent: &Agent) -> Verdict {
        // Who gets a new token may have been started again for it a moment ago.
        if agent.pending().awaits_store() && !renewed(world, agent).is_empty() {
            return Ok(());
        }
        let saved = world.disk.saved();
        let allocs = agent.view().allocs();
        let known = allocs
            .clone()
            .map(|alloc| (alloc.record().id, alloc.record().clone()));
        let same_allocs = saved.allocs == known.collect();
        let tasks = allocs.flat_map(|alloc| alloc.tasks()).map(|task| {
            (
                (task.spec().key.alloc, task.spec().key.task.clone()),
                task.record().clone(),
            )
        });
        let same_tasks = saved.tasks == tasks.collect();
        let collected = agent.view().collected();
        let collected = collected.map(|record| (record.alloc.id, record.clone()));
        let same_collected = saved.collected == collected.collect();
        let jobs = agent.view().jobs().map(|job| (job.job.key(), job.clone()));
        let same_jobs = saved.jobs == jobs.collect();
        let same_disks = saved.disks == *agent.view().disks();
        self.holds(
            Property::TheDiskHoldsWhatIsKnown,
            same_allocs && same_tasks && same_collected && same_jobs && same_disks,
            || {
                format!(
                    "allocs {same_allocs}, tasks {same_tasks}, collected {same_collected}, jobs {same_jobs}, \
                     disks {same_disks}"
                )
            },
        )
    }
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
    let alive = alive.filter(|alloc| world.renews_in(alloc));
    let keys = alive.flat_map(|alloc| alloc.tasks().iter().map(|task| &task.spec().key));
    keys.filter(|key| world.renews_of(key)).cloned().collect()
}
