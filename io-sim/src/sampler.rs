//! Who looks at statistics: reads the world's counters, as far as they can be read, and has the core make of
//! them what people see. It dies with the agent, of which it is a part that decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::device::reported_stats::{ReportedInstance, ReportedStats, ReportedValue};
use drover_core::driver::reported::ReportedUsage;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::device::GroupId;
use drover_core::model::float::Float;
use drover_core::stats::board::Board;
use drover_core::stats::cpu::{CoreTimes, CoreUse};
use drover_core::stats::host::cores_since;
use drover_core::stats::reported;
use drover_core::stats::running::Running;
use drover_core::stats::sample::Sample;
use drover_core::time::{Span, Timestamp};

use crate::counters::{self, CountedBy};
use crate::faults::Fault;
use crate::machine::{Machine, plugins};
use crate::point::Point;
use crate::scene::Scene;

/// MHz of a core.
pub(crate) const MHZ: f64 = 2000.0;

/// What one look found of a launch.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Its counters.
    Counted(Sample),
    /// What its driver says of it.
    Reported(ReportedUsage),
    /// Its driver does not measure it any more.
    Unmeasured,
    /// Nothing at all.
    Nothing,
}

/// What one look found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampling {
    /// Of launches, in the order in which it was.
    pub(crate) launches: Vec<(LaunchId, Found)>,
    /// Of the devices of each plugin that said what can be, by group.
    pub(crate) devices: BTreeMap<(&'static str, GroupId), BTreeMap<String, i64>>,
    /// Of the cores.
    pub(crate) cores: Vec<(String, CoreTimes)>,
    /// When.
    pub(crate) at: Span,
}

/// Looks at the world's counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    pub(crate) board: Board,
    /// The look before is needed for what was worked since.
    pub(crate) sampling: Sampling,
    /// What each core did between the last two looks.
    pub(crate) cores: Vec<(String, CoreUse)>,
    samples: BTreeMap<LaunchId, (Span, Sample)>,
    late: Option<(TaskKey, LaunchId, ReportedUsage)>,
}

impl Sampler {
    /// Takes what was found of a launch.
    fn take(&mut self, task: TaskKey, launch: LaunchId, found: Found, wall: Timestamp) {
        let at = self.sampling.at;
        match &found {
            Found::Counted(sample) => {
                if let Some((before_at, before)) = self.samples.get(&launch) {
                    let elapsed = u64::try_from(at.0 - before_at.0).unwrap_or_default();
                    let usage = sample.since(before, elapsed, Some(MHZ), wall);
                    self.board.note(task, launch, Arc::new(usage));
                }
                self.samples.insert(launch, (at, sample.clone()));
            }
            Found::Reported(answer) => {
                if let Ok(usage) = reported::usage(answer, wall) {
                    self.board.note(task, launch, Arc::new(usage));
                }
            }
            Found::Unmeasured => self.board.lose(&task, launch),
            Found::Nothing => drop(self.samples.remove(&launch)),
        }
        self.sampling.launches.push((launch, found));
    }

    /// Takes what was read of the cores.
    fn take_cores(&mut self, read: Vec<(String, CoreTimes)>, before: &[(String, CoreTimes)]) {
        self.cores = cores_since(&read, before);
        self.sampling.cores = read;
    }
}

impl Sampler {
    /// Whether enough time passed since somebody looked: counters are too coarse for less.
    pub(crate) fn may_sample(&self, elapsed: Span) -> bool {
        let last = self.sampling.at;
        last == Span::ZERO || elapsed.0 - last.0 >= Span::millis(1).0
    }

    /// Somebody looks at what these tasks use, and at the machine.
    pub(crate) fn sample(
        &mut self,
        scene: &mut Scene,
        machine: &mut Machine,
        living: &BTreeSet<LaunchId>,
        running: Vec<Running>,
    ) {
        let wall = scene.now().wall;
        let at = scene.elapsed;
        let sampling = Sampling {
            at,
            ..Sampling::default()
        };
        let before = core::mem::replace(&mut self.sampling, sampling);
        if let Some((task, launch, answer)) = self.late.take() {
            self.take(task, launch, Found::Reported(answer), wall);
        }
        for one in running {
            let found = self.read_launch(scene, machine, living, &one);
            self.take(one.task, one.launch, found, wall);
        }
        for plugin in plugins() {
            self.read_devices(scene, machine, plugin);
        }
        let cores = read_cores(scene, &mut machine.resets);
        self.take_cores(cores, &before.cores);
    }

