//! Evaluations: pending until they are planned, and true in what they say of the plan.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{EvalId, GroupName, JobKey};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::{EvalStatus, Evaluation, FollowUp, Trigger};
use drover_core::store::record::JobRecord;

use super::canaries::stands;
use super::policy::copies;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of evaluations.
#[derive(Clone, Debug, Default)]
pub(super) struct Evals {
    /// The state's index when they were looked at last.
    index: Option<u64>,
    /// Those of which it was checked, or was saved, what the plan made of them.
    closed: BTreeSet<EvalId>,
}

impl Evals {
    pub(super) fn agent_died(&mut self) {
        self.index = None;
    }

    /// What an earlier life saved as planned is not checked again.
    pub(super) fn agent_restored(&mut self, world: &World) {
        let saved = world.disk.saved().evals;
        let closed = saved.values().filter(|eval| !eval.status.is_open());
        self.closed = closed.map(|eval| eval.id).collect();
    }
}

impl Checker {
    pub(super) fn evaluations(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let index = Some(view.index());
        if self.evals.index == index || view.shutdown().is_some() {
            return Ok(());
        }
        let before = core::mem::replace(&mut self.evals.index, index);
        let known = view.is_fingerprinted() && !view.machine().awaits_first_report();
        for eval in view.evals() {
            let pending = eval.status == EvalStatus::Pending && !eval.is_waiting();
            self.sometimes(Property::SometimesEvaluationIsPending, pending);
            self.holds(
                Property::EvaluationCompletesAfterFirstFingerprint,
                !(pending && known),
                || format!("{eval:?}"),
            )?;
            if let Some(follow_up) = &eval.follow_up {
                self.waiting_evaluation_is_of_use(agent, eval, follow_up)?;
            }
            if !eval.status.is_open() && self.evals.closed.insert(eval.id) {
                self.evaluation_reports_plan_result(view, eval)?;
                self.evaluation_counts_what_its_plan_did(view, eval, before)?;
            }
        }
        for job in view.jobs().filter(|_| known) {
            self.unplaced_group_has_one_blocked_evaluation(view, &job.job.key())?;
        }
        Ok(())
    }

    /// A complete evaluation reports exactly the groups that have unplaced
    /// copies.
    fn evaluation_reports_plan_result(&mut self, view: View<'_>, eval: &Evaluation) -> Verdict {
        let property = Property::EvaluationReportsPlanResult;
        let Some(job) = view.job(&eval.job).filter(|job| !job.job.stop) else {
            return Ok(());
        };
        let mut newer = view.evals().filter(|other| other.job == eval.job);
        if eval.status == EvalStatus::Canceled {
            if eval.follow_up.is_some() {
                return Ok(());
            }
            let waits = newer.any(|other| other.create_index > eval.create_index);
            return self.holds(property, waits, || format!("nothing waits for {eval:?}"));
        }
        let still_waits = (eval.blocked_eval.and_then(|id| view.eval(id)))
            .is_some_and(|blocked| blocked.status == EvalStatus::Blocked);
        for group in &job.job.task_groups {
            let name = GroupName::from(group.name.as_str());
            let failed = eval.failed_groups.iter().any(|(it, _)| *it == group.name);
            let wanted = copies(&job.job, group);
            let missing = (0..wanted).find(|index| !has_copy(view, job, &name, *index));
            let missing = missing.filter(|_| !stands(view, job, &group.name));
            self.holds(property, failed || missing.is_none(), || {
                format!("{name}[{missing:?}] is not placed: {eval:?}")
            })?;
            let filled = (0..wanted).all(|index| runs_copy(view, job, &name, index));
            self.holds(property, !(failed && still_waits && filled), || {
                format!("{name} is placed: {eval:?}")
            })?;
        }
        Ok(())
    }

    /// What a plan is said to have made was made in the step that completed the evaluation; only what is canceled says
    /// nothing. One that was blocked may have been completed by the last of several plans of a step.
    fn evaluation_counts_what_its_plan_did(
        &mut self,
        view: View<'_>,
        eval: &Evaluation,
        before: Option<u64>,
    ) -> Verdict {
        let property = Property::EvaluationCountsWhatItsPlanDid;
        if eval.status == EvalStatus::Canceled {
            return self.holds(property, eval.changes.is_empty(), || format!("{eval:?}"));
        }
        let (Some(job), Some(before)) = (view.job(&eval.job), before) else {
            return Ok(());
        };
        let since = before.max(eval.create_index);
        let was_blocked = eval.trigger == Trigger::QueuedAllocs && eval.create_index <= before;
        for group in &job.job.task_groups {
            let made = made(view, eval, &group.name, since);
            let found = eval.changes.iter().find(|(name, _)| *name == group.name);
            let changes = found.map(|(_, changes)| *changes).unwrap_or_default();
            let counted = Made {
                copies: changes.place + changes.destructive,
                canaries: changes.canary,
            };
            // What could not be placed is counted, too.
            let failed = eval.failed_groups.iter().any(|(it, _)| *it == group.name);
            let holds = match (failed, was_blocked) {
                (true, _) => counted.covers(made) && counted != Made::default(),
                (false, true) => made.covers(counted),
                (false, false) => counted == made,
            };
            self.holds(property, holds, || {
                format!(
                    "{}: made are {made:?}, not {counted:?}: {eval:?}",
                    group.name
                )
            })?;
        }
        Ok(())
    }

