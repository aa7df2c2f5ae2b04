//! Reconciliation: what should run of a job, against what runs. A pure comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rescheduling::reschedule;
use crate::ids::{AllocId, GroupName};
use crate::model::alloc::{ClientStatus, DesiredStatus};
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::group::TaskGroup;
use crate::model::identity::RenewMode;
use crate::model::job::{Job, JobType};
use crate::model::task::Task;
use crate::model::template::ChangeMode;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Instant, Now, Span, Timestamp};

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Allocations to make.
    pub place: Vec<Placement>,
    /// Allocations to end, and why.
    pub stop: Vec<(AllocId, &'static str)>,
    /// Allocations that take the new version as they are.
    pub update: Vec<AllocId>,
    /// When failed allocations are replaced, those included whose time has come.
    pub due: BTreeMap<AllocId, Instant>,
}

/// An allocation to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its group.
    pub group: GroupName,
    /// Which copy.
    pub index: u32,
    /// The allocation that it replaces.
    pub previous: Option<AllocId>,
    /// When the allocations before it were given up.
    pub reschedules: Vec<Timestamp>,
    /// Whether the one that it replaces runs an old version, and is ended once there is a place
    /// for this one.
    pub replaces_outdated: bool,
    /// In which of the two places of the copy.
    pub lane: u8,
    /// Whether it runs beside what it is to replace, until it is promoted.
    pub canary: bool,
    /// The earlier version that it runs, if not the latest one.
    pub version: Option<Arc<Job>>,
}

impl Placement {
    /// A copy of the latest version, in the place of the allocation before it.
    fn of(group: &GroupName, index: u32, previous: Option<&AllocRecord>) -> Placement {
        Placement {
            group: group.clone(),
            index,
            previous: previous.map(|alloc| alloc.id),
            reschedules: Vec::new(),
            replaces_outdated: false,
            lane: previous.map_or(0, |alloc| alloc.lane),
            canary: false,
            version: None,
        }
    }
}

const NOT_NEEDED: &str = "alloc not needed due to job update";
const JOB_STOPPED: &str = "alloc not needed as job is stopped";
pub(crate) const UPDATING: &str = "alloc is being updated due to job update";

/// What a comparison knows besides the records.
#[derive(Clone, Copy, Debug)]
pub struct JobContext<'a> {
    /// The clocks.
    pub now: Now,
    /// The times of the last comparison in this life of the agent ([`Changes::due`]): the wall clock
    /// may have been set since, and shall neither delay nor hurry a replacement.
    pub due: Option<&'a BTreeMap<AllocId, Instant>>,
    /// The roll-out of the latest version, if it has one.
    pub rollout: Option<&'a Deployment>,
    /// What it is from now on.
    pub status: Option<DeploymentStatus>,
    /// Allocations of older versions on which this node would not place the latest one.
    pub excluded: &'a BTreeSet<AllocId>,
}

impl JobContext<'_> {
    fn has_failed(&self) -> bool {
        self.status == Some(DeploymentStatus::Failed)
    }

    /// Whether an allocation of an older version can take the latest one as it is.
    fn takes(&self, record: &JobRecord, group: &TaskGroup, alloc: &AllocRecord) -> bool {
        !self.excluded.contains(&alloc.id) && fits(record, group, alloc)
    }

    fn is_paused(&self) -> bool {
        self.status == Some(DeploymentStatus::Paused)
    }

    /// Whether canaries of a group are not promoted, or never were.
    fn is_unpromoted(&self, group: &TaskGroup) -> bool {
        self.rollout
            .is_some_and(|it| it.awaits_promotion(&group.name))
    }

    /// Whether nothing of an older version is replaced for the latest one.
    fn stands(&self, group: &TaskGroup) -> bool {
        self.has_failed() || self.starts_no_copy(group)
    }

    /// Whether no copy is made that was not there before.
    fn starts_no_copy(&self, group: &TaskGroup) -> bool {
        self.is_paused() || self.is_unpromoted(group)
    }

    /// The version that an allocation goes on with though it is not the latest one, and its group there.
    fn serving<'b>(
        &self,
        record: &'b JobRecord,
        group: &TaskGroup,
        alloc: &AllocRecord,
    ) -> Option<(&'b Arc<Job>, &'b TaskGroup)> {
        if !self.starts_no_copy(group) || alloc.job_version == record.job.version {
            return None;
        }
        let own = record.version(alloc.job_version)?;
        Some((own, own.group(&group.name)?))
    }

    /// How many canaries of a group there shall be.
    fn canaries(&self, record: &JobRecord, group: &TaskGroup) -> u32 {
        let active = self.status.is_some_and(DeploymentStatus::is_active);
        let rollout = self.rollout.filter(|_| active);
        let name = GroupName::from(group.name.as_str());
        let wanted = rollout.and_then(|rollout| rollout.groups.get(&name));
        let wanted = wanted.filter(|one| one.awaits_promotion());
        wanted.map_or(0, |one| one.canaries.min(copies(&record.job, group)))
    }
}

