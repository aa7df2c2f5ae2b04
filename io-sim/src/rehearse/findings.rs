//! What many runs of one trouble come to: downtimes, and findings with their settings and seeds.

use std::collections::BTreeMap;

use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::scheduler::reconcile::copies;
use drover_core::time::Span;
use serde::Serialize;

use super::attribution::Setting;
use super::measure::{Cause, Failed, GroupOutcome, Late};
use super::play::LATE;
use super::{Outcome, Rehearsal, Trouble, report};

/// What came of a trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Block {
    /// Which.
    pub trouble: Trouble,
    /// What it is.
    pub sentence: String,
    /// Why it was not rehearsed, if so.
    pub not_for: Option<String>,
    /// How many runs there were.
    pub runs: usize,
    /// Each group of the job.
    pub groups: Vec<GroupBlock>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

/// How a group fared. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct GroupBlock {
    /// Its name.
    pub group: String,
    /// How many copies were rehearsed.
    pub count: u32,
    /// The longest time with fewer copies than that, from the first time that all were up, of
    /// those that ended.
    pub worst: Option<Worst>,
    /// The median of the runs' longest times; none if that is for ever.
    pub typical: Option<Span>,
    /// In how many runs it never was whole again by itself.
    pub lost: usize,
}

/// The longest downtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Worst {
    /// How long.
    pub down: Span,
    /// When it began, since the beginning of the run.
    pub at: Span,
    /// The run's seed.
    pub seed: u64,
}

/// What kind of finding it is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A group never is whole again by itself.
    Lost,
    /// Something happened in the wrong order.
    OutOfOrder,
    /// The agent itself broke a law of its own.
    AgentAtFault,
    /// A group is whole again only long after the trouble.
    Late,
    /// A task used up its restart budget; its allocation failed and was replaced.
    BudgetUsedUp,
    /// An allocation failed for another reason than its restart policy, and was replaced.
    Failed,
    /// Copies ran, but not healthily in time; no roll-out goes on after that.
    Unhealthy,
}

