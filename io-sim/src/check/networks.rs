//! Networks of allocations: there before each start, gone after the last end, and nobody else's.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::TaskConfig;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::network::NetworkMode;
use drover_core::model::task::Stage;

use super::history::{alive_in, saved_alloc};
use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// A task starts in the network that its job asks for, which is there, whole, and has the address that the task
    /// is told.
    pub(super) fn start_has_its_network(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        let group = alloc.job().group(alloc.record().group.as_str());
        let asked = group.and_then(|group| group.networks.first());
        let mode = asked.map_or(NetworkMode::Host, |network| network.mode());
        let there = world.networks.get(key.alloc);
        let told = config.network.as_ref();
        let enters = told.is_some_and(|network| network.own);
        // What comes after the others is started though its network could not be made again: then the driver refuses.
        let stage = alloc.task(&key.task).map(|task| task.spec().stage());
        let is_last = stage == Some(Stage::Poststop);
        let holds = match (mode.is_own(), there) {
            (false, _) => !enters,
            // What somebody else removed keeps its tasks from starting.
            (true, None) => (is_last || world.networks.is_taken(key.alloc)) && enters,
            (true, Some(there)) => {
                let address = told.and_then(|network| network.address);
                // A half of a network may have no address yet.
                let whole = !there.half && there.address == address;
                enters && (whole || (is_last && there.half))
            }
        };
        self.holds(Property::StartHasItsNetwork, holds, || {
            format!("{key:?} of mode {mode} is told {told:?}, and there is {there:?}")
        })
    }

    /// What is made for an allocation can be found by its id after a crash.
    pub(crate) fn network_is_built_after_alloc_is_saved(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let saved = saved_alloc(world, alloc);
        let again = world.networks.get(alloc);
        self.sometimes(Property::SometimesNetworkIsFoundAgain, again.is_some());
        let half = again.is_some_and(|network| network.half);
        self.sometimes(Property::SometimesHalfNetworkIsCompleted, half);
        self.holds(
            Property::NetworkIsBuiltAfterAllocIsSaved,
            saved.is_some(),
            || format!("{alloc}"),
        )
    }

    /// A network goes after the last process that uses it.
    pub(crate) fn network_with_live_process_is_not_removed(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let alive = alive_in(world, alloc);
        let name = alive.map(|process| process.name.to_string());
        let over = saved_alloc(world, alloc).is_none_or(|alloc| alloc.finished);
        self.holds(
            Property::NetworkWithLiveProcessIsNotRemoved,
            name.is_none() && over,
            || format!("{name:?} of {alloc}, saved as over: {over}"),
        )
    }

    /// Every network belongs to an allocation that is not gone.
    pub(super) fn every_network_has_living_alloc(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let lives = |id: &AllocId| agent.view().alloc(*id).is_some_and(|it| !it.is_gone());
        let left = world.networks.owners().find(|id| !lives(id));
        self.holds(Property::EveryNetworkHasLivingAlloc, left.is_none(), || {
            format!("{left:?}")
        })
    }
}
