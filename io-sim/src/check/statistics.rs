//! What people see of statistics, against what was found of each launch, added up the slow way.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::driver::reported::ReportedUsage;
use drover_core::ids::LaunchId;
use drover_core::model::device::GroupId;
use drover_core::stats::board::AllocUsage;
use drover_core::stats::cpu::{CoreTimes, CoreUse, Spent};
use drover_core::stats::running::Running;
use drover_core::stats::sample::{Counters, Sample};
use drover_core::stats::usage::{Memory, Usage};
use drover_core::time::Span;

use super::{Checker, Property, Verdict};
use crate::sampler::{Found, MHZ, Sampling};
use crate::world::World;

/// The most that the processes of one task work, in percent of a core.
const MOST_PERCENT: f64 = 1000.0;

/// Values by name; what is not there is unset.
type Figures = BTreeMap<&'static str, f64>;

/// Devices by group, each with the number that was measured of it.
type Groups = BTreeMap<GroupId, BTreeMap<String, i64>>;

/// What the checks remember of statistics.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    samples: BTreeMap<LaunchId, (Span, Sample)>,
    /// What people are to see of each launch.
    known: BTreeMap<LaunchId, Figures>,
    cores: BTreeMap<String, CoreTimes>,
}

impl Checker {
    /// Looks at what people see after a look at everything.
    pub(crate) fn statistics(&mut self, world: &World, agent: &Agent) -> Verdict {
        let sampling = &world.sampler.sampling;
        for (launch, found) in &sampling.launches {
            self.note_found(*launch, found, sampling.at);
        }
        self.cores_are_listed_with_usage(sampling, &world.sampler.cores)?;
        for alloc in agent.view().allocs() {
            let running = Running::of(alloc);
            let record = alloc.record();
            let usage = world.board().of(record.id, &record.devices, &running);
            self.statistics_are_plausible(&usage)?;
            self.usage_matches_running_launches(&usage, &running)?;
            self.each_device_group_is_listed_once(sampling, alloc, &usage, &running)?;
        }
        Ok(())
    }

    /// What is to be seen of a launch after this was found of it.
    fn note_found(&mut self, launch: LaunchId, found: &Found, at: Span) {
        let mut back = false;
        let statistics = &mut self.statistics;
        match found {
            Found::Counted(sample) => {
                let before = statistics.samples.insert(launch, (at, sample.clone()));
                if let Some((before_at, before)) = before {
                    back = total(sample) < total(&before);
                    let figures = counted(sample, &before, (at.0 - before_at.0) as f64);
                    statistics.known.insert(launch, figures);
                }
            }
            Found::Reported(report) => {
                if let Some(figures) = reported(report) {
                    statistics.known.insert(launch, figures);
                }
            }
            Found::Unmeasured => drop(statistics.known.remove(&launch)),
            Found::Nothing => drop(statistics.samples.remove(&launch)),
        }
        self.sometimes(Property::SometimesCounterGoesBack, back);
    }

    /// No statistic is negative, infinite, or more than the machine can do.
    fn statistics_are_plausible(&mut self, usage: &AllocUsage) -> Verdict {
        for (name, task) in &usage.tasks {
            let figures = figures(&task.usage.usage);
            let most = |name: &str| {
                if name.contains('%') {
                    MOST_PERCENT
                } else {
                    f64::MAX
                }
            };
            let odd = figures
                .iter()
                .find(|(name, value)| !(0.0..=most(name)).contains(*value));
            self.holds(Property::StatisticsArePlausible, odd.is_none(), || {
                format!("{name}: {odd:?}")
            })?;
        }
        Ok(())
    }

    /// A task uses what was measured of its launch, an allocation what its running tasks use together.
    fn usage_matches_running_launches(
        &mut self,
        usage: &AllocUsage,
        running: &[Running],
    ) -> Verdict {
        let nothing = Figures::new();
        let mut expected = Figures::new();
        for one in running {
            let known = self.statistics.known.get(&one.launch);
            let known = known.unwrap_or(&nothing).clone();
            add(&mut expected, &known);
            let found = usage.tasks.get(&one.task.task);
            let found = found.map(|task| figures(&task.usage.usage));
            self.same(&known, &found.unwrap_or_default(), one.task.task.as_str())?;
        }
        self.same(&expected, &figures(&usage.usage), "the allocation")
    }

