//! Replacements of failed allocations: as soon as the job file says, and no sooner.
//!
//! How many there were is counted here, from allocation to allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::{Agent, JobWait, Wait};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, JobKey};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::eval::{EvalStatus, Evaluation};
use drover_core::store::record::AllocRecord;
use drover_core::time::{Span, Timestamp};

use super::canaries::stands;
use super::history::saved_alloc;
use super::policy::{self, Replacements};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// More than so many are not counted.
const MOST: usize = 64;

/// What is known of an allocation that failed.
#[derive(Clone, Copy, Debug)]
struct Failed {
    /// When it was seen first, since the beginning, and how often the wall clock had been set then.
    first: Span,
    wall_jumps: u32,
    /// Its last change, and when that was seen. One that was not saved when an agent died is made again at another
    /// time, under the same index.
    change: (u64, Timestamp),
    changed: Span,
    jumps_at_change: u32,
    /// When it changed last, by the wall clock, and the time before.
    wall: Timestamp,
    before: Option<Timestamp>,
}

/// What is remembered of replacements.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacing {
    /// When the allocations before this one were replaced because they failed.
    chain: BTreeMap<AllocId, Vec<Timestamp>>,
    failed: BTreeMap<AllocId, Failed>,
}

impl Checker {
    /// What the job file of an allocation says of replacements of it.
    fn replacement_rules(&self, alloc: &AllocRunner) -> Option<Replacements> {
        let file = self.files.of(alloc)?;
        policy::replacements(file, policy::group(file, alloc.record().group.as_str())?)
    }

    /// When an allocation failed that is replaced in this step, if that is known: to be replaced is a change, too.
    pub(super) fn failed_at(&self, world: &World, failed: AllocId) -> Option<Timestamp> {
        let known = self.replacing.failed.get(&failed)?;
        match known.changed == world.elapsed() {
            true => known.before,
            false => Some(known.wall),
        }
    }

    /// Looks at an allocation that may have failed.
    pub(super) fn note_failure(&mut self, world: &World, alloc: &AllocRunner) {
        let record = alloc.record();
        let is_failed = |record: &AllocRecord| {
            record.status == ClientStatus::Failed && record.desired == DesiredStatus::Run
        };
        if !is_failed(record) {
            // The next agent goes on from what is saved.
            if !saved_alloc(world, record.id).is_some_and(is_failed) {
                self.replacing.failed.remove(&record.id);
            }
            return;
        }
        let now = Failed {
            first: world.elapsed(),
            wall_jumps: world.scene.wall_jumps,
            change: (record.modify_index, record.modify_time),
            changed: world.elapsed(),
            jumps_at_change: world.scene.wall_jumps,
            wall: world.now().wall,
            before: None,
        };
        let known = self.replacing.failed.entry(record.id).or_insert(now);
        if known.change != now.change {
            *known = Failed {
                first: known.first,
                wall_jumps: known.wall_jumps,
                before: Some(known.wall),
                ..now
            };
        }
    }

    /// `alloc` is new and replaces one that `failed`, or that ended otherwise.
    pub(super) fn replacement_is_not_too_early(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        replaced: &AllocRunner,
        failed: bool,
    ) -> Verdict {
        let (id, before) = (alloc.record().id, replaced.record());
        let earlier = self.replacing.chain.get(&before.id).cloned();
        let mut earlier = earlier.unwrap_or_default();
        if !failed {
            // Who was preempted begins with what it had.
            if before.desired == DesiredStatus::Evict {
                self.replacing.chain.insert(id, earlier);
            }
            return Ok(());
        }
        let count = earlier.len();
        earlier.push(world.now().wall);
        self.replacing.chain.insert(id, earlier);
        let rules = self.replacement_rules(replaced);
        let (Some(rules), Some(known)) = (rules, self.replacing.failed.get(&before.id)) else {
            return Ok(());
        };
        if known.wall_jumps != world.scene.wall_jumps || count >= MOST {
            return Ok(());
        }
        let (pause, expected) = (Span(world.elapsed().0 - known.first.0), rules.pause(count));
        self.holds(
            Property::ReplacementWaitsForPolicyDelay,
            pause >= expected,
            || {
                let name = &alloc.record().name;
                format!("{name} is replaced after {pause}, its job file wants {expected}: {count} before")
            },
        )
    }

    /// Whether a failed allocation is to be replaced some day as its job file says, and the pause before that.
    pub(super) fn replacement_to_come(&self, agent: &Agent, alloc: &AllocRunner) -> Option<Span> {
        let (record, view) = (alloc.record(), agent.view());
        let job = view.job(&record.job)?;
        if record.status != ClientStatus::Failed || record.desired != DesiredStatus::Run {
            return None;
        }
        let known = self.replacing.failed.get(&record.id)?;
        let rules = self.replacement_rules(alloc)?;
        let current = job.job.version == record.job_version && !job.job.stop;
        let group = job.job.group(record.group.as_str())?;
        let wanted = usize::try_from(group.wanted()).unwrap_or(0);
        let needed = usize::try_from(record.index).is_ok_and(|index| index < wanted);
        let others = view.allocs_of(&record.job).map(AllocRunner::record);
        let latest = others
            .filter(|other| other.group == record.group && other.index == record.index)
            .all(|other| other.create_index <= record.create_index);
        let held = record.canary || stands(view, job, &group.name) || record.destroying;
        if record.next.is_some() || !current || !needed || !latest || held {
            return None;
        }
        let earlier = self.replacing.chain.get(&record.id);
        let earlier = earlier.map_or(&[][..], Vec::as_slice);
        let recent = |time: &&Timestamp| {
            let apart = (known.wall - **time).0.saturating_abs();
            apart < rules.interval.0
        };
        let used = earlier.iter().filter(recent).count();
        let allowed = rules.attempts.is_none_or(|attempts| used < attempts);
        (allowed && earlier.len() < MOST).then(|| rules.pause(earlier.len()))
    }

