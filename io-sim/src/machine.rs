//! What the machine is and has: probes, the driver's condition, and plugins with devices.
//!
//! What is true is kept apart from what was said of it: news come late, come of streams that
//! nobody listens to any more, or cannot be believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::claims::resources::Amounts;
use drover_core::config::{Config, DiskUsageLimits, Preemption, ProbeConfig, Retention};
use drover_core::device::reported::{ReportedAttribute, ReportedDevice, ReportedGroup};
use drover_core::effect::NodeEffect;
use drover_core::fingerprint::{Fingerprint, Plugin, PluginKind, Resources};
use drover_core::ids::AllocId;
use drover_core::input::{
    DeviceReport, DiskUsage, DriverFingerprint, DriverHealth, DriverReport, HookOutput, NodeInput,
};
use drover_core::model::device::{AssignedDevices, DeviceNode, Mount};
use drover_core::model::processors::{Core, Processors};
use drover_core::op::{Failure, Op};
use drover_core::time::{Instant, Span};

use crate::dirs::Dirs;
use crate::engine::{self, Engine};
use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::scene::Scene;
use crate::zones;

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
    // Longer than the convergence at the end, in which nothing is to change.
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
    config.disk_limits = Some(DiskUsageLimits {
        interval: Span::secs(1000),
        ..DiskUsageLimits::default()
    });
    config
}

/// How many children of a job are kept: few, so that it matters.
const KEPT_CHILDREN: usize = 3;

/// How many records of collected allocations are kept: few, so that it matters.
const KEPT_RECORDS: usize = 4;

/// What a directory may take, in MiB, where its group asked for 300.
const DIR_SIZES: [u64; 4] = [1, 1000, 290, 1001];

/// How many percent of the disk each allocation's directory takes.
const SHARE: u8 = 6;

/// How many percent others take when they fill it.
const OTHERS_USE: u8 = 75;

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
    disk_under_pressure: bool,
    /// Which of [`DIR_SIZES`] an allocation's directory has.
    dir_sizes: BTreeMap<AllocId, usize>,
    /// What it has of counted resources, if that is bounded.
    pub(crate) has: Option<Amounts>,
    /// Since when a counter counts that jumped back, by the name of what it counts.
    pub(crate) resets: BTreeMap<Arc<str>, Span>,
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
            disk_under_pressure: false,
            dir_sizes: BTreeMap::new(),
            has: None,
            resets: BTreeMap::new(),
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
    fn attribute(&self) -> (String, ReportedAttribute) {
        let value = ReportedAttribute {
            bool: Some(true),
            ..ReportedAttribute::default()
        };
        (format!("driver.{DRIVER}.g{}", self.generation), value)
    }

    /// The name of the driver's attribute now.
    pub(crate) fn driver_attribute(&self) -> String {
        self.attribute().0
    }

    /// What a plugin would say now.
    pub(crate) fn groups(&self, plugin: &str) -> Vec<ReportedGroup> {
        let of_plugin = PLUGINS.iter().filter(|(name, ..)| *name == plugin);
        let group = |(name, kind, _): &(&'static str, &str, usize)| {
            let devices = self.devices.get(name).into_iter().flatten();
            let device = |(id, healthy): (&String, &bool)| ReportedDevice {
                id: id.clone(),
                healthy: *healthy,
                ..ReportedDevice::default()
            };
            ReportedGroup {
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
    pub(crate) fn report_streams(&self) -> Vec<(Arc<str>, Op)> {
        let report_streams = self.streams.iter();
        report_streams
            .map(|(name, op)| (name.clone(), *op))
            .collect()
    }

    pub(crate) fn agent_died(&mut self) {
        self.streams.clear();
    }
}

/// Whether this is no plugin with devices.
fn is_driver(name: &str) -> bool {
    name == DRIVER || name == engine::DRIVER
}

fn driver_reports(driver: &str, op: Op, report: DriverReport) -> NodeInput {
    NodeInput::Driver {
        op,
        driver: driver.to_owned(),
        report,
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
            ..Mount::default()
        });
    }
    given
}

impl Machine {
    /// How full the disk is, in percent: each allocation's directory takes its share.
    pub(crate) fn fullness(&self, dirs: &Dirs) -> u8 {
        let own = u8::try_from(dirs.allocs.len()).unwrap_or(u8::MAX);
        let others = if self.disk_under_pressure {
            OTHERS_USE
        } else {
            0
        };
        others.saturating_add(own.saturating_mul(SHARE)).min(100)
    }

