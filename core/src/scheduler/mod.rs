//! The scheduler: what is to be done so that what runs on this node is what should run.
//!
//! [`plan`] is pure: a [`Snapshot`] in, a list of actions with their reasons out. It carries nothing
//! out and remembers nothing; `agent/scheduling/apply.rs` carries plans out and decides nothing.
//!
//! It goes through the jobs that are due, the highest priority first, so that what becomes free is not
//! given to a job that has to leave it at once. For each job, in this order:
//!
//! 1. whether the roll-out of its latest version is over (`rollout.rs`);
//! 2. what of it is stopped, updated in place, replaced now or later ([`reconcile`]);
//! 3. for each copy that is missing: whether this node can run it at all (`feasibility.rs`), with which
//!    ports and devices, what it replaces, and whose disk it takes over (`placing.rs`). If others hold
//!    what it claims, the choice of the claim is also the choice of whom it preempts (`preempting.rs`);
//! 4. what is removed because the job is purged.
//!
//! While the node is ineligible or drained nothing is placed, so that what runs goes on; what a drain stops, and
//! when, is no part of plans ([`drain`]).
//!
//! A plan sees what it decided for jobs before: their claims are taken. It ends after a job for which it
//! ends an allocation: the jobs that follow ([`Plan::rest`]) are planned when it is known what that
//! frees at once.

mod by_id;
mod changes;
pub mod collection;
pub mod drain;
mod dry_run;
mod feasibility;
pub mod garbage;
pub mod gc_snapshot;
#[cfg(test)]
mod gc_snapshot_tests;
pub mod network;
mod placing;
pub mod ports;
mod preempting;
pub mod reconcile;
mod rescheduling;
pub mod rollout;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use changes::Changes;
pub use dry_run::DryRun;
pub use feasibility::admits;
pub(crate) use placing::devices_for;
pub use preempting::PREEMPTION_MARGIN;
pub use rescheduling::{reschedule_delay, reschedule_limits};
pub use snapshot::{AllocState, Snapshot};

use self::placing::Pass;
use self::reconcile::{JobContext, Placement};
use self::rollout::{Rollback, Verdict};
use crate::cx::Rng;
use crate::ids::{AllocId, DeploymentId, GroupName, JobKey};
use crate::local::Progress;
use crate::model::eval::DeploymentStatus;
use crate::model::job::Job;
use crate::model::placement::PlacementFailure;
use crate::store::disk::Disk;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::Instant;

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// Jobs that are planned after this plan had its first effects.
    pub rest: Vec<JobKey>,
    /// The random numbers that follow.
    pub rng: Rng,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A roll-out is over, for this reason. If it succeeded, its version is stable.
    EndRollout(DeploymentId, DeploymentStatus, String),
    /// The canaries of these groups are copies as all others from now on.
    Promote(DeploymentId, Vec<GroupName>),
    /// An earlier version of a job becomes its latest one.
    Revert(JobKey, u64),
    /// Until when the roll-outs of a job's groups have to make progress.
    ProgressBy(JobKey, BTreeMap<GroupName, Progress>),
    /// An allocation is told to end, for this reason.
    Stop(AllocId, &'static str),
    /// An allocation takes this version as it is.
    Update(AllocId, Arc<Job>, Option<DeploymentId>),
    /// When failed allocations of a job are replaced, those included whose time has come.
    ReplaceAt(JobKey, BTreeMap<AllocId, Instant>),
    /// An allocation is made.
    Place(Box<NewAlloc>),
    /// Everything of a job was considered: what could not be placed, and what becomes of its copies.
    Considered(JobKey, Unplaced, Changes),
    /// What is left of an ended allocation is removed, because its job is purged.
    Remove(AllocId),
    /// Nothing is left of a job that is purged.
    Forget(JobKey),
    /// All of a job is planned.
    Planned(Arc<JobRecord>),
}

/// An allocation to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlloc {
    /// Its record, without what is known only when it is made: times, indexes and the evaluation.
    pub record: AllocRecord,
    /// Its job's version.
    pub job: Arc<Job>,
    /// The disk of its slot from then on, if there is anything to remember.
    pub disk: Option<Disk>,
    /// Of those that it preempts, the ones that were not told to end before.
    pub evicts: Vec<AllocId>,
    /// Whether what it replaces runs an old version, and ends for it.
    pub outdates: bool,
}

/// What a plan could not place of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unplaced {
    /// Groups that have to wait, with the reasons.
    pub failed: Vec<(String, PlacementFailure)>,
    /// Whether it depends on something that has yet to be reported of this machine.
    pub unknown: bool,
    /// How many copies of each group have to wait.
    pub copies: BTreeMap<GroupName, Missing>,
}

/// What placing a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It runs beside what it is to replace.
    Canary,
    /// It replaces an old version that runs.
    Destructive,
    /// None runs.
    Place,
}

impl Kind {
    fn of(placement: &Placement) -> Kind {
        match (placement.canary, placement.replaces_outdated) {
            (true, _) => Kind::Canary,
            (false, true) => Kind::Destructive,
            (false, false) => Kind::Place,
        }
    }
}

/// Copies of a group that are not placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Those that do not run at all.
    pub place: u32,
    /// Those of which an old version runs.
    pub destructive: u32,
    /// Canaries.
    pub canary: u32,
}

impl Unplaced {
    /// Whether a copy of this group could not be placed.
    fn names(&self, group: &str) -> bool {
        self.failed.iter().any(|(name, _)| name == group)
    }

