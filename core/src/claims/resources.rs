//! Counted resources: CPU in MHz as Nomad counts them, memory, disk space, and whole cores.
//!
//! An allocation holds what its group asks for from its placement until nothing of it can be alive,
//! however little it uses. Of its tasks count those that may run at one time: the sidecars, and beside
//! them the prestart tasks, or the main and poststart tasks, or the poststop tasks, whichever ask for
//! most. `memory_max` is not held: it is what others leave. A task with `cores` holds cores that no other
//! task has for itself, and their MHz.
//!
//! A node has what its fingerprints found less what its configuration reserves ([`Reserved`]); what is
//! not known of it is not counted. [`Overcommit`] says how much more than that may be held.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Resources;
use crate::model::group::TaskGroup;
use crate::model::placement::{Dimension, Shortage};
use crate::model::processors::Processors;
use crate::model::task::{Stage, Task};

/// An amount of each counted resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// MHz.
    pub cpu: u64,
    /// MB.
    pub memory: u64,
    /// MB.
    pub disk: u64,
}

/// Memory and disk space that allocations do not get; of CPU and cores the fingerprint says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Reserved {
    /// MB.
    pub memory: u64,
    /// MB.
    pub disk: u64,
}

/// How much of what a node has allocations may hold together, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overcommit {
    /// Of its MHz.
    pub cpu: u64,
    /// Of its memory.
    pub memory: u64,
    /// Of its disk space.
    pub disk: u64,
}

impl Default for Overcommit {
    /// What there is, and no more.
    fn default() -> Overcommit {
        Overcommit {
            cpu: 100,
            memory: 100,
            disk: 100,
        }
    }
}

/// What a node has for allocations; of what is not known as much as anybody asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// MHz.
    pub cpu: Option<u64>,
    /// MB.
    pub memory: Option<u64>,
    /// MB.
    pub disk: Option<u64>,
    /// Cores that tasks may have for themselves.
    pub cores: BTreeSet<u32>,
    /// MHz of one of them.
    pub core_mhz: u64,
}

impl Amounts {
    /// What a group holds on a node whose cores have so many MHz.
    pub fn of(group: &TaskGroup, core_mhz: u64) -> Amounts {
        let [mut beside, mut before, mut main, mut after] = [Amounts::default(); 4];
        for task in &group.tasks {
            let own = Amounts::of_task(task, core_mhz);
            match task.stage() {
                Stage::PrestartSidecar | Stage::PoststartSidecar => beside.add(own),
                Stage::Prestart => before.add(own),
                Stage::Main | Stage::Poststart => main.add(own),
                Stage::Poststop => after.add(own),
            }
        }
        beside.add(before.max(main).max(after));
        let disk = group.ephemeral_disk.unwrap_or_default();
        beside.disk = u64::try_from(disk.size_mb).unwrap_or(0);
        beside
    }

    fn of_task(task: &Task, core_mhz: u64) -> Amounts {
        let wants = &task.resources;
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        Amounts {
            cpu: match number(wants.cores) {
                0 => number(wants.cpu),
                cores => cores.saturating_mul(core_mhz),
            },
            memory: number(wants.memory_mb),
            disk: 0,
        }
    }

    /// Adds another amount.
    pub fn add(&mut self, other: Amounts) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.disk = self.disk.saturating_add(other.disk);
    }

    /// So many times as much.
    pub fn times(self, count: u32) -> Amounts {
        let times = |one: u64| one.saturating_mul(u64::from(count));
        Amounts {
            cpu: times(self.cpu),
            memory: times(self.memory),
            disk: times(self.disk),
        }
    }

    /// Whether both are of one resource at least.
    pub fn overlaps(self, other: Amounts) -> bool {
        let both = |one: u64, other: u64| one > 0 && other > 0;
        both(self.cpu, other.cpu) || both(self.memory, other.memory) || both(self.disk, other.disk)
    }

    fn max(self, other: Amounts) -> Amounts {
        Amounts {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
            disk: self.disk.max(other.disk),
        }
    }
}