    /// An evaluation waits for the replacement of what failed and is still to be replaced; one that is canceled is for
    /// nothing of that kind.
    fn waiting_evaluation_is_of_use(
        &mut self,
        agent: &Agent,
        eval: &Evaluation,
        follow_up: &FollowUp,
    ) -> Verdict {
        let property = Property::DelayedReplacementHasOneWaitingEvaluation;
        let view = agent.view();
        let failed = view.alloc(follow_up.alloc);
        let stops = view.job(&eval.job).is_none_or(|job| job.job.stop);
        let is_open = failed.is_some_and(|alloc| {
            let record = alloc.record();
            let failed = record.status == ClientStatus::Failed && record.next.is_none();
            failed && record.desired == DesiredStatus::Run && !stops
        });
        let (holds, words) = match eval.status {
            // Before the first fingerprints nothing is planned.
            EvalStatus::Pending if eval.is_waiting() && view.is_fingerprinted() => {
                let is_only = failed.and_then(|it| view.follow_up(it.record())) == Some(eval.id);
                (is_open && is_only, "waits for nothing")
            }
            EvalStatus::Canceled if !self.evals.closed.contains(&eval.id) => {
                self.sometimes(Property::SometimesWaitingEvaluationIsCanceled, true);
                let still = failed.and_then(|alloc| self.replacement_to_come(agent, alloc));
                (still.is_none(), "is canceled, and waits")
            }
            EvalStatus::Pending
            | EvalStatus::Blocked
            | EvalStatus::Complete
            | EvalStatus::Canceled => (true, ""),
        };
        self.holds(property, holds, || format!("{eval:?} {words}"))
    }

    fn unplaced_group_has_one_blocked_evaluation(
        &mut self,
        view: View<'_>,
        key: &JobKey,
    ) -> Verdict {
        let of_job = view.evals().filter(|eval| eval.job == *key);
        let blocked: Vec<_> = of_job
            .filter(|eval| eval.status == EvalStatus::Blocked)
            .collect();
        let unplaced = view.blocked(key);
        let holds = match blocked.as_slice() {
            [] => unplaced.is_empty(),
            [one] => !unplaced.is_empty() && one.failed_groups == unplaced,
            _ => false,
        };
        let property = Property::UnplacedGroupHasOneBlockedEvaluation;
        self.holds(property, holds, || {
            format!("{key} lacks {unplaced:?}, and there are {blocked:?}")
        })
    }
}

/// How many allocations of a group are new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Made {
    copies: u32,
    canaries: u32,
}

impl Made {
    fn covers(self, other: Made) -> bool {
        self.copies >= other.copies && self.canaries >= other.canaries
    }
}

/// Those of an evaluation's job that are younger.
fn made(view: View<'_>, eval: &Evaluation, group: &str, since: u64) -> Made {
    let all = view.allocs_of(&eval.job).map(AllocRunner::record);
    let of_group = all.filter(|alloc| alloc.group.as_str() == group);
    let mut made = Made::default();
    for alloc in of_group.filter(|alloc| alloc.create_index > since) {
        match alloc.canary {
            true => made.canaries += 1,
            false => made.copies += 1,
        }
    }
    made
}

/// Whether a copy was placed at least once.
fn has_copy(view: View<'_>, job: &JobRecord, group: &GroupName, index: u32) -> bool {
    let key = job.job.key();
    let done = job.done.contains(group, index);
    let mut allocs = view.allocs_of(&key).map(AllocRunner::record);
    done || allocs.any(|alloc| alloc.group == *group && alloc.index == index)
}

/// Whether a copy of the latest version is there that shall run, and has not failed: what only its poststop
/// tasks keep from being over is to be replaced, and a canary stands beside the copy that it may replace.
fn runs_copy(view: View<'_>, job: &JobRecord, group: &GroupName, index: u32) -> bool {
    let key = job.job.key();
    let mut allocs = view.allocs_of(&key).map(AllocRunner::record);
    allocs.any(|alloc| {
        let here = alloc.group == *group && alloc.index == index;
        let latest = alloc.job_version == job.job.version;
        let runs = !alloc.finished && !alloc.status.is_terminal();
        here && latest && runs && !alloc.canary && alloc.desired == DesiredStatus::Run
    })
}
