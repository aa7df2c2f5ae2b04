//! A job is rehearsed: it runs in the simulated world under named troubles, and what becomes of it
//! is measured. Data in, data out; whoever wants thousands of runs calls [`Rehearsal::run`] so
//! often, from as many threads as there are, and hands what came of them to [`Block::of`].
//!
//! The tasks are simulated ones ([`crate::task_faults`]). A seed makes a *plan* of a trouble
//! (`plan.rs`): spells of bad habits, and what happens when. `play.rs` runs it, then leaves the job
//! alone until it is whole or eight days are over. After each step `measure.rs` counts the copies
//! whose processes live (or, of batch jobs, whose newest allocation did its work), and `order.rs`
//! checks what began or was asked to end too early. Neither believes what the agent says of its
//! tasks. Many outcomes become findings (`findings.rs`), sentences (`with_story.rs`) and settings
//! (`attribution.rs`); places in the file are found by `agent/src/cli/rehearse.rs`.
//!
//! A new trouble is a variant of [`Trouble`] with its sentence, and its plan.

mod attribution;
mod findings;
mod measure;
mod order;
mod plan;
mod play;
mod report;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};

use drover_core::model::job::Job;
use drover_core::time::Span;

use crate::task_faults;
use crate::trace::Event;

pub use attribution::{Setting, rounded};
pub use findings::{Block, Finding, GroupBlock, Kind, Worst};
pub use measure::{Cause, Failed, GroupOutcome, Late};
pub use order::Disorder;
pub use plan::{Happening, Plan};
pub use trouble::Trouble;

/// No more tasks than this are rehearsed at once: what more copies do is the same again.
pub const MOST_TASKS: usize = 60;

/// A job that is about to be rehearsed.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The job as its author means it.
    job: Job,
    /// The job that runs.
    pretended: Job,
}

/// What came of one run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// When the trouble was over, since the beginning.
    pub over: Span,
    /// What became of each group, in the order of the job.
    pub groups: Vec<GroupOutcome>,
    /// Allocations that failed, by group and task: how often.
    pub failed: BTreeMap<Failed, u32>,
    /// The places in the job of groups of which a copy ran, but not healthily in time.
    pub unhealthy: BTreeSet<usize>,
    /// What happened in the wrong order, once each.
    pub disorder: Vec<Disorder>,
    /// A law of the agent itself that was broken, and how.
    pub broken: Option<(&'static str, String)>,
    /// The story, if it was kept.
    pub story: Vec<Event>,
}

impl Rehearsal {
    /// A job that is canonical and valid. Copies that would be too many are left out.
    pub fn new(job: &Job) -> Rehearsal {
        let mut pretended = task_faults::pretend(job);
        let size = |job: &Job| -> usize {
            let groups = job.task_groups.iter();
            let tasks = |count: i64| usize::try_from(count).unwrap_or(0);
            groups
                .map(|group| tasks(group.wanted()).saturating_mul(group.tasks.len()))
                .fold(0, usize::saturating_add)
        };
        while size(&pretended) > MOST_TASKS {
            let largest = pretended
                .task_groups
                .iter_mut()
                .max_by_key(|group| group.wanted());
            match largest {
                Some(group) if group.wanted() > 1 => group.count = Some((group.wanted() + 1) / 2),
                _ => break,
            }
        }
        Rehearsal {
            job: job.clone(),
            pretended,
        }
    }

    /// Groups of which fewer copies are rehearsed than the job has: how many, and of how many.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        let pairs = self.job.task_groups.iter().zip(&self.pretended.task_groups);
        let counts = pairs.map(|(whole, less)| (&*whole.name, less.wanted(), whole.wanted()));
        counts.filter(|(_, less, whole)| less < whole)
    }

    /// How many tasks run at the same time.
    pub fn tasks(&self) -> usize {
        let groups = self.pretended.task_groups.iter();
        groups
            .map(|group| group.tasks.len() * usize::try_from(group.wanted()).unwrap_or(0))
            .sum()
    }

    /// The job as its author means it.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What happens in the run of a seed.
    pub fn plan(&self, trouble: Trouble, seed: u64) -> Plan {
        Plan::of(&self.pretended, trouble, seed)
    }

    /// Runs the job under this trouble once. The same seed gives the same run. The story is kept if
    /// `with_story`.
    pub fn run(&self, trouble: Trouble, seed: u64, with_story: bool) -> Outcome {
        self.play(&self.plan(trouble, seed), seed, with_story)
    }

    /// The same for a plan that somebody else made.
    pub fn play(&self, plan: &Plan, seed: u64, with_story: bool) -> Outcome {
        play::play(&self.pretended, plan, seed, with_story)
    }
}
