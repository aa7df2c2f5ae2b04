//! The kernel's counters as it wrote them, and as no kernel would.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use drover_core::cx::Rng;
use drover_core::stats::cpu::Spent;
use drover_core::stats::host::HostMemory;
use drover_core::stats::sample::Counters;
use drover_core::stats::usage::Memory;
use drover_io_real::stats::counters::{
    self, Take, block_kinds, cores, host_memory, process_memory, process_stat, uptime, v1, v2,
};

const V1_MEMORY_STAT: &str = "\
cache 10833920\nrss 7127040\nrss_huge 0\nshmem 9068544\nmapped_file 7483392\ndirty 106496\n\
swap 0\npgpgin 96610\nactive_anon 1531904\nhierarchical_memory_limit 9223372036854771712\n\
total_cache 5598965760\ntotal_rss 1232134144\ntotal_mapped_file 297656320\ntotal_swap 4096\n\
total_unevictable 14663680\n";

const V2_MEMORY_STAT: &str = "\
anon 1323008\nfile 2846720\nkernel 1658880\nkernel_stack 49152\nshmem 0\nfile_mapped 1351680\n\
file_dirty 0\nanon_thp 0\ninactive_anon 1257472\nslab 1431896\npgfault 12881\n";

const V2_CPU_STAT: &str = "\
usage_usec 26989130410\nuser_usec 24483704427\nsystem_usec 2505425982\nnice_usec 14908866729\n\
nr_periods 12\nnr_throttled 3\nthrottled_usec 250\n";

const V1_CPU_STAT: &str = "nr_periods 7\nnr_throttled 2\nthrottled_time 51234\nnr_bursts 0\n";

const PROC_STAT: &str = "\
cpu  957487 1490889 246886 477950 6791 0 3655 6255 0 0\n\
cpu0 485203 729653 117172 256745 2060 0 860 3182 0 0\n\
cpu1 472284 761235 129714 221204 4731 0 2795 3073 0 0\n\
intr 12166460 0 0\nctxt 5\nbtime 1795234497\n";

const MEMINFO: &str = "\
MemTotal:       24684092 kB\nMemFree:        17082232 kB\nMemAvailable:   22838980 kB\n\
Buffers:           21168 kB\nCached:          5447020 kB\nSwapCached:            0 kB\n\
SReclaimable:     100000 kB\nHugePages_Total:       0\n";

const STATUS: &str = "Name:\tcat\nUmask:\t0022\nVmHWM:\t    1948 kB\nVmRSS:\t    1900 kB\n\
VmSwap:\t      12 kB\nThreads:\t1\n";

fn read(files: &[(&str, Take)], texts: &[(&str, &str)]) -> Counters {
    let mut reading = Counters::default();
    for (name, take) in files {
        if let Some((_, text)) = texts.iter().find(|(known, _)| known == name) {
            take(text.as_bytes(), &mut reading);
        }
    }
    reading
}

#[test]
fn cgroup_v2_counters_are_read() {
    let texts = [
        ("memory.stat", V2_MEMORY_STAT),
        ("memory.current", "6000640\n"),
        ("memory.peak", "7000064\n"),
        ("memory.swap.current", "8192\n"),
        ("cpu.stat", V2_CPU_STAT),
    ];
    let reading = read(v2::FILES, &texts);
    let memory = Memory {
        rss: Some(1_323_008),
        cache: Some(2_846_720),
        swap: Some(8192),
        mapped_file: Some(1_351_680),
        usage: Some(6_000_640),
        max_usage: Some(7_000_064),
        kernel_usage: Some(1_658_880),
        kernel_max_usage: None,
    };
    let spent = Spent {
        user: Some(24_483_704_427_000),
        system: Some(2_505_425_982_000),
        total: Some(26_989_130_410_000),
        throttled_periods: Some(3),
        throttled_time: Some(250_000),
    };
    assert_eq!(reading, Counters { memory, spent });
    // A kernel before 5.19 has no peak, and one without swap accounting no swap.
    let less = read(v2::FILES, &texts[..2]);
    assert_eq!((less.memory.max_usage, less.memory.swap), (None, None));
    assert_eq!(less.spent, Spent::default());
}

#[test]
fn cgroup_v1_counters_are_read() {
    let memory = read(
        v1::MEMORY,
        &[
            ("memory.stat", V1_MEMORY_STAT),
            ("memory.usage_in_bytes", "9001\n"),
            ("memory.max_usage_in_bytes", "9002\n"),
            ("memory.kmem.usage_in_bytes", "0\n"),
            ("memory.kmem.max_usage_in_bytes", "9004\n"),
            ("memory.memsw.usage_in_bytes", "77777\n"),
        ],
    );
    let expected = Memory {
        rss: Some(1_232_134_144),
        cache: Some(5_598_965_760),
        swap: Some(4096),
        mapped_file: Some(297_656_320),
        usage: Some(9001),
        max_usage: Some(9002),
        kernel_usage: Some(0),
        kernel_max_usage: Some(9004),
    };
    assert_eq!(memory.memory, expected);
    let cpu = read(v1::CPU, &[("cpu.stat", V1_CPU_STAT)]).spent;
    let throttled = (cpu.throttled_periods, cpu.throttled_time);
    assert_eq!(throttled, (Some(2), Some(51_234)));
    let work = read(
        v1::CPUACCT,
        &[("cpuacct.usage", "500\n"), ("cpuacct.usage_user", "300\n")],
    );
    let work = (work.spent.total, work.spent.user, work.spent.system);
    assert_eq!(work, (Some(500), Some(300), None));
}

