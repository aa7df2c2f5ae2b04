//! The roll-out of a job's latest version: how far it is, whether it is over, and what follows if it failed.
//!
//! A group with `canary` has canaries first, if something of an older version runs that they are to replace. As
//! long as they are not promoted, nothing of that version ends for the new one, and what ends by itself is
//! replaced as it was. A roll-out fails by its first unhealthy allocation, or when a group made no progress for
//! its `progress_deadline`: no allocation of it was placed or became healthy. With `auto_revert` the last stable
//! version follows, unless it says the same as the one that failed: so that is done once, and never in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::placing::Pass;
use super::{Snapshot, reconcile};
use crate::ids::{AllocId, DeploymentId, GroupName};
use crate::local::Progress;
use crate::model::eval::{Deployment, DeploymentStatus, GroupRollout};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::store::record::{AllocRecord, JobRecord, same_specification};
use crate::time::{Span, Timestamp};

/// What becomes of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    GoesOn,
    /// It is over, for this reason.
    Ends(DeploymentStatus, &'static str),
    /// All canaries are healthy and promoted without anybody asking.
    Promotes(Vec<GroupName>),
}

/// The roll-out of a job's latest version, if it has one.
pub(super) fn of<'a>(snapshot: &Snapshot<'a>, record: &JobRecord) -> Option<&'a Deployment> {
    let id = record.deployment?;
    snapshot.deployments.get(&id).map(|one| &**one)
}

/// Whether a version of a job is rolled out in steps that are watched.
pub fn rolls_out(job: &Job) -> bool {
    let mut groups = job.task_groups.iter();
    let rolls = groups.any(|group| {
        let update = group.update.as_ref();
        update.is_some_and(|update| update.max_parallel > 0 || update.canary > 0)
    });
    job.job_type == JobType::Service && !job.is_template() && rolls
}

/// The groups of a new version that have canaries: something runs that is to be replaced. `allocs` are the
/// job's.
pub fn canaries(record: &JobRecord, allocs: &[&AllocRecord]) -> BTreeMap<GroupName, GroupRollout> {
    let job = &record.job;
    let groups = job.task_groups.iter().filter_map(|group| {
        let wanted = group.update.as_ref().map_or(0, |update| update.canary);
        let wanted = u32::try_from(wanted).unwrap_or(0);
        let canaries = wanted.min(reconcile::copies(job, group));
        let replaces = |alloc: &&AllocRecord| {
            alloc.group.as_str() == group.name
                && !alloc.canary
                && !alloc.is_terminal()
                && reconcile::is_outdated(record, group, alloc)
        };
        let rollout = GroupRollout {
            canaries,
            ..GroupRollout::default()
        };
        let needed = canaries > 0 && allocs.iter().copied().any(|alloc| replaces(&alloc));
        needed.then(|| (GroupName::from(group.name.as_str()), rollout))
    });
    groups.collect()
}

/// What is said of a roll-out that goes on.
pub fn running_words(job: &Job, rollout: &Deployment) -> &'static str {
    let mut unpromoted = rollout.unpromoted().peekable();
    if rollout.status == DeploymentStatus::Paused {
        return "Deployment is paused";
    }
    if unpromoted.peek().is_none() {
        return "Deployment is running";
    }
    match unpromoted.all(|(name, _)| promotes_itself(job, name)) {
        true => "Deployment is running pending automatic promotion",
        false => "Deployment is running but requires manual promotion",
    }
}

fn promotes_itself(job: &Job, group: &GroupName) -> bool {
    let update = job.group(group.as_str()).and_then(|it| it.update.as_ref());
    update.is_some_and(|update| update.auto_promote)
}

