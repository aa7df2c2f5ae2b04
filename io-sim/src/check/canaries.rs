//! Canaries, pauses, and what follows a roll-out that failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::Request;
use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{DeploymentId, GroupName, JobKey};
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::eval::{Deployment, DeploymentStatus};
use drover_core::model::event::EventType;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::time::{Instant, Span, Timestamp};

use super::policy::runs_the_same;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of roll-outs.
#[derive(Clone, Debug, Default)]
pub(super) struct Canaries {
    /// As they were when they were looked at last in this life of the agent.
    before: BTreeMap<DeploymentId, Arc<Deployment>>,
    /// When allocations of jobs were said to be unhealthy last. What is reverted in place is not of the roll-out any
    /// more when it is looked at.
    unhealthy: BTreeMap<JobKey, Instant>,
}

impl Canaries {
    pub(super) fn agent_died(&mut self) {
        self.before.clear();
    }

    /// A task is told something.
    pub(super) fn reported(&mut self, now: Instant, job: &JobKey, kind: EventType) {
        if kind == EventType::AllocUnhealthy {
            self.unhealthy.insert(job.clone(), now);
        }
    }
}

/// Whether nothing of an older version of a group is replaced, and no new copy is made, until somebody or
/// something says so.
pub(super) fn stands(view: View<'_>, job: &JobRecord, group: &str) -> bool {
    let rollout = job.deployment.and_then(|id| view.deployment(id));
    rollout.is_some_and(|rollout| {
        rollout.status == DeploymentStatus::Paused || rollout.awaits_promotion(group)
    })
}

/// Whether a roll-out waits for somebody: it is paused, or its canaries are to be promoted by hand.
pub(super) fn waits_for_people(job: &JobRecord, rollout: &Deployment) -> bool {
    let promotes_itself = |name: &GroupName| {
        let group = job.job.group(name.as_str());
        let update = group.and_then(|group| group.update.as_ref());
        update.is_some_and(|update| update.auto_promote)
    };
    let by_hand = rollout.unpromoted().any(|(name, _)| !promotes_itself(name));
    let manual = job.job.task_groups.iter().any(|group| {
        let update = group.update.as_ref();
        update.is_some_and(|update| update.health_check == "manual")
    });
    rollout.status == DeploymentStatus::Paused || by_hand || manual
}

fn of_rollout<'a>(
    view: View<'a>,
    rollout: &'a Deployment,
) -> impl Iterator<Item = &'a AllocRecord> + Clone {
    let allocs = view.allocs_of(&rollout.job).map(AllocRunner::record);
    let allocs = allocs.map(|alloc| &**alloc);
    allocs.filter(|alloc| alloc.deployment == Some(rollout.id))
}

