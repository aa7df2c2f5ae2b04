//! What holds when the trouble is over and enough time has passed.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::GroupName;
use drover_core::local::reconcile::copies;
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::Job;
use drover_core::store::record::JobRecord;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Verdict, ensure};
use crate::world::World;

impl Checker {
    /// Looks at everything at rest.
    pub(crate) fn rest(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.nothing_is_awaited(agent)?;
        self.what_lives_is_wanted(world, agent)?;
        self.no_directory_is_left_behind(world, agent)?;
        self.what_ended_is_cleaned(agent)?;
        for job in agent.view().jobs() {
            self.rollouts_end(agent, job)?;
            self.what_is_wanted_is_there(agent, job)?;
        }
        self.the_disk_holds_what_is_known(world, agent)
    }

    /// Only jobs without a place, and failed allocations between two tries, wait for anything.
    fn nothing_is_awaited(&mut self, agent: &Agent) -> Verdict {
        self.reach("nothing_is_awaited");
        let allowed = ["a place on this node", "the time of a replacement"];
        let pending = agent.pending();
        let other = pending
            .awaiting
            .iter()
            .find(|awaiting| !allowed.contains(&awaiting.what));
        ensure(other.is_none(), "nothing_is_awaited", || {
            format!("{other:?}")
        })
    }

    /// What lives belongs to an allocation that shall run, and its task knows it.
    fn what_lives_is_wanted(&mut self, world: &World, agent: &Agent) -> Verdict {
        for (launch, process) in world.alive() {
            self.reach("what_lives_is_wanted");
            let alloc = agent.view().alloc(process.key.alloc);
            let wanted = alloc.is_some_and(|alloc| {
                let task = alloc.task(&process.key.task);
                let known = task.and_then(|task| task.record().launch.as_ref());
                alloc.record().desired == DesiredStatus::Run
                    && known.is_some_and(|known| known.id == *launch)
                    && task.is_some_and(|task| !task.is_dead())
            });
            ensure(wanted, "what_lives_is_wanted", || process.name.to_string())?;
        }
        Ok(())
    }

    /// Directories belong to allocations that the agent knows.
    fn no_directory_is_left_behind(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.reach("no_directory_is_left_behind");
        let left = world
            .dirs
            .allocs
            .iter()
            .find(|id| agent.view().alloc(**id).is_none());
        ensure(left.is_none(), "no_directory_is_left_behind", || {
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
            self.reach("what_ended_is_cleaned");
            ensure(!ended || clean, "what_ended_is_cleaned", || {
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
        self.reach("rollouts_end");
        let waits = agent
            .pending()
            .awaiting
            .iter()
            .any(|who| who.who.starts_with("job "));
        let over = rollout.status != DeploymentStatus::Running || waits;
        ensure(over, "rollouts_end", || {
            format!("{} {rollout:?}", job.job.id)
        })
    }

    /// Every place of a job that runs is filled, is done, or somebody knows why it is not.
    fn what_is_wanted_is_there(&mut self, agent: &Agent, job: &JobRecord) -> Verdict {
        let view = agent.view();
        let key = job.job.key();
        ensure(!job.purge, "what_is_wanted_is_there", || {
            format!("{key} is still there")
        })?;
        let live = |alloc: &&AllocRunner| !alloc.record().finished;
        if job.job.stop {
            let left = view.allocs_of(&key).find(live);
            let name = left.map(|left| left.record().name.clone());
            return ensure(left.is_none(), "what_is_wanted_is_there", || {
                format!("{name:?} lives")
            });
        }
        let waits = agent
            .pending()
            .awaiting
            .iter()
            .any(|who| who.who == format!("job {key}"));
        for group in &job.job.task_groups {
            let name = GroupName::from(group.name.as_str());
            for index in 0..copies(&job.job, group) {
                let done = job.done.contains(&(name.clone(), index));
                let here = |alloc: &&AllocRunner| {
                    alloc.record().group == name && alloc.record().index == index
                };
                let mut allocs = view.allocs_of(&key).filter(here);
                let filled = allocs.clone().any(|alloc| fills(&job.job, alloc));
                let alive = allocs.clone().filter(live).count();
                self.reach("what_is_wanted_is_there");
                ensure(filled || done || waits, "what_is_wanted_is_there", || {
                    let last = allocs.next().map(|alloc| alloc.record().clone());
                    format!("{key} {name}[{index}]: {last:?}")
                })?;
                ensure(alive <= 1, "what_is_wanted_is_there", || {
                    format!("{key} {name}[{index}] has {alive} allocations")
                })?;
            }
            let wanted = copies(&job.job, group);
            let surplus = view
                .allocs_of(&key)
                .filter(live)
                .any(|alloc| alloc.record().group == name && alloc.record().index >= wanted);
            ensure(!surplus, "what_is_wanted_is_there", || {
                format!("{key} {name} has too many")
            })?;
        }
        Ok(())
    }

    /// What the disk holds is what the agent knows.
    fn the_disk_holds_what_is_known(&mut self, world: &World, agent: &Agent) -> Verdict {
        self.reach("the_disk_holds_what_is_known");
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
        let jobs = agent.view().jobs().map(|job| (job.job.key(), job.clone()));
        let same_jobs = saved.jobs == jobs.collect();
        ensure(
            same_allocs && same_tasks && same_jobs,
            "the_disk_holds_what_is_known",
            || format!("allocs {same_allocs}, tasks {same_tasks}, jobs {same_jobs}"),
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
