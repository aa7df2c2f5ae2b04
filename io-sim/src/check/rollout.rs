//! Roll-outs and replacements: in their measure, in their time, and as often as they may.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, DeploymentId, JobKey};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskLife};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::task::Stage;
use drover_core::task::runner::TaskRunner;
use drover_core::time::Timestamp;

use super::canaries::is_open;
use super::history::{History, TaskPath};
use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// What is remembered of roll-outs and replacements.
#[derive(Clone, Debug, Default)]
pub(super) struct Rollouts {
    /// Replacements of failed allocations in one place, oldest first.
    replacements: BTreeMap<TaskPath, Vec<(AllocId, Timestamp)>>,
    /// Roll-outs that were seen to be over.
    over: BTreeSet<DeploymentId>,
    /// How roll-outs ended, as far as this life of the agent knows.
    ended: BTreeMap<DeploymentId, DeploymentStatus>,
    /// Allocations that are seen to be healthy in this life of the agent.
    healthy: BTreeMap<AllocId, u64>,
    /// Allocations that ever were: they proved themselves, and may take a new version in place.
    proved: BTreeSet<AllocId>,
}

impl Rollouts {
    /// Replacements that were not saved did not happen.
    pub(super) fn agent_restored(&mut self, lives: &History) {
        for times in self.replacements.values_mut() {
            times.retain(|(id, _)| lives.allocs.contains_key(id));
        }
        self.healthy.clear();
        self.ended.clear();
    }

    /// Somebody is about to ask. What is replaced because somebody wants it is not counted.
    pub(super) fn asked(&mut self, asked: &Request) {
        if let Request::Evaluate(asked) = asked
            && asked.force_reschedule
        {
            self.replacements
                .retain(|place, _| *place.job() != asked.job);
        }
    }
}

/// Why an allocation of an older version is ended when there is a place for the new one.
const RENEWED: &str = "alloc is being updated due to job update";

impl Checker {
    /// Looks at an allocation that was not there before, and at what it replaces.
    pub(super) fn placements(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        if let Some(known) = self.lives.allocs.get(&record.id) {
            let in_place = known.shown.as_ref();
            let updated = in_place.is_some_and(|shown| shown.version < record.job_version);
            self.sometimes(Property::SometimesAllocIsUpdatedInPlace, updated);
            return Ok(());
        }
        self.disk_of_a_new_alloc(alloc);
        let mut of_job = agent.view().allocs_of(&record.job);
        let Some(replaced) = of_job.find(|other| other.record().next == Some(record.id)) else {
            // What was there before ended otherwise, and is collected.
            self.rollouts.replacements.remove(&TaskPath::of(alloc));
            return Ok(());
        };
        let before = replaced.record();
        let renewal = before.job_version < record.job_version
            && !before.finished
            && *before.desired_description == *RENEWED;
        let memory = self.lives.allocs.entry(record.id).or_default();
        memory.renewal = renewal;
        if renewal {
            let latest = agent.view().job(&record.job);
            let rollout = latest.and_then(|job| job.deployment);
            let rollout = rollout.and_then(|id| agent.view().deployment(id));
            // It may fail in the same step, after that.
            let failed = rollout.is_some_and(|it| {
                it.status == DeploymentStatus::Failed && it.modify_index < record.create_index
            });
            self.holds(Property::FailedDeploymentReplacesNothing, !failed, || {
                format!("{} is placed, {rollout:?}", record.name)
            })?;
            self.rolling_update_stays_within_max_parallel(agent, alloc)
        } else {
            self.replacement_is_of_waiting_evaluation(agent, alloc, replaced)?;
            self.reschedules_stay_within_policy(world, alloc, replaced)
        }
    }

    /// A rolling update has at most max_parallel copies that are not yet healthy.
    fn rolling_update_stays_within_max_parallel(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let own = alloc.record();
        let group = alloc.job().group(own.group.as_str());
        let update = group.and_then(|group| group.update.as_ref());
        let parallel = update.map_or(0, |update| update.max_parallel);
        let Ok(parallel) = usize::try_from(parallel) else {
            return Ok(());
        };
        if parallel == 0 || alloc.job().job_type != JobType::Service {
            return Ok(());
        }
        let unproved = agent.view().allocs_of(&own.job).filter(|other| {
            let theirs = other.record();
            let renewal = self
                .lives
                .allocs
                .get(&theirs.id)
                .is_some_and(|memory| memory.renewal);
            renewal
                && !self.rollouts.proved.contains(&theirs.id)
                && theirs.group == own.group
                && theirs.job_version == own.job_version
                && theirs.health.is_none()
                && theirs.deployment.is_some()
                && theirs.desired == DesiredStatus::Run
        });
        let unproved = unproved.count();
        self.holds(
            Property::RollingUpdateStaysWithinMaxParallel,
            unproved <= parallel,
            || format!("{}: {unproved} of {parallel}", own.name),
        )
    }

