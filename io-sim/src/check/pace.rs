//! Roll-outs go on as soon as they may: as many copies at a time as their job file says, and no fewer.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::{Deployment, DeploymentStatus, Evaluation};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::JobType;
use drover_core::store::record::JobRecord;

use super::{Checker, Property, Verdict, policy};

impl Checker {
    /// Where copies of an older version are left, as many of the new one wait for their health as may.
    pub(super) fn rolling_update_uses_max_parallel(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        if self.leaving || view.shutdown().is_some() || !view.is_fingerprinted() {
            return Ok(());
        }
        for job in view.jobs() {
            let is_service = job.job.job_type == JobType::Service && !job.job.stop;
            let rollout = job.deployment.and_then(|id| view.deployment(id));
            let Some(rollout) = rollout.filter(|_| is_service) else {
                continue;
            };
            if rollout.status != DeploymentStatus::Running {
                continue;
            }
            let key = job.job.key();
            // What was changed just now is planned next, as is what could not be placed before the agent began.
            let is_open = |eval: &Evaluation| eval.job == key && eval.status.is_open();
            if view.evals().any(|eval| is_open(eval) && !eval.is_waiting()) {
                continue;
            }
            let blocked = view.blocked(&key);
            for group in &job.job.task_groups {
                let is_blocked = blocked.iter().any(|(name, _)| **name == *group.name);
                if !is_blocked && !rollout.awaits_promotion(&group.name) {
                    self.group_rolls_on(agent, job, rollout, group)?;
                }
            }
        }
        Ok(())
    }

    fn group_rolls_on(
        &mut self,
        agent: &Agent,
        job: &JobRecord,
        rollout: &Deployment,
        group: &TaskGroup,
    ) -> Verdict {
        let update = policy::update(&job.job, group);
        let most = update.and_then(|update| usize::try_from(update.max_parallel).ok());
        let Some(most) = most.filter(|most| *most > 0) else {
            return Ok(());
        };
        let view = agent.view();
        let key = job.job.key();
        let of_group = || {
            let all = view.allocs_of(&key).map(AllocRunner::record);
            all.filter(|it| it.group.as_str() == group.name && it.desired == DesiredStatus::Run)
        };
        let copies = policy::copies(&job.job, group);
        let is_old = |version: u64| version < job.job.version;
        let old = of_group().find(|it| {
            let runs = it.status == ClientStatus::Running && !it.finished;
            runs && is_old(it.job_version) && it.index < copies
        });
        let under_way = of_group().filter(|it| {
            let unproved = it.health.is_none_or(|health| !health.healthy);
            it.deployment == Some(rollout.id) && unproved
        });
        let under_way = under_way.count();
        let holds = old.is_none() || under_way >= most;
        self.holds(Property::RollingUpdateUsesMaxParallel, holds, || {
            let name = old.map(|it| it.name.clone());
            format!("{name:?} is not replaced, {under_way} of {most} are under way")
        })
    }
}
