//! What is settled: a job is as its plan wants it as soon as nothing is under way, and is called what it is.

use drover_core::agent::{Agent, JobWait, Wait};
use drover_core::ids::GroupName;
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::JobStatus;
use drover_core::scheduler::Action;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

impl Checker {
    /// What was to be done for a job was done: if it was planned now, nothing would be told to end, and nothing placed.
    pub(super) fn plan_at_rest_is_empty(&mut self, world: &World, agent: &Agent) -> Verdict {
        let view = agent.view();
        if view.shutdown().is_some() {
            return Ok(());
        }
        for job in view.jobs().filter(|job| !job.job.stop) {
            let dry_run = view.dry_run(world.now(), &job.job);
            let begins_anew = |it: &Action| match it {
                // One of which all was collected would run once more.
                Action::Place(new) => new.job.version > job.job.version,
                // What a roll-out that failed left behind is planned when somebody asks for it, however well the node
                // suits it now.
                Action::Update(_, new, rollout) => {
                    let rollout = rollout.and_then(|id| view.deployment(id));
                    let failed = rollout.is_some_and(|it| it.status == DeploymentStatus::Failed);
                    failed || new.version > job.job.version
                }
                _ => false,
            };
            let mut steps = dry_run.plan.actions.into_iter();
            let left = steps.find(|it| changes(it) && !begins_anew(it));
            self.holds(Property::PlanAtRestIsEmpty, left.is_none(), || {
                let allocs = view.allocs_of(&job.job.key()).map(|alloc| {
                    let record = alloc.record();
                    (record.id, record.name.clone(), record.job_version)
                });
                let allocs: Vec<_> = allocs.collect();
                format!("{} with {allocs:?}: {left:?}", job.job.id)
            })?;
        }
        Ok(())
    }

    /// A job that runs to its end and has done all that it was to do is called dead.
    pub(super) fn done_job_is_dead(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for record in view.jobs() {
            let job = &record.job;
            if !job.job_type.runs_to_completion() || job.is_template() {
                continue;
            }
            let copies = job.task_groups.iter().flat_map(|group| {
                let name = GroupName::from(group.name.as_str());
                (0..policy::copies(job, group)).map(move |index| (name.clone(), index))
            });
            let mut copies = copies.peekable();
            // One that has nothing to do waits for something.
            let has_any = copies.peek().is_some();
            let key = job.key();
            let done = has_any && copies.all(|(name, index)| record.done.contains(&name, index));
            let status = view.job_status(&key);
            let holds = !done || status == JobStatus::Dead;
            self.holds(Property::DoneJobIsDead, holds, || {
                format!("{key} is done, and called {status:?}")
            })?;
        }
        Ok(())
    }

    /// A job that waits for anything is not called dead.
    pub(super) fn waiting_job_is_not_dead(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for one in agent.pending().awaiting {
            let Wait::Job(key, JobWait::Placement | JobWait::Reschedule | JobWait::Fingerprint) =
                one.wait
            else {
                continue;
            };
            let goes_on = view.job(&key).is_some_and(|job| !job.job.stop);
            let dead = view.job_status(&key) == JobStatus::Dead;
            self.holds(Property::WaitingJobIsNotDead, !(goes_on && dead), || {
                format!("{key} waits, and is called dead")
            })?;
        }
        Ok(())
    }
}

/// Whether something of an allocation or of a roll-out changes.
fn changes(action: &Action) -> bool {
    match action {
        Action::EndRollout(..)
        | Action::Promote(..)
        | Action::Revert(..)
        | Action::Stop(..)
        | Action::Update(..)
        | Action::Place(_)
        | Action::Remove(_)
        | Action::Forget(_) => true,
        Action::ProgressBy(..)
        | Action::ReplaceAt(..)
        | Action::Considered(..)
        | Action::Planned(_) => false,
    }
}
