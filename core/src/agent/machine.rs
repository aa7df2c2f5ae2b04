//! What is known of this machine: its fingerprints, its drivers, its devices, and what people
//! should know of them.
//!
//! Three managers write what they know into the node: the fingerprint manager asks probes, gets an
//! answer or none, and asks again; the driver manager and the device manager each listen to
//! *streams* of reports ([`crate::managers::stream`]). Every question and every stream has a number; a report
//! with another number is stale.
//!
//! - **Nothing is placed and no task is prepared** until the essential probes have answered,
//!   failed, or taken too long once: constraints on what is not known yet would be judged wrongly.
//!   Nothing is collected either, because what ended may have to be replaced. Probes that start
//!   programs or ask other hosts are not essential.
//! - **A report replaces the one before it, whole**; what is missing from it is gone. A fingerprint
//!   of devices that cannot be true is refused whole, and its plugin has no devices until it
//!   reports something better. A driver may report `driver.…` attributes and no others.
//! - **A stream that worked for a minute** is opened again at once when it ends, and the driver
//!   counts as unhealthy only when that fails; so a plugin that is replaced does not make its node
//!   flap.
//! - **Devices** are chosen when an allocation is placed ([`crate::device::choose`]), stand in its
//!   record, and are held, as ports are, until nothing of it is left. The prestart hook `devices`
//!   asks the plugins to reserve them; what they answer (variables, mounts, device nodes) is in the
//!   task's record, so that every start has it, also in the agent's next life.
//! - **A plugin's name** is known only when it runs. So each program is looked for by a probe of
//!   its own (`plugin FILE`); what it finds is listened to from then on
//!   (`Machine::watch_found_plugins`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::dir_usage::DirUsage;
use super::disk_pressure::DiskPressure;
use crate::cx::Cx;
use crate::fingerprint::PluginKind;
use crate::input::NodeInput;
use crate::managers::Changed;
use crate::managers::device::Devices;
use crate::managers::driver::Drivers;
use crate::managers::fingerprint::Fingerprints;
use crate::managers::volumes::Volumes;
use crate::managers::zones::Zones;
use crate::model::node::{Node, NodeEvent};
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::time::Instant;

/// How many events of a node are kept; older ones are dropped, as in Nomad.
const MAX_EVENTS: usize = 10;

/// The machine, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// What was known before anybody was asked.
    first: BTreeMap<String, String>,
    /// The network modes that were known before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    first_modes: BTreeSet<String>,
    fingerprints: Fingerprints,
    drivers: Drivers,
    devices: Devices,
    /// What each probe found that looks for a plugin.
    plugins: BTreeMap<String, (PluginKind, String)>,
    events: VecDeque<NodeEvent>,
    /// How full its disk is.
    #[serde(skip_serializing_if = "DiskPressure::is_idle")]
    pub(super) disk_pressure: DiskPressure,
    /// How much the directories of allocations take.
    #[serde(skip_serializing_if = "DirUsage::is_idle")]
    pub(super) dir_usage: DirUsage,
    /// The time zones of periodic jobs.
    #[serde(skip_serializing_if = "Zones::is_empty")]
    pub(super) zones: Zones,
    /// Its volumes.
    #[serde(skip_serializing_if = "Volumes::is_empty")]
    pub(super) volumes: Volumes,
}

/// What a report on the machine means for the rest of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineChange {
    /// Whether something that people can see changed.
    pub(super) visible: bool,
    /// Whether jobs are to be evaluated that could not be placed.
    pub(super) places: bool,
    /// Whether enough is known only now for anything to be placed.
    pub(super) fingerprinted: bool,
    /// Whether the local time of a zone is known better.
    pub(super) zones: bool,
}

impl Machine {
    /// The machine of which only what the configuration says is known.
    pub(super) fn new(cx: &mut Cx<'_>) -> Machine {
        let fingerprints = Fingerprints::new(&cx.config.probes);
        cx.shared.fingerprint_pending = !fingerprints.is_fingerprinted();
        Machine {
            first: cx.config.node.attributes.clone(),
            first_modes: cx.config.node.network_modes.clone(),
            fingerprints,
            drivers: Drivers::new(&cx.config.drivers),
            devices: Devices::new(&cx.config.device_plugins),
            plugins: BTreeMap::new(),
            events: VecDeque::new(),
            disk_pressure: DiskPressure::default(),
            dir_usage: DirUsage::default(),
            zones: Zones::default(),
            volumes: Volumes::new(&cx.config.node.host_volumes),
        }
    }

