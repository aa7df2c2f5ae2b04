//! What the machine is and has: probes, the driver's condition, and plugins with devices.
//!
//! What is true is kept apart from what was said of it: news come late, come of streams that
//! nobody listens to any more, or cannot be believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::claims::resources::Amounts;
use drover_core::config::{Config, Preemption, ProbeConfig, Retention, RoomLimits};
use drover_core::device::said::{SaidAttribute, SaidDevice, SaidGroup};
use drover_core::effect::NodeEffect;
use drover_core::fingerprint::{Fingerprint, Plugin, PluginKind, Resources};
use drover_core::input::{
    DeviceNews, DriverFingerprint, DriverHealth, DriverNews, HookOutput, NodeInput, Room,
};
use drover_core::model::device::{AssignedDevices, DeviceNode, Mount};
use drover_core::model::processors::{Core, Processors};
use drover_core::op::{Failure, Op};
use drover_core::time::{Instant, Span};

use crate::faults::Fault;
use crate::inbox::Source;
use crate::point::Point;
use crate::world::{Later, World};

/// The driver whose condition is listened to.
pub(crate) const DRIVER: &str = "mock_driver";
/// The plugins: what both announce, and how many devices of it.
const PLUGINS: [(&str, &str, usize); 2] = [("acme", "fpga", 3), ("bolt", "gpu", 2)];
/// The probe that finds the last of the plugins; the others are configured.
const FINDER: &str = "bolt.so";
/// How many cores tasks may have for themselves on a machine with bounded resources: 1 to this.
pub(crate) const CORES: u32 = 4;
/// The fact that the essential probe finds.
pub(crate) const FACT: &str = "sim.fact";

/// The plugins.
pub(crate) fn plugins() -> impl Iterator<Item = &'static str> {
    PLUGINS.iter().map(|(name, ..)| *name)
}

/// These settings, of an agent that listens to all of a simulated machine.
pub fn listening(mut config: Config) -> Config {
    let probe = |name: &str, essential: bool, every: Option<Span>| ProbeConfig {
        name: name.into(),
        every,
        essential,
    };
    config.probes = vec![
        probe(FINDER, false, None),
        probe("cloud", false, None),
        probe("host", true, Some(Span::secs(900))),
    ];
    config.drivers = vec![DRIVER.into()];
    config.device_plugins = vec![PLUGINS[0].0.into()];
    config.kept_children = KEPT_CHILDREN;
    config.kept_records = KEPT_RECORDS;
    // Longer than the peace at the end, in which nothing is to change.
    config.retention = Some(Retention {
        jobs: Span::secs(100 * 3600),
        ..Retention::default()
    });
    config.preemption = Preemption {
        service: true,
        batch: true,
        system: true,
        sysbatch: true,
    };
    config.room = Some(RoomLimits {
        interval: Span::secs(1000),
        ..RoomLimits::default()
    });
    config
}

/// How many children of a job are kept: few, so that it matters.
const KEPT_CHILDREN: usize = 3;

/// How many records of collected allocations are kept: few, so that it matters.
const KEPT_RECORDS: usize = 4;

/// How many percent of the disk each allocation's directory takes.
const SHARE: u8 = 6;

/// How many percent others take when they fill it.
const CROWD: u8 = 75;

/// What is true of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Who is listened to, by name.
    streams: BTreeMap<Arc<str>, Op>,
    /// Whether the driver works.
    pub(crate) healthy: bool,
    /// Changes with each fingerprint of the driver, so that old ones can be told.
    pub(crate) generation: u32,
    /// Of each plugin its devices, and whether they work.
    pub(crate) devices: BTreeMap<&'static str, BTreeMap<String, bool>>,
    /// Whether others fill most of the disk.
    crowded: bool,
    /// What it has of counted resources, if that is bounded.
    pub(crate) has: Option<Amounts>,
}

impl Default for Machine {
    fn default() -> Machine {
        let whole = |(name, _, count): &(&'static str, &str, usize)| {
            let ids = (0..*count).map(|number| (format!("d{number}"), true));
            (*name, ids.collect())
        };
        Machine {
            streams: BTreeMap::new(),
            healthy: true,
            generation: 0,
            devices: PLUGINS.iter().map(whole).collect(),
            crowded: false,
            has: None,
        }
    }
}

impl Machine {
    /// What the driver would say now.
    fn driver(&self) -> DriverFingerprint {
        let health = if self.healthy {
            DriverHealth::Healthy
        } else {
            DriverHealth::Unhealthy
        };
        DriverFingerprint {
            health,
            description: String::new(),
            attributes: [self.attribute()].into(),
        }
    }

    /// An attribute of the driver: its name changes, so that the one before has to vanish.
    fn attribute(&self) -> (String, SaidAttribute) {
        let value = SaidAttribute {
            bool: Some(true),
            ..SaidAttribute::default()
        };
        (format!("driver.{DRIVER}.g{}", self.generation), value)
    }

    /// The name of the driver's attribute now.
    pub(crate) fn driver_attribute(&self) -> String {
        self.attribute().0
    }

