//! The kernel's counters, as texts: control groups of both versions, processes, the machine.
//!
//! Each function takes what it knows out of a text and leaves everything else as it was: a file
//! that another kernel writes otherwise leaves values unset. All are linear in their text, which
//! whoever reads it bounds.

use drover_core::stats::cpu::{CoreTimes, Spent};
use drover_core::stats::host::HostMemory;
use drover_core::stats::sample::Counters;
use drover_core::stats::usage::Memory;

/// How many cores are told apart.
pub const MAX_CORES: usize = 4096;

/// Nanoseconds of the ticks in which `/proc` counts: 100 in a second on every architecture that
/// this runs on.
const TICK: u64 = 10_000_000;

/// Takes what one file says.
pub type Take = fn(&[u8], &mut Counters);

/// The files of a version 2 group, and of one in the tree of a hybrid system.
pub mod v2 {
    use super::{Take, micros, number, pairs};

    /// Each file with what takes it.
    pub const FILES: &[(&str, Take)] = &[
        ("memory.stat", |text, to| {
            for (key, value) in pairs(text) {
                match key {
                    b"anon" => to.memory.rss = value,
                    b"file" => to.memory.cache = value,
                    b"file_mapped" => to.memory.mapped_file = value,
                    b"kernel" => to.memory.kernel_usage = value,
                    _ => {}
                }
            }
        }),
        ("memory.current", |text, to| to.memory.usage = number(text)),
        ("memory.peak", |text, to| to.memory.max_usage = number(text)),
        // Swap alone. Nomad adds the memory to it, as version 1's `memsw` does.
        ("memory.swap.current", |text, to| {
            to.memory.swap = number(text);
        }),
        ("cpu.stat", |text, to| {
            for (key, value) in pairs(text) {
                match key {
                    b"usage_usec" => to.spent.total = micros(value),
                    b"user_usec" => to.spent.user = micros(value),
                    b"system_usec" => to.spent.system = micros(value),
                    b"nr_throttled" => to.spent.throttled_periods = value,
                    b"throttled_usec" => to.spent.throttled_time = micros(value),
                    _ => {}
                }
            }
        }),
    ];
}

/// The files of version 1 groups.
pub mod v1 {
    use super::{Take, number, pairs};

    /// Files of the `memory` controller. Those that begin with `total_` count groups inside this
    /// one too, as its usage does; they come after the others.
    pub const MEMORY: &[(&str, Take)] = &[
        ("memory.stat", |text, to| {
            for (key, value) in pairs(text) {
                match key {
                    b"rss" | b"total_rss" => to.memory.rss = value,
                    b"cache" | b"total_cache" => to.memory.cache = value,
                    b"mapped_file" | b"total_mapped_file" => to.memory.mapped_file = value,
                    b"swap" | b"total_swap" => to.memory.swap = value,
                    _ => {}
                }
            }
        }),
        ("memory.usage_in_bytes", |text, to| {
            to.memory.usage = number(text);
        }),
        ("memory.max_usage_in_bytes", |text, to| {
            to.memory.max_usage = number(text);
        }),
        ("memory.kmem.usage_in_bytes", |text, to| {
            to.memory.kernel_usage = number(text);
        }),
        ("memory.kmem.max_usage_in_bytes", |text, to| {
            to.memory.kernel_max_usage = number(text);
        }),
    ];

    /// Files of the `cpu` controller.
    pub const CPU: &[(&str, Take)] = &[("cpu.stat", |text, to| {
        for (key, value) in pairs(text) {
            match key {
                b"nr_throttled" => to.spent.throttled_periods = value,
                b"throttled_time" => to.spent.throttled_time = value,
                _ => {}
            }
        }
    })];

    /// Files of the `cpuacct` controller, which mostly is mounted together with `cpu`.
    pub const CPUACCT: &[(&str, Take)] = &[
        ("cpuacct.usage", |text, to| to.spent.total = number(text)),
        ("cpuacct.usage_user", |text, to| {
            to.spent.user = number(text);
        }),
        ("cpuacct.usage_sys", |text, to| {
            to.spent.system = number(text);
        }),
    ];
}

/// What `/proc/<pid>/stat` says: when the process started, in ticks, and what it worked.
pub fn process_stat(text: &[u8]) -> Option<(u64, Spent)> {
    // The name may hold blanks and brackets; nothing after it does.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = words(text.get(end + 1..)?);
    let user = number(fields.nth(11)?)?.checked_mul(TICK)?;
    let system = number(fields.next()?)?.checked_mul(TICK)?;
    let start = number(fields.nth(6)?)?;
    let spent = Spent {
        user: Some(user),
        system: Some(system),
        total: user.checked_add(system),
        ..Spent::default()
    };
    Some((start, spent))
}

