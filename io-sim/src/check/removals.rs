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
    places: usize,
    /// When this life of the agent began, while it has not looked yet how full the disk is.
    not_looked_since: Option<Instant>,
}

impl Removals {
    pub(super) fn new(places: usize) -> Removals {
        Removals {
            awaited: BTreeSet::new(),
            places,
            not_looked_since: None,
        }
    }

    pub(super) fn awake(&mut self, at: Instant) {
        self.not_looked_since = Some(at);
    }

    pub(super) fn heard(&mut self, said: &HookInput) {
        self.awaited.remove(&said.op);
    }

    /// What it began is nothing to the next agent.
    pub(super) fn agent_died(&mut self) {
        self.awaited.clear();
    }
}

impl Checker {
    /// The agent asks how full the disk is. It does so when something ended, and not at once.
    pub(super) fn the_first_look_at_the_disk_has_time(&mut self, world: &World) -> Verdict {
        let Some(limits) = self.room else {
            return Ok(());
        };
        let since = self.removals.not_looked_since.take();
        let waited = since.is_none_or(|since| world.at - since >= limits.interval);
        self.holds(Property::TheFirstLookAtTheDiskHasTime, waited, || {
            format!("it is asked at {:?}, and lives since {since:?}", world.at)
        })
    }

    /// No more allocations are cleaned away at once than the operator wants.
    pub(super) fn only_so_many_go_at_once(&mut self, effect: &HookEffect) -> Verdict {
        match effect {
            HookEffect::Run {
                op,
                work: HookWork::RemoveAllocDir(_),
                ..
            } => self.removals.awaited.insert(*op),
            HookEffect::Run { .. } => return Ok(()),
            HookEffect::Cancel { op } => self.removals.awaited.remove(op),
        };
        let (many, places) = (self.removals.awaited.len(), self.removals.places);
        self.holds(Property::OnlySoManyGoAtOnce, many <= places, || {
            format!("{many} at once, where {places} may go")
        })
    }
}