    /// A failed allocation is rescheduled at most as often as its policy allows.
    fn reschedules_stay_within_policy(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        replaced: &AllocRunner,
    ) -> Verdict {
        let before = replaced.record();
        let place = TaskPath::of(alloc);
        let failed = before.status == ClientStatus::Failed
            && before.desired == DesiredStatus::Run
            && before.job_version == alloc.record().job_version;
        self.replacement_is_not_too_early(world, alloc, replaced, failed)?;
        if !failed {
            self.rollouts.replacements.remove(&place);
            return Ok(());
        }
        self.sometimes(Property::SometimesFailedAllocIsRescheduled, true);
        let now = world.now().wall;
        let times = self.rollouts.replacements.entry(place.clone()).or_default();
        times.push((alloc.record().id, now));
        let file = self.files.of(alloc);
        let rules = file.and_then(|file| {
            let group = policy::group(file, alloc.record().group.as_str())?;
            policy::replacements(file, group)
        });
        let Some((attempts, interval)) = rules.and_then(|it| Some((it.attempts?, it.interval)))
        else {
            return Ok(());
        };
        let failed_at = self.failed_at(world, before.id);
        let times = self.rollouts.replacements.entry(place).or_default();
        // What used the attempts up when it failed does so for good.
        let (new, ended) = (alloc.record().id, failed_at.unwrap_or(now));
        let earlier = times
            .iter()
            .filter(|(id, time)| *id != new && (ended - *time).0.saturating_abs() < interval.0);
        let left = attempts > earlier.count() || world.scene.wall_jumps > 0;
        // Times that are far in the future are of a clock that was set back.
        let is_recent = |time: Timestamp| (now - time).0.saturating_abs() < interval.0;
        let recent = times.iter().filter(|(_, time)| is_recent(*time));
        let recent = recent.count();
        self.holds(
            Property::ReschedulesStayWithinPolicy,
            recent <= attempts && left,
            || {
                format!(
                    "{}: {recent} of {attempts} since {ended:?}",
                    alloc.record().name
                )
            },
        )
    }

    /// An allocation is healthy only after its tasks ran for min_healthy_time, or when somebody says so.
    pub(super) fn healthy_alloc_ran_min_healthy_time(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let healthy = record.health.is_some_and(|health| health.healthy);
        if !healthy {
            self.rollouts.healthy.remove(&record.id);
            return Ok(());
        }
        self.rollouts.proved.insert(record.id);
        let version = record.job_version;
        let known = self.rollouts.healthy.insert(record.id, version);
        let fresh = known != Some(version) && world.scene.at > self.lives.began;
        let file = self.files.of(alloc);
        let update = file.and_then(|file| {
            let group = policy::group(file, record.group.as_str())?;
            policy::update(file, group)
        });
        let (Some(update), true) = (update, fresh) else {
            return Ok(());
        };
        if self.replies.says_healthy(record.id) {
            return Ok(());
        }
        let time = update.min_healthy_time;
        // A new version has to prove itself, also if it was taken in place.
        let taken = self.health.since_version(record.id);
        let long = taken.is_none_or(|since| world.elapsed().0 - since.0 >= time.0);
        self.holds(Property::HealthyAllocRanMinHealthyTime, long, || {
            format!(
                "{} has run version {version} for less than {time}",
                record.name
            )
        })?;
        let late = alloc.tasks().iter().find(|task| {
            let launch = task.record().launch.as_ref().map(|launch| launch.id);
            let since = launch.and_then(|id| self.exits.known_since.get(&id));
            let since = since.copied().unwrap_or(self.lives.began);
            let ended = task
                .record()
                .launch
                .as_ref()
                .is_some_and(|launch| launch.exit.is_some());
            let runs = task.state().state == TaskLife::Running && !ended;
            is_watched(task) && !(runs && world.scene.at - since >= time)
        });
        let late = late.map(|task| task.spec().key.task.clone());
        self.holds(
            Property::HealthyAllocRanMinHealthyTime,
            late.is_none(),
            || format!("{} {late:?} ran less than {time}", record.name),
        )
    }

