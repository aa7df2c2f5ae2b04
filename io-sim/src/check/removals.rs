//! Removing directories: how many at once.

use std::collections::BTreeSet;

use drover_core::effect::{HookEffect, HookWork};
use drover_core::input::HookInput;
use drover_core::op::Op;

use super::{Checker, Property, Verdict};

/// Which removals are under way, as far as the agent awaits them.
#[derive(Clone, Debug)]
pub(super) struct Removals {
    awaited: BTreeSet<Op>,
    /// How many may be.
    places: usize,
}

impl Removals {
    pub(super) fn new(places: usize) -> Removals {
        Removals {
            awaited: BTreeSet::new(),
            places,
        }
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
    /// No more allocations are cleaned away at once than the operator wants.
    pub(super) fn only_so_many_go_at_once(&mut self, effect: &HookEffect) -> Verdict {
        match effect {
            HookEffect::Run {
                op,
                work: HookWork::RemoveAllocDir,
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