/// Compares. `allocs` are all of this job's that still have records.
pub fn reconcile(job: &JobRecord, allocs: &[&AllocRecord], seen: JobContext<'_>) -> Changes {
    let mut plan = Changes::default();
    if job.job.stop {
        plan.stop
            .extend(wanted_to_run(allocs).map(|alloc| (alloc.id, JOB_STOPPED)));
        return plan;
    }
    for group in &job.job.task_groups {
        reconcile_group(&mut plan, job, group, allocs, seen);
    }
    let of_no_group = |alloc: &&&AllocRecord| job.job.group(alloc.group.as_str()).is_none();
    plan.stop.extend(
        wanted_to_run(allocs)
            .filter(of_no_group)
            .map(|a| (a.id, NOT_NEEDED)),
    );
    plan
}

fn wanted_to_run<'a, 'b>(
    allocs: &'b [&'a AllocRecord],
) -> impl Iterator<Item = &'b &'a AllocRecord> {
    allocs
        .iter()
        .filter(|a| a.desired == DesiredStatus::Run && !a.finished)
}

/// How many copies of a group this one node shall run.
pub fn copies(job: &Job, group: &TaskGroup) -> u32 {
    let wanted = u32::try_from(group.wanted()).unwrap_or(0);
    if job.is_template() {
        0
    } else if job.job_type.one_per_node() {
        wanted.min(1)
    } else {
        wanted
    }
}

fn reconcile_group(
    plan: &mut Changes,
    record: &JobRecord,
    group: &TaskGroup,
    allocs: &[&AllocRecord],
    seen: JobContext<'_>,
) {
    let name = GroupName::from(group.name.as_str());
    let allocs: Vec<&AllocRecord> = (allocs.iter().copied())
        .filter(|alloc| alloc.group == name)
        .collect();
    let latest = latest_of(allocs.iter().copied().filter(|alloc| !alloc.canary));
    let wanted = copies(&record.job, group);
    let excess = wanted_to_run(&allocs).filter(|alloc| alloc.index >= wanted);
    plan.stop.extend(excess.map(|alloc| (alloc.id, NOT_NEEDED)));
    // A canary that was promoted took the place of the one beside it.
    let superseded = |alloc: &&&AllocRecord| {
        let latest = latest.get(&alloc.index);
        let other = latest.is_some_and(|latest| latest.lane != alloc.lane);
        alloc.index < wanted && !alloc.canary && other
    };
    let superseded = wanted_to_run(&allocs).filter(superseded);
    plan.stop
        .extend(superseded.map(|alloc| (alloc.id, NOT_NEEDED)));

    // Copies that are not wanted any more prove nothing, and nobody waits until they do.
    let remaining = latest.range(..wanted).map(|(_, alloc)| *alloc);
    let mut replaceable = match seen.stands(group) {
        true => 0,
        false => rolling_limit(record, group, remaining, seen),
    };
    for index in 0..wanted {
        // Its last allocation is garbage-collected, or about to be; earlier ones may outlast it.
        if record.done.contains(&name, index) {
            continue;
        }
        let Some(alloc) = latest.get(&index) else {
            if !seen.starts_no_copy(group) {
                plan.place.push(Placement::of(&name, index, None));
            }
            continue;
        };
        if let Some((own, own_group)) = seen.serving(record, group, alloc) {
            let new = serve(plan, own, own_group, alloc, seen);
            plan.place.extend(new.map(|new| Placement {
                version: Some(own.clone()),
                ..new
            }));
            continue;
        }
        let verdict = verdict(record, group, alloc, seen);
        if let Some(new) = act_on(plan, verdict, &mut replaceable, alloc) {
            plan.place.push(new);
        }
    }
    reconcile_canaries(plan, record, group, allocs.into_iter(), &latest, seen);
}

/// The latest allocation of each copy.
fn latest_of<'a>(allocs: impl Iterator<Item = &'a AllocRecord>) -> BTreeMap<u32, &'a AllocRecord> {
    let mut latest: BTreeMap<u32, &AllocRecord> = BTreeMap::new();
    for alloc in allocs {
        let place = latest.entry(alloc.index).or_insert(alloc);
        if place.age() < alloc.age() {
            *place = alloc;
        }
    }
    latest
}