    /// What a plugin would say now.
    pub(crate) fn groups(&self, plugin: &str) -> Vec<SaidGroup> {
        let of_plugin = PLUGINS.iter().filter(|(name, ..)| *name == plugin);
        let group = |(name, kind, _): &(&'static str, &str, usize)| {
            let devices = self.devices.get(name).into_iter().flatten();
            let device = |(id, healthy): (&String, &bool)| SaidDevice {
                id: id.clone(),
                healthy: *healthy,
                ..SaidDevice::default()
            };
            SaidGroup {
                vendor: (*name).to_owned(),
                kind: (*kind).to_owned(),
                name: "one".to_owned(),
                devices: devices.map(device).collect(),
                attributes: BTreeMap::new(),
            }
        };
        of_plugin.map(group).collect()
    }

    /// Who speaks, with the stream's number.
    pub(crate) fn speakers(&self) -> Vec<(Arc<str>, Op)> {
        let speakers = self.streams.iter();
        speakers.map(|(name, op)| (name.clone(), *op)).collect()
    }

    pub(crate) fn agent_died(&mut self) {
        self.streams.clear();
    }
}

/// What a probe finds on a machine with so much of each. Of its cores the first is reserved.
fn resources(has: Amounts) -> Resources {
    let core = |id: u32| Core {
        id,
        disabled: id == 0,
        ..Core::default()
    };
    Resources {
        processors: Some(Processors {
            total_compute: has.cpu,
            usable_compute: has.cpu,
            cores: (0..=CORES).map(core).collect(),
        }),
        memory_mb: Some(has.memory),
        disk_mb: Some(has.disk),
        ..Resources::default()
    }
}

/// What the plugin of these devices wants their task to be given.
pub(crate) fn reservation(devices: &[AssignedDevices]) -> HookOutput {
    let mut given = HookOutput::default();
    for one in devices {
        let name = format!("DEVICES_{}", one.group.vendor);
        given.env.insert(name, one.ids.join(","));
        for id in &one.ids {
            let path = format!("/dev/{}-{id}", one.group.vendor);
            given.nodes.push(DeviceNode {
                task_path: path.clone(),
                host_path: path,
                permissions: "rw".to_owned(),
            });
        }
        given.mounts.push(Mount {
            task_path: format!("/opt/{}", one.group.vendor),
            host_path: "/opt/driver".to_owned(),
            read_only: true,
        });
    }
    given
}

impl World {
    /// How full the disk is, in percent: each allocation's directory takes its share.
    pub(crate) fn fullness(&self) -> u8 {
        let own = u8::try_from(self.dirs.allocs.len()).unwrap_or(u8::MAX);
        let others = if self.machine.crowded { CROWD } else { 0 };
        others.saturating_add(own.saturating_mul(SHARE)).min(100)
    }

    /// Begins what is asked about the machine.
    pub(crate) fn look(&mut self, effect: &NodeEffect) {
        let life = self.life;
        match effect {
            NodeEffect::Probe { op, probe } => {
                if self.strikes(Fault::HangProbe, probe) {
                    return;
                }
                let result = if self.strikes(Fault::FailProbe, probe) {
                    Err(Failure::recoverable("the probe failed"))
                } else {
                    let fact = (FACT.to_owned(), "true".to_owned());
                    let known = (&**probe == "host").then_some(fact);
                    let plugin = || Plugin {
                        kind: PluginKind::Device,
                        name: PLUGINS[1].0.to_owned(),
                        version: "0.1.0".to_owned(),
                    };
                    let found = (&**probe == FINDER).then(plugin);
                    let has = self.machine.has.filter(|_| &**probe == "host");
                    Ok(Fingerprint {
                        resources: has.map(resources).unwrap_or_default(),
                        attributes: known.into_iter().collect(),
                        plugins: found.into_iter().collect(),
                        ..Fingerprint::default()
                    })
                };
                let input = NodeInput::Probed {
                    op: *op,
                    probe: probe.to_string(),
                    result,
                };
                let patience = self.patience.probe;
                self.answer(life, *op, probe, patience, Input::Node(input));
            }
            NodeEffect::MeasureRoom { op } => {
                let disk: Arc<str> = Arc::from("disk");
                if self.strikes(Fault::HangProbe, &disk) {
                    return;
                }
                let result = if self.strikes(Fault::FailProbe, &disk) {
                    Err(Failure::recoverable("the disk does not say"))
                } else {
                    self.machine.crowded |= self.strikes(Fault::CrowdedDisk, &disk);
                    Ok(Room {
                        disk_percent: self.fullness(),
                        inode_percent: 0,
                    })
                };
                let input = NodeInput::Room { op: *op, result };
                let patience = self.patience.probe;
                self.answer(life, *op, &disk, patience, Input::Node(input));
            }
            NodeEffect::WatchDriver { op, driver: name }
            | NodeEffect::WatchDevices { op, plugin: name } => {
                self.machine.streams.insert(name.clone(), *op);
                if self.strikes(Fault::HangNews, name) {
                    self.machine.streams.remove(name);
                    return;
                }
                let delay = self.latency(name, self.patience.first_news);
                self.news(name, *op, delay);
            }
        }
    }