/// What becomes of the roll-out of the latest version. `allocs` are the job's.
pub(super) fn verdict(
    snapshot: &Snapshot<'_>,
    record: &JobRecord,
    allocs: &[&AllocRecord],
) -> Verdict {
    let running = |one: &&Deployment| one.status == DeploymentStatus::Running;
    let Some(rollout) = of(snapshot, record).filter(running) else {
        return Verdict::GoesOn;
    };
    let allocs: Vec<&AllocRecord> = of_rollout(rollout.id, allocs).collect();
    if allocs.iter().any(|alloc| is_healthy(alloc) == Some(false)) {
        let words = "Failed due to unhealthy allocations";
        return Verdict::Ends(DeploymentStatus::Failed, words);
    }
    let job = &record.job;
    let mut watched = job.task_groups.iter().filter(|it| it.update.is_some());
    if watched.all(|group| is_complete(job, rollout, group, &allocs)) {
        let words = "Deployment completed successfully";
        return Verdict::Ends(DeploymentStatus::Successful, words);
    }
    let progress = progress(snapshot, record, &allocs);
    if progress.values().any(|one| one.at <= snapshot.now.at) {
        let words = "Failed due to progress deadline";
        return Verdict::Ends(DeploymentStatus::Failed, words);
    }
    let unpromoted: Vec<_> = rollout.unpromoted().collect();
    let ready = unpromoted.iter().all(|(name, group)| {
        promotes_itself(job, name) && healthy_canaries(name, &allocs) >= group.canaries
    });
    match ready && !unpromoted.is_empty() {
        true => Verdict::Promotes(
            unpromoted
                .into_iter()
                .map(|(name, _)| name.clone())
                .collect(),
        ),
        false => Verdict::GoesOn,
    }
}

fn of_rollout<'a>(
    id: DeploymentId,
    allocs: &[&'a AllocRecord],
) -> impl Iterator<Item = &'a AllocRecord> {
    let allocs = allocs.iter().copied();
    allocs.filter(move |alloc| alloc.deployment == Some(id))
}

fn is_healthy(alloc: &AllocRecord) -> Option<bool> {
    alloc.health.map(|health| health.healthy)
}

/// How many canaries of a group are healthy. `allocs` are those of the roll-out.
pub fn healthy_canaries(group: &GroupName, allocs: &[&AllocRecord]) -> u32 {
    let healthy = allocs.iter().filter(|alloc| {
        alloc.group == *group
            && alloc.canary
            && !alloc.desired.is_terminal()
            && is_healthy(alloc) == Some(true)
    });
    u32::try_from(healthy.count()).unwrap_or(u32::MAX)
}

/// Whether every copy of a group is healthy. Each counts once, however often it was replaced.
fn is_complete(
    job: &Job,
    rollout: &Deployment,
    group: &TaskGroup,
    allocs: &[&AllocRecord],
) -> bool {
    let proved = |index| {
        let mut here = allocs.iter().filter(|alloc| {
            alloc.group.as_str() == group.name
                && alloc.index == index
                && !alloc.canary
                && !alloc.desired.is_terminal()
        });
        here.any(|alloc| is_healthy(alloc) == Some(true))
    };
    !rollout.awaits_promotion(&group.name) && (0..reconcile::copies(job, group)).all(proved)
}

/// Until when the groups have to make progress that are not done, and of which something was placed. `allocs` are
/// those of the roll-out.
fn progress(
    snapshot: &Snapshot<'_>,
    record: &JobRecord,
    allocs: &[&AllocRecord],
) -> BTreeMap<GroupName, Progress> {
    let running = |one: &&Deployment| one.status == DeploymentStatus::Running;
    let Some(rollout) = of(snapshot, record).filter(running) else {
        return BTreeMap::new();
    };
    let known = snapshot.progress.get(&record.job.key());
    let groups = record.job.task_groups.iter().filter_map(|group| {
        let limit = group.update.as_ref()?.progress_deadline;
        let name = GroupName::from(group.name.as_str());
        let is_done = match rollout.groups.get(&name) {
            Some(one) if one.awaits_promotion() => healthy_canaries(&name, allocs) >= one.canaries,
            Some(_) | None => is_complete(&record.job, rollout, group, allocs),
        };
        if limit <= Span::ZERO || is_done {
            return None;
        }
        let since = last_progress(&record.job, rollout, &name, allocs)?;
        let same = |one: &&Progress| one.deployment == rollout.id && one.since == since;
        let known = known.and_then(|groups| groups.get(&name)).filter(same);
        let progress = known.copied().unwrap_or_else(|| {
            let left = (since + limit) - snapshot.now.wall;
            Progress {
                deployment: rollout.id,
                since,
                at: snapshot.now.at + Span(left.0.clamp(0, limit.0)),
            }
        });
        Some((name, progress))
    });
    groups.collect()
}

