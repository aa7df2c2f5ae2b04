//! `await_previous_allocations`, on this node: the allocation waits until all its claims are granted.
//! [`crate::claims`] has the rule, `agent/granting.rs` applies it. It can be stopped while it waits; `alloc status`
//! shows for what and for whom it waits.

use super::{AllocHook, Holders};
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::HookStart;

/// The hook.
pub struct AwaitClaims;

impl AllocHook for AwaitClaims {
    fn name(&self) -> &'static str {
        "await_previous_allocations"
    }

    fn awaits_claims(&self) -> Option<Holders> {
        Some(Holders::Here)
    }

    fn prerun(&self, alloc: &AllocRunner, _: &mut Asking, _: &mut Cx<'_>) -> HookStart {
        match alloc.has_claims() {
            true => HookStart::Done,
            false => HookStart::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};

    #[test]
    fn alloc_waits_for_its_claims_until_they_are_granted() {
        let mut world = World::new();
        let mut alloc = world.alloc();
        let mut asking = Asking::default();
        assert_eq!(
            world.prerun(&alloc, &AwaitClaims, &mut asking),
            Began::Waits
        );
        alloc.grant();
        assert_eq!(world.prerun(&alloc, &AwaitClaims, &mut asking), Began::Done);
    }

    #[test]
    fn holders_of_claims_are_on_this_node_and_named_by_others() {
        let mut world = World::new();
        let alloc = world.alloc();
        assert_eq!(AwaitClaims.awaits_claims(), Some(Holders::Here));
        assert_eq!(world.words(&alloc, &AwaitClaims, &Asking::default()), "");
    }
}
