//! The health of allocations of roll-outs: unhealthy only with a cause, and decided in time.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::alloc::runner::{AllocRunner, Phase};
use drover_core::ids::AllocId;
use drover_core::model::alloc::TaskLife;
use drover_core::model::task::Stage;
use drover_core::task::runner::TaskRunner;
use drover_core::time::Span;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// How late anything may be: the agent is called back a minute late at most.
const SLACK: Span = Span::secs(62);

/// What is remembered of the health of an allocation.
#[derive(Clone, Debug)]
struct Known {
    /// Which version it ran when it was looked at last, and since when.
    version: u64,
    since: Span,
    /// Since when its tasks have their turn, in this life of the agent, and in all.
    turn: Option<Span>,
    first_turn: Option<Span>,
    /// What was decided when it was looked at last.
    healthy: Option<bool>,
}

/// The same of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    known: BTreeMap<AllocId, Known>,
}

impl Health {
    /// Since when an allocation runs its version.
    pub(super) fn since_version(&self, alloc: AllocId) -> Option<Span> {
        self.known.get(&alloc).map(|known| known.since)
    }

    pub(super) fn agent_died(&mut self) {
        for known in self.known.values_mut() {
            known.turn = None;
        }
    }
}

impl Checker {
    /// Looks at the health of an allocation.
    pub(super) fn health(&mut self, world: &World, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        let (record, now) = (alloc.record(), world.elapsed());
        let new = Known {
            version: record.job_version,
            since: now,
            turn: None,
            first_turn: None,
            healthy: record.health.map(|health| health.healthy),
        };
        let known = self.health.known.entry(record.id).or_insert(new.clone());
        if known.version != new.version {
            // An update in place that was not saved when the agent died never was: what was decided before it stands.
            if new.version < known.version {
                known.healthy = new.healthy;
            }
            (known.version, known.since, known.turn) = (new.version, now, None);
            known.first_turn = None;
        }
        let before = known.healthy;
        known.healthy = new.healthy;
        if matches!(alloc.phase(), Phase::Tasks(_)) {
            known.turn.get_or_insert(now);
            known.first_turn.get_or_insert(now);
        }
        let (turn, first_turn) = (known.turn, known.first_turn);
        let Some(file) = self.files.of(alloc) else {
            return Ok(());
        };
        let update = policy::group(file, record.group.as_str())
            .and_then(|group| policy::update(file, group))
            .cloned();
        let Some(update) = update else {
            return Ok(());
        };
        let passed = |since: Span| Span(now.0.saturating_sub(since.0));
        if new.healthy == Some(false) && before != new.healthy {
            // To wait for claims, or for a disk, is no fault of the new version.
            let late = first_turn.is_some_and(|turn| passed(turn) >= update.healthy_deadline);
            let failed = alloc.tasks().iter().any(is_lost);
            let asked = self.replies.says_unhealthy(record.id);
            return self.holds(
                Property::UnhealthyAllocHasACause,
                late || failed || asked,
                || {
                    let (name, after) = (&record.name, first_turn.map(passed));
                    format!("{name} is unhealthy {after:?} after its tasks began: none failed")
                },
            );
        }
        let watched = record.deployment.is_some() && update.health_check != "manual";
        let wanted = !record.desired.is_terminal() && !self.leaving && !agent.view().stopped();
        let late = turn.is_some_and(|turn| passed(turn).0 > update.healthy_deadline.0 + SLACK.0);
        if !watched || !wanted || new.healthy.is_some() || !matches!(alloc.phase(), Phase::Tasks(_))
        {
            return Ok(());
        }
        self.holds(Property::HealthIsDecidedInTime, !late, || {
            let deadline = update.healthy_deadline;
            format!("{} is neither, {deadline} are over", record.name)
        })
    }
}

/// Whether a task is over that was to run on, or that failed.
fn is_lost(task: &TaskRunner) -> bool {
    let state = task.state();
    let dead = state.state == TaskLife::Dead;
    match task.spec().stage() {
        Stage::Poststop => false,
        Stage::Prestart | Stage::Poststart => state.failed,
        Stage::Main | Stage::PrestartSidecar | Stage::PoststartSidecar => dead || state.failed,
    }
}