impl Capacity {
    /// What a node has for allocations that has these resources.
    pub fn of(found: &Resources, reserved: Reserved, overcommit: Overcommit) -> Capacity {
        let percent = |amount: u64, percent: u64| {
            let all = u128::from(amount) * u128::from(percent) / 100;
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        let left = |found: Option<u64>, reserved: u64| found.map(|it| it.saturating_sub(reserved));
        let processors = found.processors.as_ref().filter(|it| it.usable_compute > 0);
        let cores = processors.map(usable_cores).unwrap_or_default();
        let cpu = processors.map(|it| it.usable_compute);
        let count = u64::try_from(cores.len()).unwrap_or(u64::MAX).max(1);
        Capacity {
            cpu: cpu.map(|cpu| percent(cpu, overcommit.cpu)),
            memory: left(found.memory_mb, reserved.memory)
                .map(|memory| percent(memory, overcommit.memory)),
            disk: left(found.disk_mb, reserved.disk).map(|disk| percent(disk, overcommit.disk)),
            core_mhz: cpu.unwrap_or(0) / count,
            cores,
        }
    }

    /// Of what too little is left for `wanted` beside what is `held`: the first that is missing.
    pub fn shortage(&self, held: Amounts, wanted: Amounts) -> Option<Shortage> {
        let all = [
            (Dimension::Cpu, self.cpu, held.cpu, wanted.cpu),
            (Dimension::Memory, self.memory, held.memory, wanted.memory),
            (Dimension::Disk, self.disk, held.disk, wanted.disk),
        ];
        all.into_iter().find_map(|(dimension, of, held, needs)| {
            let of = of?;
            let free = of.saturating_sub(held);
            (needs > free).then_some(Shortage {
                dimension,
                needs,
                free,
                of,
            })
        })
    }

    /// How much of each resource is missing for `wanted` beside what is `held`.
    pub fn missing(&self, held: Amounts, wanted: Amounts) -> Amounts {
        let missing = |of: Option<u64>, held: u64, wanted: u64| {
            of.map_or(0, |of| wanted.saturating_sub(of.saturating_sub(held)))
        };
        Amounts {
            cpu: missing(self.cpu, held.cpu, wanted.cpu),
            memory: missing(self.memory, held.memory, wanted.memory),
            disk: missing(self.disk, held.disk, wanted.disk),
        }
    }

    /// Cores for a task that has them for itself, beside those that are held: the first that are free.
    ///
    /// # Errors
    /// That there are not so many.
    pub fn cores(&self, wanted: usize, held: &BTreeSet<u32>) -> Result<Vec<u32>, Shortage> {
        let free: Vec<u32> = self.cores.difference(held).copied().collect();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match free.get(..wanted) {
            Some(cores) => Ok(cores.to_vec()),
            None => Err(Shortage {
                dimension: Dimension::Cores,
                needs: number(wanted),
                free: number(free.len()),
                of: number(self.cores.len()),
            }),
        }
    }
}

/// Numbers in order as people write them: `0-1,4`.
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            Some(_) | None => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

fn usable_cores(processors: &Processors) -> BTreeSet<u32> {
    let usable = processors.cores.iter().filter(|core| !core.disabled);
    usable.map(|core| core.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::group::EphemeralDisk;
    use crate::model::processors::Core;
    use crate::model::task::{Hook, Lifecycle};

    fn task(cpu: i64, memory: i64, stage: Option<(Hook, bool)>) -> Task {
        let mut task = Task {
            lifecycle: stage.map(|(hook, sidecar)| Lifecycle { hook, sidecar }),
            ..Task::default()
        };
        (task.resources.cpu, task.resources.memory_mb) = (cpu, memory);
        task
    }

    fn found() -> Resources {
        let core = |id: u32| Core {
            id,
            disabled: id == 0,
            ..Core::default()
        };
        Resources {
            processors: Some(Processors {
                total_compute: 8000,
                usable_compute: 6000,
                cores: (0..4).map(core).collect(),
            }),
            memory_mb: Some(1000),
            disk_mb: Some(500),
            ..Resources::default()
        }
    }

    #[test]
    fn sequential_tasks_count_once() {
        let group = TaskGroup {
            tasks: vec![
                task(100, 300, None),
                task(50, 50, Some((Hook::Poststart, false))),
                task(120, 400, Some((Hook::Prestart, false))),
                task(10, 20, Some((Hook::Prestart, true))),
                task(500, 10, Some((Hook::Poststop, false))),
            ],
            ephemeral_disk: Some(EphemeralDisk {
                size_mb: 77,
                ..EphemeralDisk::default()
            }),
            ..TaskGroup::default()
        };
        let most = Amounts {
            cpu: 510,
            memory: 420,
            disk: 77,
        };
        assert_eq!(Amounts::of(&group, 0), most);
    }

    #[test]
    fn memory_max_is_not_held() {
        let mut own = task(100, 300, None);
        own.resources.memory_max_mb = 4000;
        assert_eq!(Amounts::of_task(&own, 0).memory, 300);
    }

    #[test]
    fn unknown_resource_is_not_counted() {
        let everything = Amounts {
            cpu: u64::MAX,
            memory: u64::MAX,
            disk: u64::MAX,
        };
        let capacity = Capacity::of(
            &Resources::default(),
            Reserved::default(),
            Overcommit::default(),
        );
        assert_eq!(capacity.shortage(everything, everything), None);
    }

    #[test]
    fn capacity_is_total_minus_reserved() {
        let reserved = Reserved {
            memory: 200,
            disk: 600,
        };
        let overcommit = Overcommit {
            cpu: 150,
            memory: 100,
            disk: 100,
        };
        let capacity = Capacity::of(&found(), reserved, overcommit);
        assert_eq!((capacity.cpu, capacity.memory), (Some(9000), Some(800)));
        assert_eq!((capacity.disk, capacity.core_mhz), (Some(0), 2000));
        assert_eq!(capacity.cores, [1, 2, 3].into());
    }

    #[test]
    fn cores_of_two_tasks_are_disjoint_and_count_mhz() {
        let capacity = Capacity::of(&found(), Reserved::default(), Overcommit::default());
        let first = capacity.cores(2, &BTreeSet::new());
        assert_eq!(first, Ok(vec![1, 2]));
        let held = [1, 2].into();
        assert_eq!(capacity.cores(1, &held), Ok(vec![3]));
        let short = capacity.cores(2, &held).map_err(|short| short.to_string());
        assert_eq!(short, Err("cores: needs 2, 1 of 3 are free".to_owned()));
        assert_eq!(ranges([0, 1, 4, 6, 7, 8]), "0-1,4,6-8");
        let mut own = task(0, 10, None);
        own.resources.cores = 2;
        assert_eq!(Amounts::of_task(&own, capacity.core_mhz).cpu, 4000);
    }
}
