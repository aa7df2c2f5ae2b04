//! Reconciliation: what should run of a job, against what runs. A pure comparison.

use std::collections::BTreeMap;

use crate::ids::{AllocId, GroupName};
use crate::model::alloc::{ClientStatus, DesiredStatus};
use crate::model::group::TaskGroup;
use crate::model::identity::RenewMode;
use crate::model::job::{Job, JobType};
use crate::model::policy::ReschedulePolicy;
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
    /// Whether the roll-out of the latest version went wrong and goes no further.
    pub rollout_failed: bool,
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
    let job = &record.job;
    let name = GroupName::from(group.name.as_str());
    let mut latest: BTreeMap<u32, &AllocRecord> = BTreeMap::new();
    for &alloc in allocs.iter().filter(|alloc| alloc.group == name) {
        let place = latest.entry(alloc.index).or_insert(alloc);
        if place.create_index < alloc.create_index {
            *place = alloc;
        }
    }
    let wanted = copies(job, group);
    let excess = wanted_to_run(allocs).filter(|a| a.group == name && a.index >= wanted);
    plan.stop.extend(excess.map(|alloc| (alloc.id, NOT_NEEDED)));

    // Copies that are not wanted any more prove nothing, and nobody waits until they do.
    let remaining = latest.range(..wanted).map(|(_, alloc)| *alloc);
    let mut replaceable = match seen.rollout_failed {
        true => 0,
        false => rolling_limit(record, group, remaining),
    };
    for index in 0..wanted {
        let place = |previous: Option<AllocId>, reschedules| Placement {
            group: name.clone(),
            index,
            previous,
            reschedules,
            replaces_outdated: false,
        };
        // Its last allocation is garbage-collected, or about to be; earlier ones may outlast it.
        if record.done.contains(&(name.clone(), index)) {
            continue;
        }
        let Some(alloc) = latest.get(&index) else {
            plan.place.push(place(None, Vec::new()));
            continue;
        };
        match verdict(record, group, alloc, seen) {
            Verdict::Keep => {}
            Verdict::Update => plan.update.push(alloc.id),
            Verdict::Replace => {
                // Who was preempted has not used up less of its budget for that.
                let was_preempted = alloc.desired == DesiredStatus::Evict;
                let times = if was_preempted {
                    alloc.reschedules.clone()
                } else {
                    Vec::new()
                };
                plan.place.push(place(Some(alloc.id), times));
            }
            Verdict::Reschedule(at, times) => {
                plan.due.insert(alloc.id, at);
                plan.place.push(place(Some(alloc.id), times));
            }
            Verdict::Later(at) => {
                plan.due.insert(alloc.id, at);
            }
            Verdict::Outdated if replaceable > 0 => {
                replaceable -= 1;
                plan.place.push(Placement {
                    replaces_outdated: true,
                    ..place(Some(alloc.id), Vec::new())
                });
            }
            Verdict::Outdated => {}
        }
    }
}

/// What an allocation means for its place.
enum Verdict {
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
            } else if fits(record, group, alloc) {
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
                if alloc.deployment.is_some() && (current || fits(record, group, alloc)) =>
            {
                unproved += 1;
            }
            Some(_) | None => {}
        }
    }
    parallel.saturating_sub(unproved)
}

/// Whether and when a failed allocation is replaced, by the reschedule policy.
fn reschedule(job: &Job, group: &TaskGroup, alloc: &AllocRecord, seen: JobContext<'_>) -> Verdict {
    let now = seen.now;
    let Some(rules) = Rules::of(job, group.reschedule_policy.as_ref()) else {
        return Verdict::Keep;
    };
    // As it was when it ended: what is not replaced then never is, however much later somebody looks.
    let ended = alloc.modify_time;
    // Of a clock that was set far back, times that are still to come say as little as old ones.
    let recent = |time: &&Timestamp| {
        let apart = (ended - **time).0.saturating_abs();
        rules.unlimited || apart < rules.interval.0
    };
    let used = alloc.reschedules.iter().filter(recent).count();
    if !rules.unlimited && used >= rules.attempts {
        return Verdict::Keep;
    }
    let known = seen.due.and_then(|due| due.get(&alloc.id).copied());
    let at = known.unwrap_or_else(|| {
        let delay = rules.delay(alloc.reschedules.len());
        let left = (alloc.modify_time + delay) - now.wall;
        now.at + Span(left.0.clamp(0, delay.0.max(0)))
    });
    if at > now.at {
        return Verdict::Later(at);
    }
    let mut times = alloc.reschedules.clone();
    times.push(now.wall);
    if times.len() > MAX_TIMES {
        times.remove(0);
    }
    Verdict::Reschedule(at, times)
}

/// More times than this are not remembered: no delay function grows that long.
const MAX_TIMES: usize = 64;

/// A reschedule policy with nothing left open.
struct Rules {
    attempts: usize,
    interval: Span,
    base: Span,
    function: String,
    max_delay: Span,
    unlimited: bool,
}

impl Rules {
    /// The job type's rules of Nomad, overridden by what is written; none for jobs of which
    /// every node has one.
    fn of(job: &Job, written: Option<&ReschedulePolicy>) -> Option<Rules> {
        let batch = match job.job_type {
            JobType::System | JobType::Sysbatch => return None,
            JobType::Service => false,
            JobType::Batch => true,
        };
        let default = ReschedulePolicy::default();
        let written = written.or(job.reschedule.as_ref()).unwrap_or(&default);
        let unlimited = written
            .unlimited
            .unwrap_or(!batch && written.attempts.is_none());
        let attempts = written.attempts.unwrap_or(i64::from(batch));
        let function = if batch { "constant" } else { "exponential" };
        Some(Rules {
            attempts: usize::try_from(attempts).unwrap_or(0),
            interval: written.interval.unwrap_or(Span::secs(24 * 3600)),
            base: written
                .delay
                .unwrap_or(Span::secs(if batch { 5 } else { 30 })),
            function: written
                .delay_function
                .clone()
                .unwrap_or_else(|| function.to_owned()),
            max_delay: written.max_delay.unwrap_or(Span::secs(3600)),
            unlimited,
        })
    }

    fn delay(&self, earlier: usize) -> Span {
        let longest = if self.max_delay.is_zero() {
            Span(i64::MAX)
        } else {
            self.max_delay
        };
        let factor = match self.function.as_str() {
            "exponential" => 1_i64
                .checked_shl(u32::try_from(earlier).unwrap_or(63))
                .unwrap_or(0),
            "fibonacci" => fibonacci(earlier),
            _ => return self.base,
        };
        let factor = if factor <= 0 { i64::MAX } else { factor };
        Span(self.base.0.saturating_mul(factor)).min(longest)
    }
}

fn fibonacci(n: usize) -> i64 {
    let (mut a, mut b) = (1_i64, 1_i64);
    for _ in 0..n {
        (a, b) = (b, a.saturating_add(b));
    }
    a
}