    fn same(&mut self, expected: &Figures, found: &Figures, whose: &str) -> Verdict {
        let unset = expected.keys().eq(found.keys());
        self.holds(Property::UnsetStatisticsStayUnset, unset, || {
            format!("{whose}: expected {expected:?}, found {found:?}")
        })?;
        let other = expected.iter().find(|(name, value)| {
            let found = found.get(*name).copied().unwrap_or(-1.0);
            (found - **value).abs() > 1e-6 * value.abs().max(1.0)
        });
        self.holds(
            Property::UsageMatchesRunningLaunches,
            other.is_none(),
            || format!("{whose}: expected {other:?}, found {found:?}"),
        )
    }

    /// An allocation lists each group of its running tasks' devices once.
    fn each_device_group_is_listed_once(
        &mut self,
        sampling: &Sampling,
        alloc: &AllocRunner,
        usage: &AllocUsage,
        running: &[Running],
    ) -> Verdict {
        let mut expected = Groups::new();
        let mut holders = 0;
        for held in &alloc.record().devices {
            let runs = running
                .iter()
                .any(|one| one.task.task.as_str() == held.task);
            let mut known = sampling.devices.iter().filter(|_| runs);
            let known =
                known.find(|((plugin, group), _)| *plugin == held.plugin && *group == held.group);
            let Some((_, measured)) = known else {
                continue;
            };
            holders += 1;
            let group = expected.entry(held.group.clone()).or_default();
            for (id, number) in measured {
                if held.ids.contains(id) {
                    group.insert(id.clone(), *number);
                }
            }
        }
        self.sometimes(
            Property::SometimesTasksShareDeviceGroup,
            holders > expected.len(),
        );
        let mut found = Groups::new();
        for group in usage.devices.groups() {
            let devices = group.instances.iter().map(|(id, it)| {
                let summary = it.summary.as_ref();
                let number = summary.and_then(|it| it.int_numerator).unwrap_or(-1);
                (id.to_string(), number)
            });
            found.insert((*group.group).clone(), devices.collect());
        }
        let once = found.len() == usage.devices.groups().len();
        let holds = once && found == expected;
        self.holds(Property::EachDeviceGroupIsListedOnce, holds, || {
            let listed = usage.devices.groups().len();
            format!("expected {expected:?}, found {listed} groups: {found:?}")
        })
    }

    /// Each core that was measured twice is listed with its usage in between.
    fn cores_are_listed_with_usage(
        &mut self,
        sampling: &Sampling,
        found: &[(String, CoreUse)],
    ) -> Verdict {
        let before = core::mem::take(&mut self.statistics.cores);
        let mut expected = BTreeMap::new();
        for (name, now) in &sampling.cores {
            if let Some(before) = before.get(name) {
                expected.insert(name.clone(), parts(now, before));
            }
        }
        self.statistics.cores = sampling.cores.iter().cloned().collect();
        let listed = found.iter().map(|(name, used)| {
            let parts = [used.user, used.system, used.idle, used.total];
            (
                name.clone(),
                parts.map(|part| (part * 1000.0).round() as i64),
            )
        });
        let listed: BTreeMap<String, [i64; 4]> = listed.collect();
        let holds = listed == expected && listed.len() == found.len();
        self.holds(Property::CoresAreListedWithUsage, holds, || {
            format!("expected {expected:?}, found {found:?}")
        })
    }

    /// At rest exactly the running launches are measured.
    pub(super) fn ended_launch_has_no_statistics(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let running = agent.view().allocs().flat_map(Running::of);
        let dead = running.map(|one| one.launch).find(|launch| {
            let process = world.processes.get(*launch);
            !process.is_some_and(|process| process.alive)
        });
        self.holds(Property::EndedLaunchHasNoStatistics, dead.is_none(), || {
            let process = dead.and_then(|launch| world.processes.get(launch));
            format!("{:?}", process.map(|process| &process.name))
        })
    }
}

/// What a driver's report comes to; none if it cannot be true.
fn reported(report: &ReportedUsage) -> Option<Figures> {
    let mut figures = Figures::new();
    if let Some(cpu) = &report.total.cpu {
        for (name, value) in [
            ("% system", cpu.system),
            ("% user", cpu.user),
            ("%", cpu.percent),
        ] {
            let value = value.map(|value| value.get());
            if value.is_some_and(|value| value.is_nan() || value < 0.0) {
                return None;
            }
            figures.extend(value.map(|value| (name, value)));
        }
        set(&mut figures, "throttled periods", cpu.throttled_periods);
        set(&mut figures, "throttled time", cpu.throttled_time);
    }
    if let Some(memory) = &report.total.memory {
        set(&mut figures, "rss", memory.rss);
        set(&mut figures, "cache", memory.cache);
        set(&mut figures, "swap", memory.swap);
        set(&mut figures, "memory", memory.usage);
        set(&mut figures, "memory maximum", memory.max_usage);
        set(&mut figures, "kernel", memory.kernel);
        set(&mut figures, "kernel maximum", memory.kernel_max);
    }
    Some(figures)
}