    /// Finds out how much directories take. The size of each goes round: little, too much, almost too much, again
    /// too much.
    fn measure_dirs(&mut self, scene: &mut Scene, dirs: &Dirs, op: Op, allocs: &[AllocId]) {
        let who: Arc<str> = Arc::from("directories");
        if scene.fires(Fault::HangProbe, &who) {
            return;
        }
        let mut measured = BTreeMap::new();
        for alloc in allocs {
            if !dirs.allocs.contains(alloc) {
                continue;
            }
            let changes = scene.fires(Fault::FillDir, &alloc.to_string());
            let size = self.dir_sizes.entry(*alloc).or_default();
            *size = (*size + usize::from(changes)) % DIR_SIZES.len();
            measured.insert(*alloc, DIR_SIZES[*size] * 1024 * 1024);
        }
        let result = if scene.fires(Fault::FailProbe, &who) {
            Err(Failure::recoverable("the sizes are not known"))
        } else {
            Ok(measured)
        };
        let input = Input::Node(NodeInput::DirUsage { op, result });
        scene.answer(scene.life, op, &who, scene.timeouts.hook, input);
    }

    /// Begins what is asked about the machine.
    pub(crate) fn ask(
        &mut self,
        scene: &mut Scene,
        dirs: &Dirs,
        engine: &mut Engine,
        effect: &NodeEffect,
    ) {
        let life = scene.life;
        match effect {
            NodeEffect::Probe { op, probe } => {
                if scene.fires(Fault::HangProbe, probe) {
                    return;
                }
                let result = if scene.fires(Fault::FailProbe, probe) {
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
                    let has = self.has.filter(|_| &**probe == "host");
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
                let timeout = scene.timeouts.probe;
                scene.answer(life, *op, probe, timeout, Input::Node(input));
            }
            NodeEffect::MeasureDiskUsage { op } => {
                let disk: Arc<str> = Arc::from("disk");
                if scene.fires(Fault::HangProbe, &disk) {
                    return;
                }
                let result = if scene.fires(Fault::FailProbe, &disk) {
                    Err(Failure::recoverable("the disk usage is not known"))
                } else {
                    self.disk_under_pressure |= scene.fires(Fault::DiskPressure, &disk);
                    Ok(DiskUsage {
                        disk_percent: self.fullness(dirs),
                        inode_percent: 0,
                    })
                };
                let input = NodeInput::DiskUsage { op: *op, result };
                let timeout = scene.timeouts.probe;
                scene.answer(life, *op, &disk, timeout, Input::Node(input));
            }
            NodeEffect::MeasureDirs { op, allocs } => self.measure_dirs(scene, dirs, *op, allocs),
            NodeEffect::LookUpTimeZone { op, zone, around } => {
                if scene.fires(Fault::HangProbe, zone) {
                    return;
                }
                let known = zones::around(zone, *around);
                let known = known.filter(|_| !scene.fires(Fault::FailProbe, zone));
                let unknown = || Failure::recoverable("no such zone");
                let input = NodeInput::TimeZone {
                    op: *op,
                    zone: zone.to_string(),
                    result: known.ok_or_else(unknown),
                };
                let timeout = scene.timeouts.probe;
                scene.answer(life, *op, zone, timeout, Input::Node(input));
            }
            // Not the machine's.
            NodeEffect::LookUpImage { .. } | NodeEffect::Volume { .. } => {}
            NodeEffect::WatchDriver { op, driver: name }
            | NodeEffect::WatchDevices { op, plugin: name } => {
                self.streams.insert(name.clone(), *op);
                if scene.fires(Fault::HangNews, name) {
                    self.streams.remove(name);
                    return;
                }
                let delay = scene.latency(name, scene.timeouts.first_report);
                self.report(scene, engine, name, *op, delay);
            }
        }
    }

    /// What is true of `name`, said on this stream.
    fn report(&self, scene: &mut Scene, engine: &mut Engine, name: &Arc<str>, op: Op, delay: Span) {
        let input = if is_driver(name) {
            let fingerprint = self.fingerprint_of(engine, name);
            driver_reports(name, op, DriverReport::Fingerprint(fingerprint))
        } else {
            let groups = self.groups(name);
            plugin_reports(name, op, DeviceReport::Devices(groups))
        };
        send_report(scene, name, op, scene.at + delay, input);
    }

    /// What a driver would say now.
    fn fingerprint_of(&self, engine: &mut Engine, driver: &str) -> DriverFingerprint {
        match driver == engine::DRIVER {
            true => engine.fingerprint(),
            false => self.driver(),
        }
    }

    /// The driver's condition changes, and whoever listens is told.
    pub(crate) fn driver_is(&mut self, scene: &mut Scene, engine: &mut Engine, healthy: bool) {
        self.healthy = healthy;
        self.generation += 1;
        self.report_again(scene, engine, DRIVER);
    }

    pub(crate) fn report_again(&mut self, scene: &mut Scene, engine: &mut Engine, name: &str) {
        let speaker = self.streams.get_key_value(name);
        if let Some((name, op)) = speaker.map(|(name, op)| (name.clone(), *op)) {
            self.report(scene, engine, &name, op, Span::ZERO);
        }
    }

    /// A device breaks, works again, goes, or comes back.
    pub(crate) fn device_changes(&mut self, scene: &mut Scene, engine: &mut Engine) {
        let plugin = PLUGINS[scene.choices.below(PLUGINS.len(), Point::Plugin, "devices")].0;
        let which = format!("d{}", scene.choices.below(3, Point::Device, "devices"));
        let gone = scene.choices.either(Point::Gone, "devices");
        let Some(devices) = self.devices.get_mut(plugin) else {
            return;
        };
        match devices.remove(&which) {
            Some(_) if gone => {}
            Some(healthy) => drop(devices.insert(which, !healthy)),
            None => drop(devices.insert(which, true)),
        }
        self.report_again(scene, engine, plugin);
    }

    /// A stream ends, though somebody listens; and may say what was never true afterwards.
    pub(crate) fn a_stream_ends(&mut self, scene: &mut Scene) {
        let Some((name, op)) = self.any_report_stream(scene) else {
            return;
        };
        self.streams.remove(&name);
        let why = "the plugin is gone".to_owned();
        let late = scene.fires(Fault::LateNews, &name);
        let (ended, lie) = if is_driver(&name) {
            let lie = DriverReport::Failed("nobody listens".to_owned());
            (
                driver_reports(&name, op, DriverReport::Ended(why)),
                driver_reports(&name, op, lie),
            )
        } else {
            (
                plugin_reports(&name, op, DeviceReport::Ended(why)),
                plugin_reports(&name, op, DeviceReport::Devices(Vec::new())),
            )
        };
        send_report(scene, &name, op, scene.at, ended);
        if late {
            send_report(scene, &name, op, scene.at + Span::secs(1), lie);
        }
    }

    /// Somebody says what cannot be.
    pub(crate) fn malformed_report(&mut self, scene: &mut Scene, engine: &mut Engine) {
        let Some((name, op)) = self.any_report_stream(scene) else {
            return;
        };
        let input = if is_driver(&name) {
            let mut fingerprint = self.fingerprint_of(engine, &name);
            let odd = ReportedAttribute {
                int: Some(1),
                ..ReportedAttribute::default()
            };
            fingerprint.attributes.insert("kernel.name".to_owned(), odd);
            driver_reports(&name, op, DriverReport::Fingerprint(fingerprint))
        } else {
            let mut groups = self.groups(&name);
            let other = PLUGINS.iter().find(|(other, ..)| *other != &*name);
            match scene.choices.below(3, Point::Odd, &name) {
                0 => groups.extend(groups.clone()),
                1 => groups.push(ReportedGroup::default()),
                _ => groups.extend(other.into_iter().flat_map(|(other, ..)| self.groups(other))),
            }
            plugin_reports(&name, op, DeviceReport::Devices(groups))
        };
        send_report(scene, &name, op, scene.at, input);
    }

    fn any_report_stream(&self, scene: &mut Scene) -> Option<(Arc<str>, Op)> {
        let report_streams = self.report_streams();
        let which = scene
            .choices
            .below(report_streams.len().max(1), Point::Speaker, "machine");
        report_streams.get(which).cloned()
    }

    /// Everything works again, and whoever is listened to says so.
    pub(crate) fn is_whole(&mut self, scene: &mut Scene, engine: &mut Engine) {
        (scene.later).retain(|_, due| !matches!(due.what, Later::Driver { .. }));
        let streams = core::mem::take(&mut self.streams);
        let resets = core::mem::take(&mut self.resets);
        let generation = self.generation + 1;
        *self = Machine {
            streams,
            resets,
            generation,
            ..Machine::default()
        };
        for (name, op) in self.report_streams() {
            self.report(scene, engine, &name, op, Span::ZERO);
        }
    }
}

fn plugin_reports(name: &str, op: Op, report: DeviceReport) -> NodeInput {
    NodeInput::Devices {
        op,
        plugin: name.to_owned(),
        report,
    }
}

fn send_report(scene: &mut Scene, name: &Arc<str>, op: Op, at: Instant, input: NodeInput) {
    scene.deliver(Source::Stream(op), at, name, Input::Node(input));
}
