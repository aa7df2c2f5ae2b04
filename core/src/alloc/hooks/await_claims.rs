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