#[test]
fn host_counters_are_read() {
    let cores = cores(PROC_STAT.as_bytes());
    let names: Vec<&str> = cores.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cpu0", "cpu1"]);
    let times = cores[1].1;
    assert_eq!((times.user, times.idle), (472_284, 221_204));
    assert_eq!((times.waiting, times.other), (4731, 761_235 + 2795 + 3073));
    let kib = |kib: u64| Some(kib * 1024);
    let memory = HostMemory {
        total: kib(24_684_092),
        available: kib(22_838_980),
        used: kib(24_684_092 - 17_082_232 - 21_168 - 5_447_020 - 100_000),
        free: kib(17_082_232),
    };
    assert_eq!(host_memory(MEMINFO.as_bytes()), memory);
    assert_eq!(uptime(b"15968.87 4779.50\n"), Some(15_968));
    let kinds = block_kinds(b"nodev\tsysfs\nnodev\tzfs\n\text4\n\tfuseblk\n");
    assert_eq!(kinds, ["zfs", "ext4", "fuseblk"]);
}

#[test]
fn process_with_odd_name_is_read() {
    let stat = "142 (a) R ((b) 1 14240 14240 23620 0 -1 4194304 99 0 0 0 250 50 0 0 20 0 1 0 \
                1596887 3133440 410 18446744073709551615\n";
    let (start, spent) = process_stat(stat.as_bytes()).unwrap();
    assert_eq!(start, 1_596_887);
    assert_eq!(spent.user, Some(2_500_000_000));
    assert_eq!(spent.total, Some(3_000_000_000));
    let memory = process_memory(STATUS.as_bytes());
    assert_eq!(memory.rss, Some(1900 * 1024));
    assert_eq!((memory.swap, memory.usage), (Some(12 * 1024), None));
    let pids = counters::pids(b"12\n0\nx\n99999999999\n7 8\n9\n", 3);
    assert_eq!(pids, [12, 7, 8]);
}

#[test]
fn invalid_counter_is_unset() {
    for text in ["", "max\n", "-1\n", "18446744073709551616\n", "12 13\n"] {
        let reading = read(v2::FILES, &[("memory.current", text)]);
        assert_eq!(reading.memory.usage, None, "{text:?}");
    }
    assert_eq!(process_stat(b"1 (x) R 1"), None);
    assert_eq!(host_memory(b"MemTotal: 5 kB").used, None);
    let most = format!("usage_usec {}\nnr_throttled 1\n", u64::MAX);
    let spent = read(v2::FILES, &[("cpu.stat", &most)]).spent;
    assert_eq!((spent.total, spent.throttled_periods), (None, Some(1)));
}

/// A line that is spoiled costs its own value and no other.
#[test]
fn damaged_line_affects_no_other() {
    let whole = read(v2::FILES, &[("memory.stat", V2_MEMORY_STAT)]).memory;
    let wanted = |memory: &Memory| {
        [
            ("anon", memory.rss),
            ("file", memory.cache),
            ("kernel", memory.kernel_usage),
            ("file_mapped", memory.mapped_file),
        ]
    };
    let mut lost = 0;
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut lines: Vec<Vec<u8>> = V2_MEMORY_STAT.lines().map(Into::into).collect();
        let at = usize::try_from(rng.next_u64()).unwrap() % lines.len();
        let key = V2_MEMORY_STAT.lines().nth(at).unwrap();
        let key = key.split(' ').next().unwrap();
        for _ in 0..1 + rng.next_u64() % 3 {
            let place = usize::try_from(rng.next_u64()).unwrap() % lines[at].len();
            // Anything but a new line, and no digit, with which it would be a number still.
            lines[at][place] = b"\0\xff :x-"[usize::try_from(rng.next_u64() % 6).unwrap()];
        }
        let text = lines.join(&b'\n');
        let mut reading = Counters::default();
        v2::FILES[0].1(&text, &mut reading);
        let (seen, whole) = (wanted(&reading.memory), wanted(&whole));
        for ((name, seen), (_, whole)) in seen.iter().zip(whole) {
            if *name != key {
                assert_eq!(*seen, whole, "{name}, seed {seed}");
            }
        }
        let own = seen.iter().zip(whole).find(|((name, _), _)| *name == key);
        lost += usize::from(own.is_some_and(|((_, seen), (_, whole))| *seen != whole));
    }
    assert!(lost > 200, "only {lost} values were lost");
}

/// Whatever stands in a file, reading it ends and says no more than the file could.
#[test]
fn truncated_counters_are_safe() {
    let texts = [PROC_STAT, MEMINFO, STATUS, V1_MEMORY_STAT, V2_CPU_STAT];
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut text = Vec::new();
        for _ in 0..3 {
            let part = texts[usize::try_from(rng.next_u64() % 5).unwrap()].as_bytes();
            let from = usize::try_from(rng.next_u64()).unwrap() % part.len();
            let to = from + usize::try_from(rng.next_u64()).unwrap() % (part.len() - from);
            text.extend_from_slice(&part[from..to]);
        }
        for _ in 0..rng.next_u64() % 8 {
            let place = usize::try_from(rng.next_u64()).unwrap() % text.len().max(1);
            if let Some(byte) = text.get_mut(place) {
                *byte = u8::try_from(rng.next_u64() & 0xff).unwrap();
            }
        }
        let lines = text.split(|byte| *byte == b'\n').count();
        assert!(cores(&text).len() <= lines, "seed {seed}");
        assert!(counters::pids(&text, 5).len() <= 5, "seed {seed}");
        let memory = host_memory(&text);
        assert!(memory.used <= memory.total, "seed {seed}");
        for (_, take) in v1::MEMORY.iter().chain(v2::FILES) {
            take(&text, &mut Counters::default());
        }
        process_stat(&text);
    }
}
