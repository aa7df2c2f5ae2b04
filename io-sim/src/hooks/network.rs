//! Networks of allocations.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::{BuildNetwork, HookWork, RemoveNetwork};

use super::{Asked, Of, Simulated};
use crate::check::{Checker, Property, Verdict, Violation};
use crate::faults::Fault;
use crate::network::{Made, Networks};
use crate::point::Point;
use crate::scene::Scene;
use crate::world::World;

impl Simulated for Arc<BuildNetwork> {
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let half = world.scene.fires(Fault::HalfNetwork, &of.entity);
        let made = match half {
            true => part_of_network(&mut world.scene, &of.entity),
            false => Made::Whole,
        };
        if let Some(holder) = world.networks.build(of.alloc, self, made) {
            let why = format!("{} has something of the network of {holder}", of.alloc);
            world.scene.broken = Some(Violation::new(Property::NetworkHasOneHolder, why));
        }
        match half {
            true => Err(Failure::recoverable("the rules cannot be made")),
            false => Ok(HookOutput {
                network: world.networks.found(of.alloc, self).map(Box::new),
                ..HookOutput::default()
            }),
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
        match world.networks.remove(of.alloc) {
            true => Ok(HookOutput::default()),
            false => Err(Failure::recoverable("the link is busy")),
        }
    }

    fn check(&self, checker: &mut Checker, world: &World, _: &Agent, of: &Of<'_>) -> Verdict {
        checker.network_with_live_process_is_not_removed(world, of.alloc)
    }
}

/// How much is there of a network that is made by half.
fn part_of_network(scene: &mut Scene, entity: &str) -> Made {
    match scene.choices.either(Point::BareNetwork, entity) {
        true => Made::Bare,
        false => Made::Half,
    }
}

/// The agent dies while this is under way. Whether it leaves a part of a network.
pub(crate) fn leaves_half_a_network(
    scene: &mut Scene,
    networks: &mut Networks,
    asked: &Asked,
) -> bool {
    let HookWork::BuildNetwork(work) = &asked.work else {
        return false;
    };
    let name = scene.names.alloc(asked.alloc);
    // What is there stays as it is.
    let whole = (networks.get(asked.alloc)).is_some_and(|network| !network.half);
    if whole || !scene.fires(Fault::CutNetwork, &name) {
        return false;
    }
    let made = part_of_network(scene, &name);
    if let Some(holder) = networks.build(asked.alloc, work, made) {
        let why = format!("{name} has something of the network of {holder}");
        scene.violated("network_has_one_holder", why);
    }
    true
}