    /// A failed allocation waits no longer for its replacement than its job file says, whoever goes on with that.
    pub(super) fn replacements_are_not_too_late(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        if self.replacing.failed.is_empty() || self.leaving || agent.view().stopped() {
            return Ok(());
        }
        let pending = agent.pending();
        let lacks_a_place = |key: &JobKey| {
            let lacks = |wait: &JobWait| matches!(wait, JobWait::Placement | JobWait::Fingerprint);
            let mut all = pending.awaiting.iter();
            all.any(|one| matches!(&one.wait, Wait::Job(of, wait) if of == key && lacks(wait)))
        };
        for one in &pending.awaiting {
            let (Wait::Job(key, JobWait::Reschedule), Some(until)) = (&one.wait, one.until) else {
                continue;
            };
            // Its time may have come, and its placement fails.
            if lacks_a_place(key) {
                continue;
            }
            let ends = Span(world.elapsed().0.saturating_add((until - world.scene.at).0));
            for alloc in agent.view().allocs_of(key) {
                let Some(pause) = self.replacement_to_come(agent, alloc) else {
                    continue;
                };
                let Some(known) = self.replacing.failed.get(&alloc.record().id).copied() else {
                    continue;
                };
                let due = known
                    .changed
                    .0
                    .saturating_add(pause.0)
                    .max(world.elapsed().0);
                let late = known.jumps_at_change == world.scene.wall_jumps && ends.0 > due;
                self.holds(Property::ReplacementComesAfterPolicyDelay, !late, || {
                    let (name, due) = (&alloc.record().name, Span(due));
                    format!(
                        "{name} is replaced {ends} after the beginning, its job file wants {due}"
                    )
                })?;
            }
        }
        Ok(())
    }

    /// A failed allocation whose time has not come has an evaluation that waits for it.
    pub(super) fn delayed_replacements_have_evaluations(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let view = agent.view();
        // Before the first fingerprints nothing is planned.
        let ends = view.shutdown().is_some() || view.stopped();
        let plans = view.is_fingerprinted() && !self.leaving && !ends;
        if self.replacing.failed.is_empty() || !plans {
            return Ok(());
        }
        let failed: Vec<AllocId> = self.replacing.failed.keys().copied().collect();
        for alloc in failed.iter().filter_map(|id| view.alloc(*id)) {
            let (record, known) = (
                alloc.record(),
                self.replacing.failed.get(&alloc.record().id),
            );
            let (Some(pause), Some(known)) = (self.replacement_to_come(agent, alloc), known) else {
                continue;
            };
            let over = world.elapsed().0 >= known.first.0.saturating_add(pause.0);
            if over || known.wall_jumps != world.scene.wall_jumps {
                continue;
            }
            let eval = view.follow_up(record).and_then(|id| view.eval(id));
            let waits = eval.is_some_and(|eval| eval.is_waiting());
            let property = Property::DelayedReplacementHasOneWaitingEvaluation;
            self.holds(property, waits, || {
                format!("{} waits for its replacement, and {eval:?}", record.name)
            })?;
        }
        Ok(())
    }

    /// What replaces an allocation that failed a while ago is of the evaluation that waited for that, if this placed it,
    /// and of none that waited for another, if its job has others.
    pub(super) fn replacement_is_of_waiting_evaluation(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
        replaced: &AllocRunner,
    ) -> Verdict {
        let (view, record) = (agent.view(), alloc.record());
        let own = |eval: &Evaluation| {
            let failed = eval.follow_up.as_ref().map(|it| it.alloc);
            failed == Some(replaced.record().id)
        };
        let placed = |eval: &&Arc<Evaluation>| {
            let complete = eval.status == EvalStatus::Complete && eval.failed_groups.is_empty();
            // What it placed may have been replaced, and collected, since.
            complete && own(eval) && eval.modify_index > record.create_index
        };
        let placed = view
            .evals()
            .filter(placed)
            .max_by_key(|eval| eval.create_index);
        let made_by = view.eval(record.eval);
        let others = made_by.filter(|eval| eval.follow_up.is_some() && !own(eval));
        // The one of the registration may be collected.
        let follows_nothing = |eval: &Arc<Evaluation>| {
            let older = eval.create_index < record.create_index;
            eval.job == record.job && older && eval.follow_up.is_none()
        };
        let holds = match placed {
            Some(eval) => eval.id == record.eval,
            None => others.is_none() || !view.evals().any(follows_nothing),
        };
        let property = Property::DelayedReplacementHasOneWaitingEvaluation;
        self.holds(property, holds, || {
            format!("{} is of {made_by:?}, not of {placed:?}", record.name)
        })
    }

    /// At rest a failed allocation was replaced, or its job waits for that, as long as its job file allows it.
    pub(super) fn failed_alloc_is_replaced(&mut self, agent: &Agent) -> Verdict {
        let pending = agent.pending();
        for alloc in agent.view().allocs() {
            if self.replacement_to_come(agent, alloc).is_none() {
                continue;
            }
            let waits = pending.awaits_job(&alloc.record().job);
            self.holds(Property::FailedAllocIsReplaced, waits, || {
                format!("{} failed, and nothing follows", alloc.record().name)
            })?;
        }
        Ok(())
    }
}
