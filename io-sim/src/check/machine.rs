//! What is known of the machine, and what tasks get of it.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::TaskConfig;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::model::volume::VolumeMount;

use super::{Checker, Property, Verdict};
use crate::engine;
use crate::machine::{DRIVER, FACT, reservation};
use crate::world::World;

/// One device of the machine.
type OneDevice = (GroupId, String);

/// What the checks remember of devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    /// Allocations whose devices were looked at when they were placed.
    seen: BTreeSet<AllocId>,
    /// Whether all that a life of the agent began with was seen.
    agent_restored: bool,
}

fn each(devices: &[AssignedDevices]) -> impl Iterator<Item = OneDevice> {
    let one = |assigned: &AssignedDevices| {
        let group = assigned.group.clone();
        let ids = assigned.ids.clone().into_iter();
        ids.map(move |id| (group.clone(), id)).collect::<Vec<_>>()
    };
    devices.iter().flat_map(one)
}

fn of_task<'a>(alloc: &'a AllocRunner, key: &TaskKey) -> Vec<&'a AssignedDevices> {
    let devices = alloc.record().devices.iter();
    devices
        .filter(|one| one.task == key.task.as_str())
        .collect()
}

impl Devices {
    /// What the next life begins with was placed by this one.
    pub(super) fn agent_died(&mut self) {
        self.agent_restored = false;
    }
}

impl Checker {
    /// Everything was looked at: what comes from now on is new.
    pub(super) fn all_allocs_observed(&mut self) {
        self.devices.agent_restored = true;
    }

    /// What a task starts with.
    pub(super) fn devices_of_a_start(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        let devices: Vec<_> = of_task(alloc, key).into_iter().cloned().collect();
        if devices.is_empty() {
            return Ok(());
        }
        let task = alloc.task(&key.task).map(|task| task.spec().task());
        let volumes = task.map_or(&[][..], |task| &task.volume_mounts);
        self.start_has_its_devices(key, &devices, volumes, config)
    }

    /// Whatever its plugin reserved, at each start, also in a later life of the agent.
    fn start_has_its_devices(
        &mut self,
        key: &TaskKey,
        devices: &[AssignedDevices],
        volumes: &[VolumeMount],
        config: &TaskConfig,
    ) -> Verdict {
        let wanted = reservation(devices);
        // A container gets its volumes beside them.
        let mounts = config.reserved.mounts.iter();
        let mounts =
            mounts.filter(|mount| volumes.iter().all(|it| it.destination != mount.task_path));
        let has = mounts.eq(&wanted.mounts)
            && config.reserved.nodes == wanted.nodes
            && config.device_env == wanted.env
            && (wanted.env.iter()).all(|(name, value)| config.env.get(name) == Some(value));
        self.holds(Property::StartHasItsDevices, has, || {
            format!("{key:?} {:?} instead of {wanted:?}", config.reserved)
        })
    }

    /// Plugins are asked for what the allocation holds for this task, and for nothing else.
    pub(crate) fn reserved_device_is_held(
        &mut self,
        agent: &Agent,
        key: &TaskKey,
        devices: &[AssignedDevices],
    ) -> Verdict {
        let alloc = agent.view().alloc(key.alloc);
        let held = alloc.map(|alloc| of_task(alloc, key)).unwrap_or_default();
        let same = held.into_iter().eq(devices);
        self.holds(Property::ReservedDeviceIsHeld, same, || {
            format!("{devices:?}")
        })
    }

    /// What a new allocation was given.
    pub(super) fn placed(&mut self, world: &World, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        if !self.devices.seen.insert(alloc.record().id) || !self.devices.agent_restored {
            return Ok(());
        }
        if alloc.record().of_servers {
            // They placed it by what the node told them.
            return Ok(());
        }
        let known = agent.view().is_fingerprinted();
        self.holds(Property::NoPlacementBeforeFingerprints, known, String::new)?;
        self.placed_alloc_has_its_volumes(world, alloc)?;
        self.only_healthy_device_is_assigned(agent, alloc)
    }

    /// Only an existing, healthy device is assigned.
    fn only_healthy_device_is_assigned(&mut self, agent: &Agent, alloc: &AllocRunner) -> Verdict {
        let devices = &alloc.record().devices;
        if devices.is_empty() {
            return Ok(());
        }
        let offers = agent.view().machine().devices().offers();
        let works = |(group, id): &OneDevice| {
            let offer = offers.iter().find(|(_, of, _)| *of == group);
            let device = offer.and_then(|(_, _, group)| group.devices.get(id));
            device.is_some_and(|device| device.healthy)
        };
        let ill = each(devices).find(|one| !works(one));
        self.holds(Property::OnlyHealthyDeviceIsAssigned, ill.is_none(), || {
            format!("{ill:?}")
        })
    }

    /// At rest what is known of the machine is what is true of it.
    pub(super) fn node_attributes_match_fingerprints(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let node = agent.view().node();
        let machine = agent.view().machine();
        if machine.drivers().known().next().is_none() {
            return Ok(());
        }
        let last = world.machine.driver_attribute();
        let of_driver = format!("driver.{DRIVER}.");
        let mut reported = node
            .attributes
            .keys()
            .filter(|key| key.starts_with(&of_driver));
        let truly = (reported.next(), reported.next()) == (Some(&last), None)
            && node
                .drivers
                .get(DRIVER)
                .is_some_and(|driver| driver.healthy == world.machine.healthy);
        self.holds(Property::DriverStateMatchesLastFingerprint, truly, || {
            format!("{last}: {:?} {:?}", node.attributes, node.drivers)
        })?;
        if let Some(known) = node.drivers.get(engine::DRIVER) {
            let truly = known.healthy != world.engine.is_away();
            self.holds(Property::EngineIsKnown, truly, || format!("{known:?}"))?;
        }
        let found = node
            .attributes
            .get(FACT)
            .is_some_and(|value| value == "true");
        self.holds(Property::NodeAttributesMatchFingerprints, found, || {
            format!("{:?}", node.attributes)
        })?;
        for (name, true_ones) in &world.machine.devices {
            let mut plugins = machine.devices().plugins();
            let plugin = plugins.find(|(known, _)| &***known == *name);
            let groups = plugin
                .into_iter()
                .flat_map(|(_, plugin)| plugin.groups().values());
            let known: BTreeMap<String, bool> = groups
                .flat_map(|group| &group.devices)
                .map(|(id, device)| (id.clone(), device.healthy))
                .collect();
            self.holds(
                Property::NodeDevicesMatchPluginReports,
                known == *true_ones,
                || format!("{name}: {known:?} and not {true_ones:?}"),
            )?;
        }
        Ok(())
    }

    /// What a driver says of anything but itself is not believed.
    pub(super) fn driver_sets_only_own_attributes(&mut self, agent: &Agent) -> Verdict {
        let odd = agent.view().node().attributes.contains_key("kernel.name");
        self.holds(Property::DriverSetsOnlyOwnAttributes, !odd, String::new)
    }

    /// Situations with devices that searching has to reach.
    pub(super) fn probe_device_situations(&mut self, agent: &Agent) {
        let view = agent.view();
        let lies = |(_, plugin): (_, &drover_core::managers::device::Plugin)| {
            plugin
                .last_error()
                .is_some_and(|why| why.contains("cannot be believed"))
        };
        let lied = view.machine().devices().plugins().any(lies);
        self.sometimes(Property::SometimesPluginReportIsInvalid, lied);
        let waits = !view.is_fingerprinted() && view.jobs().next().is_some();
        self.sometimes(Property::SometimesNodeIsNotFingerprinted, waits);
    }
}