    fn read_launch(
        &mut self,
        scene: &mut Scene,
        machine: &mut Machine,
        living: &BTreeSet<LaunchId>,
        one: &Running,
    ) -> Found {
        let lives = living.contains(&one.launch);
        let name = scene.names.known_launch(one.launch);
        let at = scene.elapsed;
        match counters::counted_by(&name) {
            _ if !lives => Found::Nothing,
            CountedBy::Driver => self.ask_driver(scene, one, &name),
            CountedBy::Group | CountedBy::Processes if scene.fires(Fault::LoseCounters, &name) => {
                Found::Nothing
            }
            CountedBy::Group => {
                if scene.fires(Fault::ResetCounters, &name) {
                    machine.resets.insert(Arc::clone(&name), at);
                }
                let since = machine.resets.get(&name).copied();
                let mut group = counters::of_group(&name, at, since.unwrap_or_default());
                if scene.fires(Fault::LoseCounters, &name) {
                    match scene.choices.either(Point::LostCounters, &name) {
                        false => group.memory = Default::default(),
                        true => group.spent = Default::default(),
                    }
                }
                Found::Counted(Sample {
                    group: Some(group),
                    processes: counters::of_processes(&name, at),
                })
            }
            CountedBy::Processes => Found::Counted(Sample {
                group: None,
                processes: counters::of_processes(&name, at),
            }),
        }
    }

    fn ask_driver(&mut self, scene: &mut Scene, one: &Running, name: &Arc<str>) -> Found {
        if scene.fires(Fault::LoseCounters, name) {
            return Found::Unmeasured;
        }
        let mut answer = counters::report(name, scene.elapsed, scene.now().wall);
        if scene.fires(Fault::OddStatistics, name)
            && let Some(cpu) = &mut answer.total.cpu
        {
            let odd = [f64::NAN, -1.0];
            let odd = scene.choices.one_of(&odd, Point::OddStatistics, name);
            cpu.percent = odd.map(Float::new);
        }
        if scene.fires(Fault::LateStatistics, name) {
            self.late = Some((one.task.clone(), one.launch, answer));
            return Found::Nothing;
        }
        Found::Reported(answer)
    }

    fn read_devices(&mut self, scene: &mut Scene, machine: &Machine, plugin: &'static str) {
        if scene.fires(Fault::LoseCounters, plugin) {
            return self.board.devices.lose(plugin);
        }
        let mut answer = device_statistics(machine, scene.elapsed, plugin);
        let odd = scene.fires(Fault::OddStatistics, plugin);
        if odd {
            answer.extend(answer.clone());
        }
        // Whether it is believed is for the checks to see.
        let _ = self.board.devices.report(plugin, answer);
        if odd {
            return;
        }
        for group in machine.groups(plugin) {
            let ids = group.devices.into_iter().map(|device| device.id);
            let measured = ids.map(|id| (id.clone(), counters::of_device(&id, scene.elapsed)));
            let measured = measured.collect();
            let group = GroupId {
                vendor: group.vendor,
                kind: group.kind,
                name: group.name,
            };
            self.sampling.devices.insert((plugin, group), measured);
        }
    }
}

/// What a plugin measures of its devices.
fn device_statistics(machine: &Machine, elapsed: Span, plugin: &str) -> Vec<ReportedStats> {
    let groups = machine.groups(plugin).into_iter();
    let instance = |id: String| {
        let value = ReportedValue {
            int_numerator: Some(counters::of_device(&id, elapsed)),
            ..ReportedValue::default()
        };
        let instance = ReportedInstance {
            summary: Some(value),
            ..ReportedInstance::default()
        };
        (id, instance)
    };
    let measured = groups.map(|group| ReportedStats {
        vendor: group.vendor,
        kind: group.kind,
        name: group.name,
        instances: group
            .devices
            .into_iter()
            .map(|it| instance(it.id))
            .collect(),
    });
    measured.collect()
}

fn read_cores(
    scene: &mut Scene,
    resets: &mut BTreeMap<Arc<str>, Span>,
) -> Vec<(String, CoreTimes)> {
    let mut read = Vec::new();
    for number in 0..counters::CORES {
        let name: Arc<str> = format!("cpu{number}").into();
        if scene.fires(Fault::LoseCounters, &name) {
            continue;
        }
        if scene.fires(Fault::ResetCounters, &name) {
            resets.insert(Arc::clone(&name), scene.elapsed);
        }
        let since = resets.get(&name).copied().unwrap_or_default();
        let times = counters::of_core(number, scene.elapsed, since);
        read.push((name.to_string(), times));
    }
    read
}