    /// A deployment succeeds only when every copy of every watched group is healthy.
    pub(super) fn successful_deployment_has_all_copies_healthy(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let view = agent.view();
        let id = alloc.record().deployment;
        let Some(rollout) = id.and_then(|id| view.deployment(id)) else {
            return Ok(());
        };
        let over = !is_open(rollout);
        if !over || !self.rollouts.over.insert(rollout.id) {
            return Ok(());
        }
        let failed = rollout.status == DeploymentStatus::Failed;
        self.sometimes(Property::SometimesDeploymentFails, failed);
        if rollout.status != DeploymentStatus::Successful {
            return Ok(());
        }
        self.sometimes(Property::SometimesDeploymentSucceeds, true);
        let job = alloc.job();
        let healthy = |group: &TaskGroup, index: u32| {
            view.allocs_of(&alloc.record().job).any(|other| {
                let record = other.record();
                record.deployment == Some(rollout.id)
                    && !record.canary
                    && record.group.as_str() == group.name
                    && record.index == index
                    && record.desired == DesiredStatus::Run
                    && record.health.is_some_and(|health| health.healthy)
            })
        };
        let watched = job.task_groups.iter().filter(|g| g.update.is_some());
        let missing = watched
            .flat_map(|group| (0..policy::copies(job, group)).map(move |index| (group, index)))
            .find(|(group, index)| !healthy(group, *index))
            .map(|(group, index)| format!("{} {}[{index}]", job.id, group.name));
        self.holds(
            Property::SuccessfulDeploymentHasAllCopiesHealthy,
            missing.is_none(),
            || format!("{missing:?}"),
        )
    }

    /// A job has at most one active deployment, that of its latest version, and none once it is stopped. One that is over
    /// stays as it ended.
    pub(super) fn rollouts(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let running = view.deployments().filter(|rollout| is_open(rollout));
        let mut of_jobs: BTreeSet<&JobKey> = BTreeSet::new();
        for rollout in running {
            let job = view.job(&rollout.job);
            let latest = job.is_some_and(|job| job.deployment == Some(rollout.id) && !job.job.stop);
            let alone = of_jobs.insert(&rollout.job);
            self.holds(Property::JobHasOneActiveDeployment, latest && alone, || {
                format!("{rollout:?}")
            })?;
            let held_up = job.is_some_and(|job| is_held_up(agent, &job.job, rollout.id));
            self.sometimes(Property::SometimesUpdateWaitsForHealth, held_up);
        }
        for rollout in view.deployments().filter(|rollout| !is_open(rollout)) {
            let ended = self.rollouts.ended.entry(rollout.id);
            let ended = *ended.or_insert(rollout.status);
            let holds = ended == rollout.status;
            self.holds(Property::EndedDeploymentStaysAsItIs, holds, || {
                format!("it was {ended:?}: {rollout:?}")
            })?;
        }
        for job in view.jobs() {
            let blocked = !view.blocked(&job.job.key()).is_empty();
            self.sometimes(Property::SometimesPlacementFails, blocked);
        }
        Ok(())
    }
}

/// Whether something of an older version still runs beside what did not prove itself yet.
fn is_held_up(agent: &Agent, job: &Job, rollout: DeploymentId) -> bool {
    let live = || {
        agent
            .view()
            .allocs_of(&job.key())
            .map(AllocRunner::record)
            .filter(|record| !record.finished && record.desired == DesiredStatus::Run)
            .cloned()
            .collect::<Vec<_>>()
    };
    let live = live();
    let old = live.iter().any(|record| record.job_version < job.version);
    let unproved = |record: &&_| {
        let record: &drover_core::store::record::AllocRecord = record;
        record.deployment == Some(rollout) && record.health.is_none()
    };
    old && live
        .iter()
        .map(|record| &**record)
        .any(|record| unproved(&record))
}

/// Whether a task's run counts for its allocation's health.
fn is_watched(task: &TaskRunner) -> bool {
    match task.spec().stage() {
        Stage::Poststop => false,
        Stage::Prestart | Stage::Poststart => !task.state().is_successful(),
        Stage::Main | Stage::PrestartSidecar | Stage::PoststartSidecar => true,
    }
}