    /// The probes.
    pub fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }

    /// The drivers.
    pub fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// The devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The volumes.
    pub fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// What people should know, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &NodeEvent> {
        self.events.iter()
    }

    /// Something that people should know; the oldest is forgotten for it.
    pub(super) fn note(&mut self, event: NodeEvent) {
        self.events.push_back(event);
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }

    /// Whether somebody's first answer is still awaited.
    pub fn is_learning(&self) -> bool {
        let drivers = self.drivers.awaited().chain(self.devices.awaited());
        self.fingerprints.awaited().chain(drivers).next().is_some()
    }

    /// Whether somebody of whom nothing was heard yet may still tell of facts, drivers or devices.
    /// Each has a deadline, so that this comes to an end.
    pub fn awaits_first_report(&self) -> bool {
        !self.fingerprints.all_reported()
            || self.drivers.awaits_first_report()
            || self.devices.awaits_first_report()
    }

    /// Whether all is known that a scheduler reads: what the machine has, its drivers and its devices. Names that
    /// it has elsewhere may still come.
    pub(super) fn is_known(&self) -> bool {
        self.fingerprints.is_fingerprinted()
            && self.fingerprints.plugins_reported()
            && !self.drivers.awaits_first_report()
            && !self.devices.awaits_first_report()
    }

    pub(super) fn on_input(&mut self, cx: &mut Cx<'_>, input: NodeInput) -> MachineChange {
        let op = input.op();
        let operations = &mut cx.shared.operations;
        let awaited = match &input {
            NodeInput::Driver { .. } | NodeInput::Devices { .. } => {
                operations.reported(&Owner::Machine, op)
            }
            NodeInput::Probed { .. }
            | NodeInput::DiskUsage { .. }
            | NodeInput::DirUsage { .. }
            | NodeInput::TimeZone { .. }
            | NodeInput::Volume { .. } => operations.answered(&Owner::Machine, op, true).is_some(),
            // That is a job's.
            NodeInput::Image { .. } => false,
        };
        if !awaited {
            cx.count_stale();
            return self.changed(cx, Changed::default());
        }
        let mut zones = false;
        let changed = match input {
            NodeInput::Probed { op, probe, result } => {
                self.fingerprints.on_answer(cx, &probe, op, result)
            }
            NodeInput::Driver { op, driver, report } => {
                self.drivers.on_report(cx, &driver, op, report)
            }
            NodeInput::Devices { op, plugin, report } => {
                self.devices.on_report(cx, &plugin, op, report)
            }
            NodeInput::DiskUsage { op, result } => {
                self.disk_pressure.on_answer(cx, op, result);
                Changed::default()
            }
            NodeInput::DirUsage { op, result } => {
                self.dir_usage.on_answer(cx, op, result);
                Changed::default()
            }
            NodeInput::TimeZone { op, zone, result } => {
                zones = self.zones.on_answer(cx, &zone, op, result);
                Changed::default()
            }
            NodeInput::Volume { op, volume, result } => {
                self.volumes.on_answer(cx, volume, op, result)
            }
            NodeInput::Image { .. } => Changed::default(),
        };
        let mut report = self.changed(cx, changed);
        report.zones = zones;
        report
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>) -> MachineChange {
        self.ask(cx);
        self.disk_pressure.handle_timeout(cx.now.at);
        self.dir_usage.handle_timeout(cx.now.at);
        self.changed(cx, Changed::default())
    }

    /// The answer to `op` did not come in time.
    pub(super) fn on_overdue(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        purpose: &Purpose,
    ) -> MachineChange {
        let mut zones = false;
        let changed = match purpose {
            Purpose::Probe(name) => {
                let failure = Failure::recoverable("it does not answer");
                self.fingerprints.on_answer(cx, name, op, Err(failure))
            }
            Purpose::Driver(name) => self.drivers.on_overdue(cx, name, op),
            Purpose::Devices(name) => self.devices.on_overdue(cx, name, op),
            Purpose::DiskUsage => {
                self.disk_pressure.measure_again();
                Changed::default()
            }
            Purpose::DirUsage => {
                self.dir_usage.on_overdue(cx);
                Changed::default()
            }
            Purpose::TimeZone(zone) => {
                let failure = Failure::recoverable("nobody answers");
                zones = self.zones.on_answer(cx, zone, op, Err(failure));
                Changed::default()
            }
            Purpose::Volume(volume) => {
                self.volumes.on_overdue(cx, *volume, op);
                Changed::default()
            }
            Purpose::Start
            | Purpose::Recover
            | Purpose::Stop
            | Purpose::Signal
            | Purpose::Exec
            | Purpose::Session
            | Purpose::Destroy
            | Purpose::Hook
            | Purpose::MoveDisk
            | Purpose::Templates
            | Purpose::Check
            | Purpose::Call(_)
            | Purpose::Image => Changed::default(),
        };
        let mut report = self.changed(cx, changed);
        report.zones = zones;
        report
    }

    /// Each manager asks what is due.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        self.fingerprints.handle_timeout(cx);
        self.drivers.handle_timeout(cx);
        self.devices.handle_timeout(cx);
        self.zones.handle_timeout(cx);
    }

    /// Plugins that were found are listened to from now on. A name that is taken stays whose it is.
    fn watch_found_plugins(&mut self, cx: &Cx<'_>, changed: &mut Changed) {
        for (probe, plugin) in self.fingerprints.plugins() {
            let found = (plugin.kind, plugin.name.clone());
            if self.plugins.get(probe) == Some(&found) {
                continue;
            }
            self.plugins.insert(probe.to_owned(), found);
            let added = match plugin.kind {
                PluginKind::Driver => self.drivers.add(&plugin.name),
                PluginKind::Device => self.devices.add(&plugin.name),
            };
            if added {
                continue;
            }
            let message = format!(
                "The plugin name {:?}, found by the probe {probe:?}, is taken",
                plugin.name
            );
            changed.events.push(NodeEvent {
                time: cx.now.wall,
                subsystem: "Plugin".to_owned(),
                message,
                details: [("plugin".to_owned(), plugin.name.clone())].into(),
            });
        }
    }

    fn changed(&mut self, cx: &mut Cx<'_>, mut changed: Changed) -> MachineChange {
        if changed.node {
            self.watch_found_plugins(cx, &mut changed);
        }
        // News may have asked for a stream or a probe at once.
        if self.deadline().is_some_and(|at| at <= cx.now.at) {
            self.ask(cx);
        }
        let visible = changed.node || !changed.events.is_empty();
        for event in changed.events {
            self.note(event);
        }
        let fingerprinted = cx.shared.fingerprint_pending && self.fingerprints.is_fingerprinted();
        cx.shared.fingerprint_pending &= !fingerprinted;
        MachineChange {
            visible,
            places: changed.node,
            fingerprinted,
            zones: false,
        }
    }

    /// The operations whose answers are awaited, of each who was asked.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Op> {
        let probes = self.fingerprints.awaited();
        probes
            .chain(self.drivers.awaited())
            .chain(self.devices.awaited())
            .chain(self.disk_pressure.awaited())
            .chain(self.dir_usage.awaited())
            .chain(self.zones.awaited())
            .chain(self.volumes.awaited())
    }

    /// When [`Machine::handle_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let probes = self.fingerprints.deadline();
        let drivers = self.drivers.deadline();
        let devices = self.devices.deadline();
        let disk_pressure = self.disk_pressure.deadline();
        let dir_usage = self.dir_usage.deadline();
        let zones = self.zones.deadline();
        [probes, drivers, devices, disk_pressure, dir_usage, zones]
            .into_iter()
            .flatten()
            .min()
    }

    /// Writes down what is known now. What was known and is not any more goes.
    pub(super) fn describe(&self, node: &mut Node) {
        let mut attributes = self.first.clone();
        let of_probes = self.fingerprints.attributes();
        attributes.extend(of_probes.map(|(key, value)| (key.clone(), value.clone())));
        for (name, info, of_driver) in self.drivers.known() {
            let own = format!("driver.{name}");
            let below = format!("{own}.");
            attributes.retain(|key, _| *key != own && !key.starts_with(&below));
            attributes.extend(of_driver.iter().map(|(k, v)| (k.clone(), v.clone())));
            if info.detected {
                attributes.insert(own, "1".to_owned());
            }
            node.drivers.insert(name.to_string(), info.clone());
        }
        node.attributes = attributes;
        node.host_volumes = self.volumes.on_node();
        node.network_modes = self.fingerprints.network_modes();
        node.network_modes.extend(self.first_modes.iter().cloned());
    }
}