/// When a group last made progress, if anything of it was placed. `allocs` are those of the roll-out: some may have
/// been made long before it, and were updated in place.
fn last_progress(
    job: &Job,
    rollout: &Deployment,
    group: &GroupName,
    allocs: &[&AllocRecord],
) -> Option<Timestamp> {
    let of_group = allocs.iter().filter(|alloc| alloc.group == *group);
    let placed = of_group.clone().map(|alloc| alloc.create_time).max()?;
    let healthy = of_group.filter(|alloc| is_healthy(alloc) == Some(true));
    let healthy = healthy.filter_map(|alloc| Some(alloc.health?.timestamp));
    let promoted = rollout.groups.get(group).and_then(|one| one.promoted);
    healthy
        .chain(promoted)
        .chain(rollout.resumed)
        .chain([placed, job.submit_time])
        .max()
}

/// The same after a plan, which may have placed more, or taken what runs into the roll-out: nobody plans again before
/// one of these ends or is healthy.
pub(super) fn awaited_progress(
    pass: &Pass<'_>,
    record: &JobRecord,
    allocs: &[&AllocRecord],
    updated: &[AllocId],
) -> BTreeMap<GroupName, Progress> {
    let id = record.deployment.unwrap_or_default();
    let placed = pass.placed().filter(|alloc| alloc.deployment == Some(id));
    let placed = placed.map(|alloc| AllocRecord {
        create_time: pass.snapshot.now.wall,
        ..alloc.clone()
    });
    let updated: BTreeSet<&AllocId> = updated.iter().collect();
    let updated = allocs.iter().filter(|alloc| updated.contains(&alloc.id));
    let updated = updated.map(|alloc| AllocRecord {
        deployment: Some(id),
        create_time: pass.snapshot.now.wall,
        health: None,
        ..AllocRecord::clone(alloc)
    });
    let new: Vec<AllocRecord> = placed.chain(updated).collect();
    let allocs: Vec<&AllocRecord> = of_rollout(id, allocs).chain(&new).collect();
    progress(pass.snapshot, record, &allocs)
}

/// What follows a roll-out that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollback {
    /// Nothing.
    None,
    /// The last stable version, which this is.
    To(Arc<Job>),
    /// Nothing, because no version is stable.
    NothingStable,
    /// Nothing, because the last stable version, which this is, says the same as the latest one.
    SameAs(u64),
}

impl Rollback {
    /// What follows if the roll-out of the latest version fails.
    pub fn of(record: &JobRecord) -> Rollback {
        let mut groups = record.job.task_groups.iter();
        let reverts = groups.any(|it| it.update.as_ref().is_some_and(|it| it.auto_revert));
        if !reverts {
            return Rollback::None;
        }
        let mut earlier = record.versions.iter().rev();
        match earlier.find(|job| job.stable) {
            None => Rollback::NothingStable,
            Some(stable) if same_specification(&record.as_it_ran(stable), &record.job) => {
                Rollback::SameAs(stable.version)
            }
            Some(stable) => Rollback::To(stable.clone()),
        }
    }

    /// Why a roll-out failed, and what follows, in words.
    pub fn words(&self, why: &str) -> String {
        match self {
            Rollback::None => why.to_owned(),
            Rollback::To(job) => format!("{why} - rolling back to job version {}", job.version),
            Rollback::NothingStable => format!("{why} - no stable job version to auto revert to"),
            Rollback::SameAs(version) => format!(
                "{why} - not rolling back to stable job version {version} as current job has same \
                 specification"
            ),
        }
    }
}
