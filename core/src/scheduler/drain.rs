//! What a drain stops next, so that in the end nothing is left on the node.
//!
//! - **Services** are stopped in turns: of each group so many at a time as its `migrate` block says
//!   (`max_parallel`), and the next when those are gone. There is no other node on which replacements become
//!   healthy, so nobody waits for them.
//! - **Batch jobs** run to their end.
//! - **System jobs** are stopped when nothing else is left, unless they are ignored.
//! - **At the deadline** all that is left is stopped.
//!
//! What was told to end before counts as ending, whoever told it. What ends by itself is not told to: a batch
//! job that is complete would run again.

use std::collections::BTreeMap;

use crate::ids::{AllocId, GroupName, JobKey};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::value::Value;
use crate::store::record::AllocRecord;

/// How a node is drained now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Whether the deadline is over.
    pub forced: bool,
    /// Whether system jobs go on.
    pub ignore_system_jobs: bool,
}

/// An allocation on a node that is drained.
#[derive(Clone, Copy, Debug)]
pub struct Drained<'a> {
    /// Its record.
    pub record: &'a AllocRecord,
    /// Its job's version.
    pub job: &'a Job,
    /// Whether nothing of it is alive.
    pub is_gone: bool,
}

impl<'a> Drained<'a> {
    fn group(&self) -> (&'a JobKey, &'a GroupName) {
        (&self.record.job, &self.record.group)
    }

    /// Whether somebody has to tell it to end.
    fn goes_on(&self) -> bool {
        let record = self.record;
        !record.desired.is_terminal() && !record.status.is_terminal() && !record.finished
    }
}

/// What a drain does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainStep {
    /// Allocations that are told to end.
    pub stop: Vec<AllocId>,
    /// Whether nothing is left that is to be stopped.
    pub complete: bool,
}

/// What a drain does next with these allocations.
pub fn drain_step<'a>(pace: Pace, allocs: impl Iterator<Item = Drained<'a>>) -> DrainStep {
    let ignored = |one: &Drained<'_>| pace.ignore_system_jobs && one.job.job_type.one_per_node();
    let mut left: Vec<Drained<'a>> = allocs.filter(|one| !one.is_gone && !ignored(one)).collect();
    let only_system = left.iter().all(|one| one.job.job_type.one_per_node());
    left.sort_by_key(|one| (one.record.index, one.record.id));
    let mut turns = Turns::of(&left);
    let mut stop = Vec::new();
    for one in left.iter().filter(|one| one.goes_on()) {
        let stops = match one.job.job_type {
            _ if pace.forced => true,
            JobType::System | JobType::Sysbatch => only_system,
            JobType::Batch => false,
            JobType::Service => turns.take(one),
        };
        stop.extend(stops.then_some(one.record.id));
    }
    DrainStep {
        stop,
        complete: left.is_empty(),
    }
}

/// Of each group, how many copies may end at a time, and how many do.
struct Turns<'a>(BTreeMap<(&'a JobKey, &'a GroupName), Turn>);

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    parallel: usize,
    ending: usize,
}

impl<'a> Turns<'a> {
    fn of(left: &[Drained<'a>]) -> Turns<'a> {
        let mut turns: BTreeMap<_, Turn> = BTreeMap::new();
        for one in left {
            let turn = turns.entry(one.group()).or_default();
            turn.ending += usize::from(!one.goes_on());
            let parallel = one.job.group(one.record.group.as_str()).map(max_parallel);
            turn.parallel = turn.parallel.max(parallel.unwrap_or(1));
        }
        Turns(turns)
    }

    /// Whether it is the turn of this one; it ends then.
    fn take(&mut self, one: &Drained<'a>) -> bool {
        let turn = self.0.entry(one.group()).or_default();
        let free = turn.ending < turn.parallel;
        turn.ending += usize::from(free);
        free
    }
}

/// How many copies of a group are drained at a time.
pub fn max_parallel(group: &TaskGroup) -> usize {
    let Some(Value::Map(migrate)) = &group.migrate else {
        return 1;
    };
    match migrate.get("MaxParallel") {
        Some(Value::Int(count)) => usize::try_from(*count).unwrap_or(1).max(1),
        Some(_) | None => 1,
    }
}