/// What comes of a verdict: at most one allocation to make.
fn act_on(
    plan: &mut Changes,
    verdict: Verdict,
    replaceable: &mut usize,
    alloc: &AllocRecord,
) -> Option<Placement> {
    let place = |times: Vec<Timestamp>| Placement {
        reschedules: times,
        ..Placement::of(&alloc.group, alloc.index, Some(alloc))
    };
    match verdict {
        Verdict::Keep => None,
        Verdict::Update => {
            plan.update.push(alloc.id);
            None
        }
        Verdict::Replace => {
            // Who was preempted has not used up less of its budget for that.
            let was_preempted = alloc.desired == DesiredStatus::Evict;
            Some(place(if was_preempted {
                alloc.reschedules.clone()
            } else {
                Vec::new()
            }))
        }
        Verdict::Reschedule(at, times) => {
            plan.due.insert(alloc.id, at);
            Some(place(times))
        }
        Verdict::Later(at) => {
            plan.due.insert(alloc.id, at);
            None
        }
        Verdict::Outdated if *replaceable > 0 => {
            *replaceable -= 1;
            Some(Placement {
                replaces_outdated: true,
                ..place(Vec::new())
            })
        }
        Verdict::Outdated => None,
    }
}

/// What runs an older version goes on as it is: it is replaced by its own version's policies, if it ends.
fn serve(
    plan: &mut Changes,
    own: &Job,
    group: &TaskGroup,
    alloc: &AllocRecord,
    seen: JobContext<'_>,
) -> Option<Placement> {
    let verdict = match alloc.status {
        // What replaced it ended for good, and is removed.
        _ if alloc.next.is_some() => Verdict::Keep,
        _ if alloc.desired.is_terminal() => Verdict::Replace,
        ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => Verdict::Keep,
        ClientStatus::Complete | ClientStatus::Lost => Verdict::Replace,
        ClientStatus::Failed => reschedule(own, group, alloc, seen),
    };
    act_on(plan, verdict, &mut 0, alloc)
}

/// Canaries run beside what they are to replace. Those that are not of use any more end.
fn reconcile_canaries<'a>(
    plan: &mut Changes,
    record: &JobRecord,
    group: &TaskGroup,
    allocs: impl Iterator<Item = &'a AllocRecord>,
    latest: &BTreeMap<u32, &AllocRecord>,
    seen: JobContext<'_>,
) {
    let wanted = seen.canaries(record, group);
    let (own, others): (Vec<_>, Vec<_>) = (allocs.filter(|alloc| alloc.canary))
        .partition(|alloc| alloc.deployment == record.deployment && alloc.index < wanted);
    let runs = |alloc: &&AllocRecord| alloc.desired == DesiredStatus::Run && !alloc.finished;
    let unwanted = others.into_iter().filter(|alloc| runs(alloc));
    let unwanted: Vec<_> = unwanted.map(|alloc| (alloc.id, NOT_NEEDED)).collect();
    for stop in unwanted {
        if !plan.stop.contains(&stop) {
            plan.stop.push(stop);
        }
    }
    let canaries = latest_of(own.into_iter());
    let paused = seen.status == Some(DeploymentStatus::Paused);
    for index in (0..wanted).filter(|_| !paused) {
        let new = match canaries.get(&index) {
            Some(alloc) => {
                let verdict = verdict(record, group, alloc, seen);
                act_on(plan, verdict, &mut 0, alloc)
            }
            None => {
                let beside = latest.get(&index).map_or(0, |alloc| alloc.lane);
                let name = GroupName::from(group.name.as_str());
                Some(Placement {
                    lane: 1 - beside.min(1),
                    ..Placement::of(&name, index, None)
                })
            }
        };
        plan.place.extend(new.map(|new| Placement {
            canary: true,
            ..new
        }));
    }
}

/// Whether an allocation runs an old version and has to be replaced for this one.
pub(super) fn is_outdated(record: &JobRecord, group: &TaskGroup, alloc: &AllocRecord) -> bool {
    alloc.job_version != record.job.version && !fits(record, group, alloc)
}

/// What an allocation means for its place.
pub(super) enum Verdict {
    /// It fills its place, or did.
    Keep,
    /// It fills its place and takes the new version as it is.
    Update,
    /// It runs an old version and has to be replaced in its turn.
    Outdated,
    /// It is over and its place is empty.
    Replace,
    /// It failed and is replaced now; since when that is so, and the times for the next one.
    Reschedule(Instant, Vec<Timestamp>),
    /// It failed and is replaced then.
    Later(Instant),
}