/// What `/proc/<pid>/status` says of memory.
pub fn process_memory(text: &[u8]) -> Memory {
    let mut memory = Memory::default();
    for (key, value) in kibibytes(text) {
        match key {
            b"VmRSS" => memory.rss = value,
            b"VmSwap" => memory.swap = value,
            _ => {}
        }
    }
    memory
}

/// Process ids, one a line: `cgroup.procs`, or with blanks between them: `children`.
pub fn pids(text: &[u8], most: usize) -> Vec<u32> {
    let numbers = text.split(|byte| byte.is_ascii_whitespace());
    let numbers = numbers.filter_map(|word| u32::try_from(number(word)?).ok());
    // A 0 is a process of another pid namespace.
    numbers.filter(|pid| *pid > 0).take(most).collect()
}

/// The cores in `/proc/stat`, by name.
pub fn cores(text: &[u8]) -> Vec<(String, CoreTimes)> {
    let core = |line: &[u8]| {
        let mut fields = words(line);
        let name = core::str::from_utf8(fields.next()?).ok()?;
        let index = name.strip_prefix("cpu")?;
        index.parse::<u32>().ok()?;
        let mut next = || number(fields.next()?);
        let (user, nice, system) = (next()?, next()?, next()?);
        let (idle, waiting) = (next()?, next()?);
        // Interrupts and what other machines take; a guest's time is in the user's already.
        let other: [u64; 3] = core::array::from_fn(|_| next().unwrap_or(0));
        let other = other.into_iter().fold(nice, u64::saturating_add);
        let times = CoreTimes {
            user,
            system,
            idle,
            waiting,
            other,
        };
        Some((name.to_owned(), times))
    };
    lines(text).filter_map(core).take(MAX_CORES).collect()
}

/// What `/proc/meminfo` says, as people count it: caches and buffers are not used.
pub fn host_memory(text: &[u8]) -> HostMemory {
    let mut memory = HostMemory::default();
    let mut cached: Option<u64> = None;
    for (key, value) in kibibytes(text) {
        match key {
            b"MemTotal" => memory.total = value,
            b"MemFree" => memory.free = value,
            b"MemAvailable" => memory.available = value,
            b"Buffers" | b"Cached" | b"SReclaimable" => {
                cached = Some(cached.unwrap_or(0).saturating_add(value.unwrap_or(0)));
            }
            _ => {}
        }
    }
    let taken = memory.total.zip(memory.free);
    let taken = taken.and_then(|(total, free)| total.checked_sub(free));
    let used = taken.zip(cached);
    memory.used = used.and_then(|(taken, cached)| taken.checked_sub(cached));
    memory
}

/// Whole seconds in `/proc/uptime`.
pub fn uptime(text: &[u8]) -> Option<u64> {
    number(text.split(|byte| *byte == b'.').next()?)
}

/// The kinds of file systems in `/proc/filesystems` that are on disks.
pub fn block_kinds(text: &[u8]) -> Vec<String> {
    let kind = |line: &[u8]| {
        let mut words = words(line);
        match (words.next()?, words.next()) {
            // Its disks are its own business.
            (b"nodev", Some(b"zfs")) => Some("zfs".to_owned()),
            (b"nodev", _) => None,
            (name, _) => Some(String::from_utf8_lossy(name).into_owned()),
        }
    };
    lines(text).filter_map(kind).collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(|byte| byte.is_ascii_whitespace());
    words.filter(|word| !word.is_empty())
}

/// Lines of a name and a number; other lines say nothing.
fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], Option<u64>)> {
    lines(text).filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let value = number(line.get(at + 1..)?)?;
        Some((line.get(..at)?, Some(value)))
    })
}

/// Lines of a name, a colon, a number and `kB`; as bytes.
fn kibibytes(text: &[u8]) -> impl Iterator<Item = (&[u8], Option<u64>)> {
    lines(text).filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let value = line.get(at + 1..)?.trim_ascii().strip_suffix(b"kB");
        let value = value.and_then(number).and_then(|kib| kib.checked_mul(1024));
        Some((line.get(..at)?, value))
    })
}

fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let value = |sum: u64, digit: &u8| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        sum.checked_mul(10)?.checked_add(digit)
    };
    digits.then(|| text.iter().try_fold(0, value)).flatten()
}

fn micros(value: Option<u64>) -> Option<u64> {
    value?.checked_mul(1000)
}
