//! What a task, a process or an allocation uses.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// Memory, in bytes. What was not measured is unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Anonymous memory that is in use.
    pub rss: Option<u64>,
    /// Cached files.
    pub cache: Option<u64>,
    /// What was swapped out: swap alone, not swap and memory together.
    pub swap: Option<u64>,
    /// Mapped files.
    pub mapped_file: Option<u64>,
    /// All that is charged now.
    pub usage: Option<u64>,
    /// The most that ever was.
    pub max_usage: Option<u64>,
    /// The kernel's share of it.
    pub kernel_usage: Option<u64>,
    /// The most that the kernel's share ever was.
    pub kernel_max_usage: Option<u64>,
}

impl Memory {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Memory) -> Memory {
        Memory {
            rss: whole(self.rss, other.rss),
            cache: whole(self.cache, other.cache),
            swap: whole(self.swap, other.swap),
            mapped_file: whole(self.mapped_file, other.mapped_file),
            usage: whole(self.usage, other.usage),
            max_usage: whole(self.max_usage, other.max_usage),
            kernel_usage: whole(self.kernel_usage, other.kernel_usage),
            kernel_max_usage: whole(self.kernel_max_usage, other.kernel_max_usage),
        }
    }
}

/// Work of processors. What was not measured is unset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Percent of one core for the kernel's work.
    pub system: Option<f64>,
    /// Percent of one core for its own work.
    pub user: Option<f64>,
    /// MHz that it uses.
    pub total_ticks: Option<f64>,
    /// Percent of one core; two busy cores are 200.
    pub percent: Option<f64>,
    /// What it worked since it began, in nanoseconds of one core.
    pub worked: Option<u64>,
    /// How often it was held back since it began.
    pub throttled_periods: Option<u64>,
    /// For how long, in nanoseconds.
    pub throttled_time: Option<u64>,
}

impl Cpu {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Cpu) -> Cpu {
        Cpu {
            system: part(self.system, other.system),
            user: part(self.user, other.user),
            total_ticks: part(self.total_ticks, other.total_ticks),
            percent: part(self.percent, other.percent),
            worked: whole(self.worked, other.worked),
            throttled_periods: whole(self.throttled_periods, other.throttled_periods),
            throttled_time: whole(self.throttled_time, other.throttled_time),
        }
    }
}

/// Memory and work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Memory.
    pub memory: Memory,
    /// Work.
    pub cpu: Cpu,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            memory: self.memory.plus(other.memory),
            cpu: self.cpu.plus(other.cpu),
        }
    }
}

/// What was measured of a task at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskUsage {
    /// All of it.
    pub usage: Usage,
    /// Its processes by number; only some where there are very many.
    pub processes: BTreeMap<u32, Usage>,
    /// When.
    pub at: Timestamp,
}

fn whole(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (one, None) | (None, one) => one,
    }
}

fn part(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left + right),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_is_not_zero() {
        let rss = |bytes| Memory {
            rss: Some(bytes),
            ..Memory::default()
        };
        assert_eq!(Memory::default().plus(Memory::default()).rss, None);
        assert_eq!(rss(0).plus(Memory::default()).rss, Some(0));
        assert_eq!(Memory::default().plus(rss(7)).rss, Some(7));
        assert_eq!(rss(u64::MAX).plus(rss(7)).rss, Some(u64::MAX));
        assert_eq!(rss(3).plus(rss(4)).cache, None);
    }
}