/// What two samples of counters come to that are so many nanoseconds apart.
fn counted(now: &Sample, before: &Sample, elapsed: f64) -> Figures {
    if let Some(group) = &now.group {
        let before = before.group.unwrap_or_default();
        return of_counters(group, &before.spent, elapsed);
    }
    let mut sum = Figures::new();
    for (id, counters) in &now.processes {
        // Who was not there worked since it began.
        let zero = Spent {
            user: Some(0),
            system: Some(0),
            total: Some(0),
            throttled_periods: None,
            throttled_time: None,
        };
        let before = before.processes.get(id).map_or(zero, |it| it.spent);
        add(&mut sum, &of_counters(counters, &before, elapsed));
    }
    sum
}

fn of_counters(now: &Counters, before: &Spent, elapsed: f64) -> Figures {
    let mut figures = of_memory(&now.memory);
    for (name, now, before) in [
        ("% system", now.spent.system, before.system),
        ("% user", now.spent.user, before.user),
        ("%", now.spent.total, before.total),
    ] {
        if let (Some(now), Some(before)) = (now, before)
            && now >= before
            && elapsed > 0.0
        {
            figures.insert(name, (now - before) as f64 * 100.0 / elapsed);
        }
    }
    if let Some(percent) = figures.get("%").copied() {
        figures.insert("MHz", percent * MHZ / 100.0);
    }
    set(&mut figures, "worked", now.spent.total);
    set(
        &mut figures,
        "throttled periods",
        now.spent.throttled_periods,
    );
    set(&mut figures, "throttled time", now.spent.throttled_time);
    figures
}

fn of_memory(memory: &Memory) -> Figures {
    let mut figures = Figures::new();
    set(&mut figures, "rss", memory.rss);
    set(&mut figures, "cache", memory.cache);
    set(&mut figures, "swap", memory.swap);
    set(&mut figures, "mapped", memory.mapped_file);
    set(&mut figures, "memory", memory.usage);
    set(&mut figures, "memory maximum", memory.max_usage);
    set(&mut figures, "kernel", memory.kernel_usage);
    set(&mut figures, "kernel maximum", memory.kernel_max_usage);
    figures
}

/// What the core made of it.
fn figures(usage: &Usage) -> Figures {
    let mut figures = of_memory(&usage.memory);
    let cpu = &usage.cpu;
    let parts = [
        ("% system", cpu.system),
        ("% user", cpu.user),
        ("%", cpu.percent),
        ("MHz", cpu.total_ticks),
    ];
    let parts = parts.into_iter();
    figures.extend(parts.filter_map(|(name, part)| Some((name, part?))));
    set(&mut figures, "worked", cpu.worked);
    set(&mut figures, "throttled periods", cpu.throttled_periods);
    set(&mut figures, "throttled time", cpu.throttled_time);
    figures
}

fn set(figures: &mut Figures, name: &'static str, value: Option<u64>) {
    figures.extend(value.map(|value| (name, value as f64)));
}

fn add(sum: &mut Figures, other: &Figures) {
    for (name, value) in other {
        *sum.entry(name).or_default() += value;
    }
}

/// All work of the first process, or of the group.
fn total(sample: &Sample) -> Option<u64> {
    sample.group.and_then(|group| group.spent.total)
}

/// In thousandths of a percent: user, system, idle and all but idle and waiting. A core whose times stood still
/// or went back is idle.
fn parts(now: &CoreTimes, before: &CoreTimes) -> [i64; 4] {
    let pairs = [
        (now.user, before.user),
        (now.system, before.system),
        (now.idle, before.idle),
        (now.waiting, before.waiting),
        (now.other, before.other),
    ];
    let all: i128 = (pairs.iter())
        .map(|(now, before)| i128::from(*now) - i128::from(*before))
        .sum();
    let part = |at: usize| {
        let (now, before) = pairs[at];
        let ticks = i128::from(now) - i128::from(before);
        i64::try_from(ticks * 100_000 / all).unwrap_or(i64::MAX)
    };
    if all <= 0 {
        return [0, 0, 100_000, 0];
    }
    [part(0), part(1), part(2), 100_000 - part(2) - part(3)]
}