impl Kind {
    /// Whether a job with it should not go on as it is. The others are worth knowing.
    pub fn is_bad(self) -> bool {
        match self {
            Kind::Lost | Kind::OutOfOrder | Kind::AgentAtFault => true,
            Kind::Late | Kind::BudgetUsedUp | Kind::Failed | Kind::Unhealthy => false,
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// The group.
    pub group: String,
    /// What was found.
    pub what: String,
    /// In how many runs.
    pub runs: usize,
    /// The seed of one of them, the worst where they differ.
    pub seed: u64,
    /// The settings to blame.
    pub settings: Vec<Setting>,
}

impl Block {
    /// A trouble that means nothing to this job.
    pub fn skipped(trouble: Trouble, why: &str) -> Block {
        Block {
            trouble,
            sentence: trouble.sentence().to_owned(),
            not_for: Some(why.to_owned()),
            runs: 0,
            groups: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// What these runs come to.
    pub fn of(rehearsal: &Rehearsal, trouble: Trouble, outcomes: &[Outcome]) -> Block {
        let job = &rehearsal.pretended;
        // What was measured of the others up to where the agent went wrong says nothing.
        let sound = || outcomes.iter().filter(|outcome| outcome.broken.is_none());
        let seeds: Vec<u64> = sound().map(|outcome| outcome.seed).collect();
        let groups = job.task_groups.iter().enumerate().map(|(at, group)| {
            let of_group: Vec<_> = sound().filter_map(|o| o.groups.get(at)).collect();
            outcome_text(job, group, &of_group, &seeds)
        });
        let mut tally = Tally::default();
        for outcome in outcomes {
            tally.add(rehearsal, outcome);
        }
        Block {
            trouble,
            sentence: trouble.sentence().to_owned(),
            not_for: None,
            runs: outcomes.len(),
            groups: groups.collect(),
            findings: tally.findings(rehearsal, outcomes.len()),
        }
    }

    /// Whether something is bad.
    pub fn is_bad(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind.is_bad())
    }
}

fn outcome_text(
    job: &Job,
    group: &TaskGroup,
    outcomes: &[&GroupOutcome],
    seeds: &[u64],
) -> GroupBlock {
    let lasting = outcomes.iter().filter(|o| o.back_after.is_some());
    let mut all: Vec<Span> = lasting.map(|outcome| outcome.worst).collect();
    all.sort();
    let down = outcomes
        .iter()
        .zip(seeds)
        .filter(|(o, _)| !o.worst.is_zero());
    let worst = down.max_by_key(|(o, seed)| (o.worst, core::cmp::Reverse(**seed)));
    GroupBlock {
        group: group.name.clone(),
        count: copies(job, group),
        worst: worst.map(|(outcome, seed)| Worst {
            down: outcome.worst,
            at: outcome.worst_at,
            seed: *seed,
        }),
        typical: all.get(outcomes.len() / 2).copied(),
        lost: outcomes.len() - all.len(),
    }
}

/// What tells two findings apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    Lost(usize, Option<Late>, Option<Failed>),
    OutOfOrder(String, String),
    Broken(&'static str),
    Late(usize, Option<Late>),
    Failed(Failed),
    Unhealthy(usize),
}

/// How often, how badly at most and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) runs: usize,
    pub(super) worst: Span,
    pub(super) seed: u64,
    pub(super) detail: String,
}

#[derive(Default)]
struct Tally(BTreeMap<Found, Times>);

impl Tally {
    fn note(&mut self, found: Found, seed: u64, worst: Span, detail: &str) {
        let times = self.0.entry(found).or_default();
        if times.runs == 0 || worst > times.worst {
            (times.worst, times.seed) = (worst, seed);
            detail.clone_into(&mut times.detail);
        }
        times.runs += 1;
    }

    fn add(&mut self, rehearsal: &Rehearsal, outcome: &Outcome) {
        let seed = outcome.seed;
        if let Some((law, detail)) = &outcome.broken {
            return self.note(Found::Broken(law), seed, Span::ZERO, detail);
        }
        for disorder in &outcome.disorder {
            let (group, what) = (disorder.group.clone(), disorder.what.clone());
            self.note(Found::OutOfOrder(group, what), seed, Span::ZERO, "");
        }
        for (at, group) in outcome.groups.iter().enumerate() {
            // The task is of no importance to who waits for a replacement of them all.
            let late = || match &group.late {
                Some(late) if late.cause == Cause::Failed && group.back_after.is_some() => {
                    Some(Late {
                        task: None,
                        ..late.clone()
                    })
                }
                late => late.clone(),
            };
            match group.back_after {
                None => {
                    let task = group.late.as_ref().and_then(|late| late.task.as_ref());
                    let mut failed = outcome.failed.keys();
                    let failed = failed.find(|f| f.group == at && Some(&f.task) == task);
                    let found = Found::Lost(at, late(), failed.cloned());
                    self.note(found, seed, Span::ZERO, "");
                }
                Some(back) if back > LATE && !is_work(rehearsal, group.late.as_ref()) => {
                    self.note(Found::Late(at, late()), seed, back, "");
                }
                Some(_) => {}
            }
        }
        for group in &outcome.unhealthy {
            self.note(Found::Unhealthy(*group), seed, Span::ZERO, "");
        }
        for failed in outcome.failed.keys() {
            let group = outcome.groups.get(failed.group);
            if group.is_some_and(|group| group.back_after.is_some()) {
                self.note(Found::Failed(failed.clone()), seed, Span::ZERO, "");
            }
        }
    }

    fn findings(self, rehearsal: &Rehearsal, runs: usize) -> Vec<Finding> {
        let one = |(found, times): (Found, Times)| report::finding(rehearsal, &found, &times, runs);
        let mut findings: Vec<Finding> = self.0.into_iter().filter_map(one).collect();
        findings.sort_by_key(|finding| (finding.kind, core::cmp::Reverse(finding.runs)));
        findings
    }
}

/// Whether a batch job is not done because it works, and for no other reason.
fn is_work(rehearsal: &Rehearsal, late: Option<&Late>) -> bool {
    let works = late.is_none_or(|late| late.cause == Cause::UnderWay);
    rehearsal.job.job_type.runs_to_completion() && works
}
