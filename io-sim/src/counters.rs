//! What the world counts: the true counters of launches, cores and devices, by name and time. Which of them
//! there are follows from the name, so that some are unset for good, some are zero, and some count.

use std::collections::BTreeMap;
use std::hash::Hasher;

use drover_core::driver::reported::{ReportedCpu, ReportedMemory, ReportedProcess, ReportedUsage};
use drover_core::model::float::Float;
use drover_core::stats::cpu::{CoreTimes, Spent};
use drover_core::stats::sample::{Counters, ProcessId};
use drover_core::stats::usage::Memory;
use drover_core::time::{Span, Timestamp};

use crate::hash::{StateHasher, scramble};

/// How many cores the machine has.
pub(crate) const CORES: u64 = 4;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// Who counts a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// The kernel, as a group.
    Group,
    /// The kernel, process by process.
    Processes,
    /// Its driver.
    Driver,
}

/// Who counts the launch of this name.
pub(crate) fn counted_by(name: &str) -> CountedBy {
    match bits(name, 0) % 3 {
        0 => CountedBy::Group,
        1 => CountedBy::Processes,
        _ => CountedBy::Driver,
    }
}

/// The counters of a launch's group at a time; its work counts from `since` on.
pub(crate) fn of_group(name: &str, at: Span, since: Span) -> Counters {
    Counters {
        memory: memory(name, at),
        spent: spent(
            name,
            nanoseconds(at) - nanoseconds(since).min(nanoseconds(at)),
        ),
    }
}

/// The counters of a launch's processes at a time. Each ten seconds the second of them ends, and another one
/// begins that has its number.
pub(crate) fn of_processes(name: &str, at: Span) -> BTreeMap<ProcessId, Counters> {
    let now = nanoseconds(at);
    let began = now / (10 * SECOND) * 10 * SECOND;
    let first = of_group(name, at, Span::ZERO);
    let second = Counters {
        memory: memory(name, at),
        spent: spent(name, now - began),
    };
    [((7, 0), first), ((8, began), second)].into()
}

/// What a driver says of a launch at a time.
pub(crate) fn report(name: &str, at: Span, wall: Timestamp) -> ReportedUsage {
    let (memory, spent) = (memory(name, at), spent(name, nanoseconds(at)));
    let float = |value: Option<u64>| value.map(|value| Float::new(value as f64));
    let total = ReportedProcess {
        cpu: Some(ReportedCpu {
            system: float(spent.system.map(|_| rate(name))),
            user: float(spent.user.map(|_| 2 * rate(name))),
            ticks: None,
            percent: float(spent.total.map(|_| 3 * rate(name))),
            throttled_periods: spent.throttled_periods,
            throttled_time: spent.throttled_time,
        }),
        memory: Some(ReportedMemory {
            rss: memory.rss,
            cache: memory.cache,
            swap: memory.swap,
            usage: memory.usage,
            max_usage: memory.max_usage,
            kernel: memory.kernel_usage,
            kernel_max: memory.kernel_max_usage,
        }),
    };
    ReportedUsage {
        time: bit(name, 20).then_some(wall),
        by_pid: [("7".to_owned(), total.clone())].into(),
        total,
    }
}

/// The times of a core at a time, counted from `since` on: in each fifth of a second so much of each.
pub(crate) fn of_core(number: u64, at: Span, since: Span) -> CoreTimes {
    let fifths = (nanoseconds(at) - nanoseconds(since).min(nanoseconds(at))) / (SECOND / 5);
    let user = 2 * (number + 1);
    CoreTimes {
        user: fifths * user,
        system: fifths,
        idle: fifths * (18 - user),
        waiting: fifths,
        other: 0,
    }
}

/// What a device of this id measures at a time.
pub(crate) fn of_device(id: &str, at: Span) -> i64 {
    let number = bits(id, 1) ^ (nanoseconds(at) / SECOND);
    i64::try_from(number % 1000).unwrap_or_default()
}

fn memory(name: &str, at: Span) -> Memory {
    let grown = nanoseconds(at) / SECOND % 60 * 4096;
    let rss = bits(name, 2) % 100 * MIB + grown;
    let some = |which: u32, value: u64| bit(name, which).then_some(value);
    Memory {
        rss: some(1, rss),
        cache: some(2, bits(name, 3) % 10 * MIB),
        swap: some(3, 0),
        mapped_file: some(4, MIB),
        usage: some(5, rss + 10 * MIB),
        max_usage: some(6, 200 * MIB),
        kernel_usage: some(7, grown),
        kernel_max_usage: some(8, 60 * 4096),
    }
}

/// The work of a launch after so many nanoseconds: of three parts two are its own.
fn spent(name: &str, after: u64) -> Spent {
    let each = after / 100 * rate(name);
    let some = |which: u32, value: u64| bit(name, which).then_some(value);
    Spent {
        user: some(11, 2 * each),
        system: some(12, each),
        total: some(13, 3 * each),
        throttled_periods: some(14, 0),
        throttled_time: some(15, after / SECOND),
    }
}

/// The percent of a core that the kernel works for a launch.
fn rate(name: &str) -> u64 {
    bits(name, 4) % 4 * 25
}

/// Whether a counter is there: most are.
fn bit(name: &str, which: u32) -> bool {
    !bits(name, u64::from(which) + 100).is_multiple_of(4)
}

fn bits(name: &str, salt: u64) -> u64 {
    let mut hash = StateHasher::default();
    hash.write(name.as_bytes());
    scramble(hash.finish() ^ salt)
}

fn nanoseconds(span: Span) -> u64 {
    u64::try_from(span.0).unwrap_or_default()
}