    /// A copy of this group is not placed. Of all copies the first says why.
    fn add(&mut self, group: &GroupName, kind: Kind, why: NotPlaced) {
        let missing = self.copies.entry(group.clone()).or_default();
        match kind {
            Kind::Canary => missing.canary += 1,
            Kind::Destructive => missing.destructive += 1,
            Kind::Place => missing.place += 1,
        }
        match why {
            NotPlaced::Unknown => self.unknown = true,
            NotPlaced::Failed(_) if self.names(group.as_str()) => {}
            NotPlaced::Failed(why) => self.failed.push((group.as_str().to_owned(), why)),
        }
    }
}

/// Why a copy of a group is not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlaced {
    /// Something that it lacks may still be found on this machine.
    Unknown,
    /// What it lacks.
    Failed(PlacementFailure),
}

/// Makes a plan for the jobs that are due.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let mut pass = Pass::new(snapshot);
    let mut due = snapshot.due.iter();
    for key in due.by_ref() {
        if let Some(record) = snapshot.jobs.get(key) {
            plan_job(&mut pass, key, record);
        }
        if pass.is_over() {
            break;
        }
    }
    let rest = due.cloned().collect();
    pass.into_plan(rest)
}

fn plan_job(pass: &mut Pass<'_>, key: &JobKey, record: &Arc<JobRecord>) {
    let snapshot = pass.snapshot;
    let allocs = snapshot.records_of(key);
    let rollout = rollout::of(snapshot, record);
    let mut status = rollout.map(|rollout| rollout.status);
    if let Some(id) = rollout.map(|rollout| rollout.id) {
        match rollout::verdict(snapshot, record, &allocs) {
            Verdict::GoesOn => {}
            Verdict::Promotes(groups) => {
                // All else is planned for what is promoted then.
                pass.actions.push(Action::Promote(id, groups));
                return;
            }
            Verdict::Ends(DeploymentStatus::Failed, why) => {
                let rollback = Rollback::of(record);
                let (ended, words) = (DeploymentStatus::Failed, rollback.words(why));
                pass.actions.push(Action::EndRollout(id, ended, words));
                if let Rollback::To(stable) = rollback {
                    // All else is planned for the version that comes back.
                    pass.actions
                        .push(Action::Revert(key.clone(), stable.version));
                    return;
                }
                status = Some(ended);
            }
            Verdict::Ends(ended, why) => {
                let why = why.to_owned();
                pass.actions.push(Action::EndRollout(id, ended, why));
                status = Some(ended);
            }
        }
    }
    let begin = pass.actions.len();
    let excluded = excluded(snapshot, record, &allocs);
    let seen = JobContext {
        now: snapshot.now,
        due: snapshot.replaced_at.get(key),
        rollout,
        status,
        excluded: &excluded,
    };
    let reconcile::Changes {
        place,
        stop,
        update,
        due,
    } = reconcile::reconcile(record, &allocs, seen);
    for (id, why) in stop {
        pass.stop(id);
        pass.actions.push(Action::Stop(id, why));
    }
    for id in &update {
        let update = Action::Update(*id, record.job.clone(), record.deployment);
        pass.actions.push(update);
    }
    pass.actions.push(Action::ReplaceAt(key.clone(), due));
    let unplaced = place_all(pass, key, record, place);
    let of_job = pass.actions.get(begin..).unwrap_or_default();
    let changes = changes::changes(snapshot, record, of_job, &unplaced);
    pass.actions
        .push(Action::Considered(key.clone(), unplaced, changes));
    let progress = match status {
        Some(DeploymentStatus::Running) => {
            rollout::awaited_progress(pass, record, &allocs, &update)
        }
        Some(_) | None => BTreeMap::new(),
    };
    pass.actions.push(Action::ProgressBy(key.clone(), progress));
    if record.purge {
        purge(pass, key, &allocs);
    }
    pass.actions.push(Action::Planned(record.clone()));
}

/// The allocations of older versions that stay what they are because this node would not place the latest one where
/// they run.
fn excluded(
    snapshot: &Snapshot<'_>,
    record: &JobRecord,
    allocs: &[&AllocRecord],
) -> BTreeSet<AllocId> {
    let (job, unknown) = (&record.job, snapshot.awaits_first_reports);
    let older = allocs.iter().filter(|it| it.job_version != job.version);
    let is_excluded = |alloc: &&&AllocRecord| {
        let group = job.group(alloc.group.as_str());
        group.is_some_and(|it| admits(snapshot.node, unknown, job, it, alloc.index).is_err())
    };
    older.filter(is_excluded).map(|it| it.id).collect()
}

fn place_all(
    pass: &mut Pass<'_>,
    key: &JobKey,
    record: &JobRecord,
    placements: Vec<Placement>,
) -> Unplaced {
    let mut unplaced = Unplaced::default();
    for placement in placements {
        let group: GroupName = placement.group.clone();
        let kind = Kind::of(&placement);
        // What one copy did not get from others, the next does not get either.
        let first = !unplaced.names(group.as_str());
        match pass.place(key, record, placement, first) {
            Ok(new) => pass.actions.push(Action::Place(Box::new(new))),
            Err(why) => unplaced.add(&group, kind, why),
        }
    }
    unplaced
}

/// A job that is to be forgotten goes when its last allocation is gone.
fn purge(pass: &mut Pass<'_>, key: &JobKey, allocs: &[&AllocRecord]) {
    // The job may be wanted again before the last of them is gone.
    let ended = allocs
        .iter()
        .filter(|alloc| alloc.finished && !alloc.destroying);
    pass.actions
        .extend(ended.map(|alloc| Action::Remove(alloc.id)));
    if allocs.is_empty() {
        pass.actions.push(Action::Forget(key.clone()));
    }
}