    /// What is true of `name`, said on this stream.
    fn news(&mut self, name: &Arc<str>, op: Op, delay: Span) {
        let input = if &**name == DRIVER {
            self.driver_says(op, DriverNews::Fingerprint(self.machine.driver()))
        } else {
            let groups = self.machine.groups(name);
            self.plugin_says(name, op, DeviceNews::Devices(groups))
        };
        self.say_news(name, op, self.at + delay, input);
    }

    fn driver_says(&self, op: Op, news: DriverNews) -> NodeInput {
        NodeInput::Driver {
            op,
            driver: DRIVER.to_owned(),
            news,
        }
    }

    fn plugin_says(&self, name: &str, op: Op, news: DeviceNews) -> NodeInput {
        NodeInput::Devices {
            op,
            plugin: name.to_owned(),
            news,
        }
    }

    fn say_news(&mut self, name: &Arc<str>, op: Op, at: Instant, input: NodeInput) {
        self.say(Source::Stream(op), at, name, Input::Node(input));
    }

    /// The driver's condition changes, and whoever listens is told.
    pub(crate) fn driver_is(&mut self, healthy: bool) {
        self.machine.healthy = healthy;
        self.machine.generation += 1;
        self.tell_anew(DRIVER);
    }

    fn tell_anew(&mut self, name: &str) {
        let speaker = self.machine.streams.get_key_value(name);
        if let Some((name, op)) = speaker.map(|(name, op)| (name.clone(), *op)) {
            self.news(&name, op, Span::ZERO);
        }
    }

    /// A device breaks, works again, goes, or comes back.
    pub(crate) fn device_changes(&mut self) {
        let plugin = PLUGINS[self.choices.below(PLUGINS.len(), Point::Plugin, "devices")].0;
        let which = format!("d{}", self.choices.below(3, Point::Device, "devices"));
        let gone = self.choices.either(Point::Gone, "devices");
        let Some(devices) = self.machine.devices.get_mut(plugin) else {
            return;
        };
        match devices.remove(&which) {
            Some(_) if gone => {}
            Some(healthy) => drop(devices.insert(which, !healthy)),
            None => drop(devices.insert(which, true)),
        }
        self.tell_anew(plugin);
    }

    /// A stream ends, though somebody listens; and may say what was never true afterwards.
    pub(crate) fn a_stream_ends(&mut self) {
        let Some((name, op)) = self.one_speaker() else {
            return;
        };
        self.machine.streams.remove(&name);
        let why = "the plugin is gone".to_owned();
        let late = self.strikes(Fault::LateNews, &name);
        let (ended, lie) = if &*name == DRIVER {
            let lie = DriverNews::Failed("nobody listens".to_owned());
            (
                self.driver_says(op, DriverNews::Ended(why)),
                self.driver_says(op, lie),
            )
        } else {
            (
                self.plugin_says(&name, op, DeviceNews::Ended(why)),
                self.plugin_says(&name, op, DeviceNews::Devices(Vec::new())),
            )
        };
        self.say_news(&name, op, self.at, ended);
        if late {
            self.say_news(&name, op, self.at + Span::secs(1), lie);
        }
    }

    /// Somebody says what cannot be.
    pub(crate) fn odd_news(&mut self) {
        let Some((name, op)) = self.one_speaker() else {
            return;
        };
        let input = if &*name == DRIVER {
            let mut said = self.machine.driver();
            let odd = SaidAttribute {
                int: Some(1),
                ..SaidAttribute::default()
            };
            said.attributes.insert("kernel.name".to_owned(), odd);
            self.driver_says(op, DriverNews::Fingerprint(said))
        } else {
            let mut groups = self.machine.groups(&name);
            let other = PLUGINS.iter().find(|(other, ..)| *other != &*name);
            match self.choices.below(3, Point::Odd, &name) {
                0 => groups.extend(groups.clone()),
                1 => groups.push(SaidGroup::default()),
                _ => groups.extend(
                    other
                        .into_iter()
                        .flat_map(|(other, ..)| self.machine.groups(other)),
                ),
            }
            self.plugin_says(&name, op, DeviceNews::Devices(groups))
        };
        self.say_news(&name, op, self.at, input);
    }

    fn one_speaker(&mut self) -> Option<(Arc<str>, Op)> {
        let speakers = self.machine.speakers();
        let which = self
            .choices
            .below(speakers.len().max(1), Point::Speaker, "machine");
        speakers.get(which).cloned()
    }

    /// Everything works again, and whoever is listened to says so.
    pub(crate) fn machine_is_whole(&mut self) {
        (self.later).retain(|_, due| !matches!(due.what, Later::Driver { .. }));
        let streams = core::mem::take(&mut self.machine.streams);
        let generation = self.machine.generation + 1;
        self.machine = Machine {
            streams,
            generation,
            ..Machine::default()
        };
        for (name, op) in self.machine.speakers() {
            self.news(&name, op, Span::ZERO);
        }
    }
}