fn verdict(
    record: &JobRecord,
    group: &TaskGroup,
    alloc: &AllocRecord,
    seen: JobContext<'_>,
) -> Verdict {
    let job = &record.job;
    let current = alloc.job_version == job.version;
    if alloc.desired.is_terminal() || alloc.destroying {
        return Verdict::Replace;
    }
    match alloc.status {
        ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => {
            if current {
                Verdict::Keep
            } else if seen.takes(record, group, alloc) {
                Verdict::Update
            } else {
                Verdict::Outdated
            }
        }
        ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost if !current => {
            Verdict::Replace
        }
        ClientStatus::Complete if job.job_type.runs_to_completion() => Verdict::Keep,
        ClientStatus::Complete | ClientStatus::Lost => Verdict::Replace,
        ClientStatus::Failed => reschedule(job, group, alloc, seen),
    }
}

/// Whether the allocation's group is the same in the new version, so that nothing needs a new
/// start. What only concerns placement and policy does not count.
fn fits(record: &JobRecord, group: &TaskGroup, alloc: &AllocRecord) -> bool {
    let Some(old_job) = record.version(alloc.job_version) else {
        return false;
    };
    let Some(old) = old_job.group(&group.name) else {
        return false;
    };
    let same_job = old_job.meta == record.job.meta && old_job.name == record.job.name;
    same_job && essence(old) == essence(group)
}

/// A group without what may change while its tasks run. What a task reads never does: a template's text
/// or a token's audience means a new start, in the steps of the update policy. How it learns of a change
/// does, and the hooks of updates see to it (`hooks::UPDATE`).
fn essence(group: &TaskGroup) -> TaskGroup {
    let mut group = group.clone();
    group.count = None;
    group.constraints.clear();
    group.affinities.clear();
    group.spreads.clear();
    group.restart_policy = None;
    group.reschedule_policy = None;
    group.update = None;
    group.migrate = None;
    group.services.clear();
    group.shutdown_delay = None;
    group.disconnect = None;
    group.scaling = None;
    group.tasks = group.tasks.iter().map(task_essence).collect();
    group
}

/// The same of a task.
fn task_essence(task: &Task) -> Task {
    let mut task = task.clone();
    task.constraints.clear();
    task.affinities.clear();
    task.restart_policy = None;
    task.services.clear();
    task.kill_timeout = None;
    task.kill_signal.clear();
    task.shutdown_delay = Span::ZERO;
    task.scaling_policies.clear();
    task.actions.clear();
    task.image_update = None;
    for template in &mut task.templates {
        template.splay = Span::ZERO;
        template.wait = None;
        // A script may still have to tell of the first rendering.
        if template.change_mode != ChangeMode::Script {
            template.change_mode = ChangeMode::Noop;
            template.change_signal.clear();
        }
    }
    for identity in task.identity.iter_mut().chain(&mut task.identities) {
        identity.change_mode = RenewMode::Noop;
        identity.change_signal.clear();
        // A token that is good for ever is never made anew.
        identity.ttl = identity.ttl.min(Span(1));
    }
    task
}

/// Whether this change of a task is made by a new start of it.
pub fn replaces_task(old: &Task, new: &Task) -> bool {
    task_essence(old) != task_essence(new)
}

/// How many allocations of old versions may be replaced now.
fn rolling_limit<'a>(
    record: &JobRecord,
    group: &TaskGroup,
    latest: impl Iterator<Item = &'a AllocRecord>,
    seen: JobContext<'_>,
) -> usize {
    let job = &record.job;
    let parallel = match &group.update {
        Some(update) if job.job_type == JobType::Service && update.max_parallel > 0 => {
            usize::try_from(update.max_parallel).unwrap_or(usize::MAX)
        }
        Some(_) | None => return usize::MAX,
    };
    let mut unproved = 0;
    for alloc in latest {
        let current = alloc.job_version == job.version;
        match alloc.health {
            Some(health) if health.healthy => {}
            // A roll-out that went wrong goes no further.
            Some(_) if current => return 0,
            // What takes the new version as it is, and did not prove itself in the old one, is
            // as little to be relied on as what was just replaced.
            Some(_) | None
                if alloc.deployment.is_some() && (current || seen.takes(record, group, alloc)) =>
            {
                unproved += 1;
            }
            Some(_) | None => {}
        }
    }
    parallel.saturating_sub(unproved)
}
