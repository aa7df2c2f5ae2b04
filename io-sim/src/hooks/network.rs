//! Networks of allocations.

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::{BuildNetwork, RemoveNetwork};

use super::{Of, Simulated};
use crate::check::{Checker, Property, Verdict, Violation};
use crate::faults::Fault;
use crate::world::World;

impl Simulated for BuildNetwork {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let half = world.fires(Fault::HalfNetwork, &of.entity);
        if let Some(holder) = world.networks.build(of.alloc, self, half) {
            let why = format!("{} has something of the network of {holder}", of.alloc);
            world.broken = Some(Violation::new(Property::NetworkHasOneHolder, why));
        }
        match half {
            true => Err(Failure::recoverable("the rules cannot be made")),
            false => Ok(HookOutput::default()),
        }
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.network_is_built_after_alloc_is_saved(world, of.alloc)
    }
}

impl Simulated for RemoveNetwork {
    fn delays_removal(&self) -> bool {
        false
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        world.networks.remove(of.alloc);
        Ok(HookOutput::default())
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.network_with_live_process_is_not_removed(world, of.alloc)
    }
}
