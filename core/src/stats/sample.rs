//! From two samples of a launch's counters to what it uses.

use std::collections::BTreeMap;

use super::cpu::Spent;
use super::usage::{Cpu, Memory, TaskUsage, Usage};
use crate::time::Timestamp;

/// A process: its number and when it started, so that another one of that number is another one.
pub type ProcessId = (u32, u64);

/// The counters of a control group or of a process at one moment. What is not there is unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Memory.
    pub memory: Memory,
    /// Work.
    pub spent: Spent,
}

/// All counters of a launch at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Of its control group. A launch without one uses what its processes use together.
    pub group: Option<Counters>,
    /// Of its processes.
    pub processes: BTreeMap<ProcessId, Counters>,
}

impl Sample {
    /// What the launch uses now, and worked since `before`, which was `elapsed` nanoseconds earlier.
    pub fn since(
        &self,
        before: &Sample,
        elapsed: u64,
        mhz_of_a_core: Option<f64>,
        at: Timestamp,
    ) -> TaskUsage {
        let of_process = |(id, now): (&ProcessId, &Counters)| {
            // One that was not there before began since then.
            let zero = Spent {
                user: Some(0),
                system: Some(0),
                total: Some(0),
                ..Spent::default()
            };
            let before = before.processes.get(id).map_or(zero, |known| known.spent);
            let cpu = now.spent.since(&before, elapsed, mhz_of_a_core);
            let memory = now.memory;
            (id.0, Usage { memory, cpu })
        };
        let processes: BTreeMap<u32, Usage> = self.processes.iter().map(of_process).collect();
        let usage = match &self.group {
            Some(now) => Usage {
                memory: now.memory,
                cpu: match &before.group {
                    Some(before) => now.spent.since(&before.spent, elapsed, mhz_of_a_core),
                    None => Cpu::default(),
                },
            },
            // What a process that ended had worked is in no sum of counters any more.
            None => {
                let sum = processes.values().copied().reduce(Usage::plus);
                sum.unwrap_or_default()
            }
        };
        TaskUsage {
            usage,
            processes,
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn counters(worked: u64, rss: u64) -> Counters {
        Counters {
            memory: Memory {
                rss: Some(rss),
                ..Memory::default()
            },
            spent: Spent {
                total: Some(worked),
                ..Spent::default()
            },
        }
    }

    fn processes(all: &[(u32, u64, u64)]) -> Sample {
        let one = |(pid, start, worked): &(u32, u64, u64)| ((*pid, *start), counters(*worked, 10));
        Sample {
            group: None,
            processes: all.iter().map(one).collect(),
        }
    }

    #[test]
    fn launch_without_cgroup_has_usage_of_processes() {
        let before = processes(&[(1, 5, 7 * SECOND), (2, 5, SECOND)]);
        // The second ended, and another process got its number.
        let now = processes(&[(1, 5, 8 * SECOND), (2, 9, SECOND / 2)]);
        let usage = now.since(&before, SECOND, None, Timestamp(3));
        assert_eq!(usage.usage.cpu.percent, Some(150.0));
        assert_eq!(usage.usage.memory.rss, Some(20));
        assert_eq!(usage.processes[&2].cpu.percent, Some(50.0));
        assert_eq!(usage.at, Timestamp(3));
        let nothing = processes(&[]).since(&before, SECOND, None, Timestamp(3));
        assert_eq!(nothing.usage, Usage::default());
    }

    #[test]
    fn launch_with_cgroup_has_usage_of_cgroup() {
        let group = |worked| Sample {
            group: Some(counters(worked, 100)),
            ..processes(&[(1, 5, worked)])
        };
        let usage = group(3 * SECOND).since(&group(SECOND), SECOND, None, Timestamp(0));
        assert_eq!(usage.usage.cpu.percent, Some(200.0));
        assert_eq!(usage.usage.memory.rss, Some(100));
        assert_eq!(usage.processes.len(), 1);
    }
}