/// When a group of a roll-out last came nearer to its end, before now: what is placed in the step in which it fails comes
/// too late, as after an agent was away for longer than the deadline.
fn last_progress(
    (view, now): (View<'_>, Timestamp),
    job: &Job,
    rollout: &Deployment,
    group: &str,
) -> Timestamp {
    let here = of_rollout(view, rollout).filter(|alloc| alloc.group.as_str() == group);
    let healthy = here.clone().filter_map(|alloc| alloc.health);
    let healthy = healthy.filter(|health| health.healthy);
    let promoted = rollout
        .groups
        .iter()
        .filter(|(name, _)| name.as_str() == group);
    let placed = here.map(|alloc| alloc.create_time);
    (placed.filter(|placed| *placed < now))
        .chain(healthy.map(|health| health.timestamp))
        .chain(promoted.filter_map(|(_, group)| group.promoted))
        .chain(rollout.resumed)
        .fold(job.submit_time, Timestamp::max)
}

/// Whether a roll-out may still go on.
pub(super) fn is_open(rollout: &Deployment) -> bool {
    match rollout.status {
        DeploymentStatus::Running | DeploymentStatus::Paused => true,
        DeploymentStatus::Successful | DeploymentStatus::Failed | DeploymentStatus::Cancelled => {
            false
        }
    }
}

/// How late an agent may be called back.
const SLACK: Span = Span::secs(66);

/// Whether it is to go on. One that failed is replaced while its poststop tasks run.
fn is_wanted(alloc: &AllocRecord) -> bool {
    alloc.desired == DesiredStatus::Run && !alloc.finished && !alloc.status.is_terminal()
}

impl Checker {
    /// Looks at all roll-outs.
    pub(super) fn canaries(&mut self, world: &World, agent: &Agent) -> Verdict {
        let view = agent.view();
        for rollout in view.deployments() {
            let before = self.canaries.before.insert(rollout.id, rollout.clone());
            let job = view.job(&rollout.job);
            let Some(job) = job.filter(|job| job.version(rollout.job_version).is_some()) else {
                continue;
            };
            if is_open(rollout) {
                self.progress_deadline_fails_deployment(world, agent, job, rollout)?;
                self.old_version_serves_until_promotion(view, job, rollout)?;
                self.paused_deployment_starts_nothing(view, rollout)?;
            }
            let changed = before.filter(|before| !Arc::ptr_eq(before, rollout));
            if let Some(before) = changed {
                self.canary_is_promoted_on_request(view, job, &before, rollout)?;
                self.failed_deployment_has_a_cause(world, view, job, &before, rollout)?;
                self.failed_deployment_reverts_once(job, &before, rollout)?;
            }
        }
        Ok(())
    }

    /// A roll-out fails when a group of it, of which something is not healthy yet, came no nearer to its end for its
    /// progress_deadline.
    fn progress_deadline_fails_deployment(
        &mut self,
        world: &World,
        agent: &Agent,
        job: &JobRecord,
        rollout: &Deployment,
    ) -> Verdict {
        let view = agent.view();
        let rests = self.leaving || view.shutdown().is_some() || !view.is_fingerprinted();
        let late = agent
            .poll_timeout()
            .is_some_and(|(at, _)| at <= world.scene.at);
        let runs = rollout.status == DeploymentStatus::Running;
        let Some(version) = job.version(rollout.job_version) else {
            return Ok(());
        };
        if rests || late || !runs || world.scene.wall_jumps > 0 {
            return Ok(());
        }
        let now = world.now().wall;
        for group in &version.task_groups {
            let limit = group.update.as_ref().map(|update| update.progress_deadline);
            let Some(limit) = limit.filter(|limit| *limit > Span::ZERO) else {
                continue;
            };
            let here = of_rollout(view, rollout).filter(|it| it.group.as_str() == group.name);
            let waits = here.clone().any(|it| is_wanted(it) && it.health.is_none());
            // Here what was placed in this step is progress, too.
            let placed = here.map(|it| it.create_time).max();
            let last = last_progress((view, now), version, rollout, &group.name);
            let last = placed.unwrap_or(last).max(last);
            let holds = !waits || now <= last + limit + SLACK;
            self.holds(Property::ProgressDeadlineFailsDeployment, holds, || {
                format!(
                    "{rollout:?}: {} came nearer at {last:?}, it is {now:?}",
                    group.name
                )
            })?;
        }
        Ok(())
    }

    /// Until canaries are promoted, there are no more of them than the group shall have, and nothing else of the
    /// new version.
    fn old_version_serves_until_promotion(
        &mut self,
        view: View<'_>,
        job: &JobRecord,
        rollout: &Deployment,
    ) -> Verdict {
        if view.shutdown().is_some() || job.job.stop {
            return Ok(());
        }
        for (name, group) in rollout.unpromoted() {
            let here = of_rollout(view, rollout).filter(|alloc| alloc.group == *name);
            let here = here.filter(|alloc| is_wanted(alloc));
            let canaries = here.clone().filter(|alloc| alloc.canary).count();
            let others = here.filter(|alloc| !alloc.canary).count();
            self.sometimes(Property::SometimesCanaryRuns, canaries > 0);
            let most = usize::try_from(group.canaries).unwrap_or(usize::MAX);
            self.holds(
                Property::OldVersionServesUntilPromotion,
                canaries <= most && others == 0,
                || {
                    format!(
                        "{} {name}: {canaries} of {most} canaries, {others} others",
                        rollout.job
                    )
                },
            )?;
            let updating = "alloc is being updated due to job update";
            let mut old = view.allocs_of(&rollout.job).map(AllocRunner::record);
            let ended = old.find(|alloc| {
                alloc.group == *name
                    && alloc.job_version < rollout.job_version
                    && *alloc.desired_description == *updating
                    && alloc.modify_index > rollout.create_index
                    && !alloc.finished
                    && alloc.next.is_some_and(|next| {
                        let next = view.alloc(next).map(AllocRunner::record);
                        next.is_some_and(|next| next.deployment == Some(rollout.id))
                    })
            });
            self.holds(
                Property::OldVersionServesUntilPromotion,
                ended.is_none(),
                || format!("{ended:?}"),
            )?;
        }
        Ok(())
    }

    /// A paused roll-out replaces what it started, and starts nothing else.
    fn paused_deployment_starts_nothing(
        &mut self,
        view: View<'_>,
        rollout: &Deployment,
    ) -> Verdict {
        if rollout.status != DeploymentStatus::Paused {
            return Ok(());
        }
        let replaces_own = |alloc: &AllocRecord| {
            let previous = alloc.previous.and_then(|id| view.alloc(id));
            // One that is gone was of some version.
            let version = previous.map(|previous| previous.record().job_version);
            alloc.previous.is_some() && version.is_none_or(|it| it == alloc.job_version)
        };
        let mut new = of_rollout(view, rollout);
        let new =
            new.find(|alloc| alloc.create_index > rollout.modify_index && !replaces_own(alloc));
        self.holds(
            Property::PausedDeploymentStartsNothing,
            new.is_none(),
            || format!("{new:?}"),
        )
    }

    /// Canaries are promoted when somebody asks, or all groups promote themselves; and they are healthy.
    fn canary_is_promoted_on_request(
        &mut self,
        view: View<'_>,
        job: &JobRecord,
        before: &Deployment,
        rollout: &Deployment,
    ) -> Verdict {
        let promoted = before
            .unpromoted()
            .filter(|(name, _)| !rollout.awaits_promotion(name.as_str()));
        let promoted: Vec<_> = promoted.collect();
        if promoted.is_empty() {
            return Ok(());
        }
        self.sometimes(Property::SometimesCanaryIsPromoted, true);
        let asked = self.replies.any(|asked| {
            matches!(asked, Request::PromoteDeployment(one) if one.deployment == rollout.id)
        });
        let version = job.version(rollout.job_version);
        let itself = |name: &GroupName| {
            let group = version.and_then(|job| job.group(name.as_str()));
            let update = group.and_then(|group| group.update.as_ref());
            update.is_some_and(|update| update.auto_promote)
        };
        let by_itself = before.unpromoted().all(|(name, _)| itself(name));
        let healthy = |name: &GroupName| {
            let here = of_rollout(view, rollout).filter(|alloc| alloc.group == *name);
            here.filter(|alloc| alloc.health.is_some_and(|health| health.healthy))
                .count()
        };
        let healthy = promoted.iter().all(|(name, group)| {
            healthy(name) >= usize::try_from(group.canaries).unwrap_or(usize::MAX)
        });
        self.holds(
            Property::CanaryIsPromotedOnRequest,
            (asked || by_itself) && healthy,
            || format!("{rollout:?}: asked {asked}, healthy {healthy}"),
        )
    }

    /// A roll-out fails when an allocation of it is unhealthy, when somebody says so, or when a group went on for its
    /// progress_deadline without anything that is progress: a placement, a healthy allocation, a promotion, or the end
    /// of a pause.
    fn failed_deployment_has_a_cause(
        &mut self,
        world: &World,
        view: View<'_>,
        job: &JobRecord,
        before: &Deployment,
        rollout: &Deployment,
    ) -> Verdict {
        let fails = is_open(before) && rollout.status == DeploymentStatus::Failed;
        let version = job.version(rollout.job_version);
        let Some(version) = version.filter(|_| fails && world.scene.wall_jumps == 0) else {
            return Ok(());
        };
        // Whom somebody calls unhealthy may go on in the version that comes back, and then nobody judges it.
        let is_of = |id: DeploymentId| id == rollout.id;
        let asked = self.replies.any(|asked| match asked {
            Request::FailDeployment(one) => is_of(one.deployment),
            Request::SetAllocHealth(one) => is_of(one.deployment) && !one.unhealthy.is_empty(),
            _ => false,
        });
        let unhealthy = of_rollout(view, rollout)
            .any(|alloc| alloc.health.is_some_and(|health| !health.healthy));
        let unhealthy =
            unhealthy || self.canaries.unhealthy.get(&rollout.job) == Some(&world.scene.at);
        let now = world.now().wall;
        let is_late = |group: &TaskGroup| {
            let limit = group.update.as_ref().map(|update| update.progress_deadline);
            let last = last_progress((view, now), version, rollout, &group.name);
            limit.is_some_and(|limit| limit > Span::ZERO && last + limit <= now)
        };
        let late = version.task_groups.iter().any(is_late);
        let holds = asked || unhealthy || late;
        self.holds(Property::FailedDeploymentHasACause, holds, || {
            format!("{rollout:?} at {now:?}")
        })
    }

    /// When a roll-out fails, the last stable version comes back if the job says so and that says something else
    /// than what failed; otherwise nothing does.
    fn failed_deployment_reverts_once(
        &mut self,
        job: &JobRecord,
        before: &Deployment,
        rollout: &Deployment,
    ) -> Verdict {
        let fails = is_open(before) && rollout.status == DeploymentStatus::Failed;
        let failed = job.version(rollout.job_version);
        let Some(failed) = failed.filter(|_| fails) else {
            return Ok(());
        };
        let reverts = |job: &Job| {
            let mut updates = job
                .task_groups
                .iter()
                .filter_map(|group| group.update.as_ref());
            updates.any(|update| update.auto_revert)
        };
        let mut earlier = job
            .newest_first()
            .filter(|one| one.version < failed.version);
        let stable = earlier.find(|one| one.stable);
        let older = earlier.any(|one| one.stable);
        // With what its copies ran, where tags are followed.
        let stable = stable.map(|stable| job.as_it_ran(stable));
        let back = stable.filter(|stable| reverts(failed) && !runs_the_same(stable, failed));
        let latest = &job.job;
        let holds = match &back {
            Some(back) => latest.version == failed.version + 1 && runs_the_same(back, latest),
            None => latest.version == failed.version,
        };
        self.sometimes(Property::SometimesDeploymentIsReverted, back.is_some());
        self.sometimes(
            Property::SometimesEarlierStableVersionIsPassedOver,
            back.is_some() && older,
        );
        self.holds(Property::FailedDeploymentRevertsOnce, holds, || {
            let back = back.map(|back| back.version);
            format!("{rollout:?}: back to {back:?}, latest {}", latest.version)
        })
    }
}
