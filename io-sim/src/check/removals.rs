//! Removing directories: how many at once, and how soon.

use std::collections::BTreeSet;

use drover_core::effect::HookEffect;
use drover_core::input::HookInput;
use drover_core::op::Op;
use drover_core::time::Instant;
use drover_core::work::HookWork;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Which removals are under way, as far as the agent awaits them.
#[derive(Clone, Debug)]
pub(super) struct Removals {
    awaited: BTreeSet<Op>,
    /// How many may be.
    permits: usize,
    /// When this life of the agent began, while it has not looked yet how full the disk is.
    not_looked_since: Option<Instant>,
}

impl Removals {
    pub(super) fn new(permits: usize) -> Removals {
        Removals {
            awaited: BTreeSet::new(),
            permits,
            not_looked_since: None,
        }
    }

    pub(super) fn agent_restored(&mut self, at: Instant) {
        self.not_looked_since = Some(at);
    }

    pub(super) fn delivered(&mut self, reported: &HookInput) {
        self.awaited.remove(&reported.op);
    }

    /// What it began is nothing to the next agent.
    pub(super) fn agent_died(&mut self) {
        self.awaited.clear();
    }
}

impl Checker {
    /// The agent asks how full the disk is. It does so when something ended, and not at once.
    pub(super) fn first_disk_usage_check_waits_interval(&mut self, world: &World) -> Verdict {
        let Some(limits) = self.disk_limits else {
            return Ok(());
        };
        let since = self.removals.not_looked_since.take();
        let waited = since.is_none_or(|since| world.scene.at - since >= limits.interval);
        self.holds(Property::FirstDiskUsageCheckWaitsInterval, waited, || {
            format!(
                "it is asked at {:?}, and lives since {since:?}",
                world.scene.at
            )
        })
    }

    /// At most the configured number of allocations is being removed at once.
    pub(super) fn parallel_removals_are_bounded(&mut self, effect: &HookEffect) -> Verdict {
        match effect {
            HookEffect::Run {
                op,
                work: HookWork::RemoveAllocDir(_),
                ..
            } => self.removals.awaited.insert(*op),
            HookEffect::Run { .. } => return Ok(()),
            HookEffect::Cancel { op } => self.removals.awaited.remove(op),
        };
        let (many, permits) = (self.removals.awaited.len(), self.removals.permits);
        self.holds(
            Property::ParallelRemovalsAreBounded,
            many <= permits,
            || format!("{many} at once, where {permits} may go"),
        )
    }
}
