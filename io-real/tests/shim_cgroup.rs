//! Tasks in control groups. Without root, or without control groups, these tests say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::groups::{Groups, SOON};
use common::{Rig, Task, fifo, finish, handle, outcome, receive, wait_readable};
use drover_core::driver::config::IoLimits;
use drover_io_real::cgroup::{Cgroups, Group, Limits, Moves, Version};
use drover_io_real::shim::Outcome;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn within(group: &Group, mut task: Task) -> Task {
    task.procs.clone_from(&group.procs);
    task.oom.clone_from(&group.oom);
    task.kill.clone_from(&group.kill);
    task
}

fn many_limits() -> Limits {
    Limits {
        // Not what groups have anyway.
        cpu_shares: Some(2048),
        cpu_quota: Some((150_000, 50_000)),
        memory_max: Some(64 << 20),
        memory_reserved: Some(32 << 20),
        no_swap: true,
        processes: Some(100),
        cores: [0].into(),
        ..Limits::default()
    }
}

#[test]
fn task_joins_its_groups_with_their_limits() {
    let Some(groups) = Groups::new("limits") else {
        return;
    };
    let limits = many_limits();
    let group = groups.create("one.task", &limits);
    let there = |name| usize::from(Path::new("/sys/fs/cgroup").join(name).is_dir());
    let counted = there("pids") + there("cpuset");
    match groups.groups.version() {
        Version::V1 => assert_eq!((group.procs.len(), &group.kill), (2 + counted, &None)),
        Version::Hybrid => assert!(group.procs.len() == 3 + counted && group.kill.is_some()),
        Version::V2 => assert!(group.procs.len() == 1 && group.kill.is_some()),
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let hybrid = mounts.contains(" /sys/fs/cgroup/unified cgroup2 ");
    assert!(!hybrid || groups.groups.version() == Version::Hybrid);
    assert!(group.oom.is_some());
    assert_eq!(groups.create("one.task", &limits), group);
    let rig = Rig::new();
    let exit = rig.run(&within(&group, Task::sh(1, "cat /proc/self/cgroup")));
    assert_eq!((exit.code, exit.oom), (Some(0), false));
    let path = format!("/{}/one.task", groups.parent);
    let joined = rig
        .stdout()
        .lines()
        .filter(|line| line.ends_with(&path))
        .count();
    assert_eq!(joined, group.procs.len(), "{}", rig.stdout());
    assert_eq!(groups.groups.list().unwrap(), ["one.task"]);
    assert!(!groups.groups.populated("one.task").unwrap());
    groups.groups.remove("one.task").unwrap();
    groups.groups.remove("one.task").unwrap();
    assert!(groups.groups.list().unwrap().is_empty());
}

#[test]
fn limits_of_task_are_those_of_its_groups() {
    let Some(groups) = Groups::new("written") else {
        return;
    };
    let group = groups.create("one.task", &many_limits());
    let dirs = group.procs.iter().map(|procs| procs.parent().unwrap());
    let dirs: Vec<&Path> = dirs.collect();
    let found = |name: &str| {
        let mut files = dirs.iter().map(|dir| fs::read_to_string(dir.join(name)));
        files.find_map(|file| Some(file.ok()?.trim().to_owned()))
    };
    let of_v1 = [
        ("cpu.shares", "2048"),
        ("cpu.cfs_quota_us", "150000"),
        ("cpu.cfs_period_us", "50000"),
        ("memory.limit_in_bytes", "67108864"),
        ("memory.memsw.limit_in_bytes", "67108864"),
        ("memory.soft_limit_in_bytes", "33554432"),
        ("pids.max", "100"),
        ("cpuset.cpus", "0"),
    ];
    let of_v2 = [
        ("cpu.weight", "174"),
        ("cpu.max", "150000 50000"),
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        ("memory.low", "33554432"),
        ("pids.max", "100"),
        ("cpuset.cpus", "0"),
    ];
    let (wanted, sure): (&[_], _) = match groups.groups.version() {
        Version::V1 | Version::Hybrid => (&of_v1, ["cpu.shares", "memory.limit_in_bytes"]),
        Version::V2 => (&of_v2, ["cpu.weight", "memory.max"]),
    };
    for (name, wanted) in wanted {
        match found(name) {
            Some(found) => assert_eq!((*name, found.as_str()), (*name, *wanted)),
            // Not every kernel counts swap, and not every machine has every controller.
            None => assert!(!sure.contains(name), "there is no {name}"),
        }
    }
}

#[test]
fn moves_are_prepared_without_moving_processes() {
    let Some(groups) = Groups::new("moves") else {
        return;
    };
    let own = || fs::read_to_string("/proc/self/cgroup").unwrap();
    let before = own();
    let moves = Moves::to(&groups.groups).expect("the mount of the groups is known");
    moves.prepare().unwrap();
    moves.clone().prepare().unwrap();
    assert_eq!(own(), before);
}

#[test]
fn task_with_hard_limit_of_processors_is_throttled() {
    let Some(groups) = Groups::new("quota") else {
        return;
    };
    let limits = Limits {
        cpu_quota: Some((10_000, 100_000)),
        ..Limits::default()
    };
    let group = groups.create("slow.task", &limits);
    let rig = Rig::new();
    let dirs = group.procs.iter().filter_map(|procs| procs.parent());
    let stat = dirs.map(|dir| dir.join("cpu.stat")).find(|stat| {
        let text = fs::read_to_string(stat).unwrap_or_default();
        text.contains("nr_throttled")
    });
    // It works for as long as it takes: machines differ in how much they do in their part of a second.
    let work = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    let throttled = format!("grep -q '^nr_throttled [1-9]' {}", stat.unwrap().display());
    let script = format!("until {throttled}; do {work}; done");
    assert_eq!(rig.run(&within(&group, Task::sh(1, &script))).code, Some(0));
}

/// What the kernel holds to be a group's limits of reading and writing; of version 1 two of them.
fn io_limits_of(group: &Group) -> String {
    let files = [
        "io.max",
        "blkio.throttle.read_bps_device",
        "blkio.throttle.write_iops_device",
    ];
    let dirs = group.procs.iter().filter_map(|procs| procs.parent());
    let texts = dirs
        .flat_map(|dir| files.map(|file| fs::read_to_string(dir.join(file)).unwrap_or_default()));
    texts.collect()
}

#[test]
fn group_without_own_io_limits_has_those_of_the_agent() {
    let Some(groups) = Groups::new("unasked") else {
        return;
    };
    let most = IoLimits {
        read_bps: Some(1 << 20),
        ..IoLimits::default()
    };
    let limiting = groups.groups.clone().with_disk_of("/tmp".into(), most);
    let disk = match limiting.io_limits(most) {
        Ok(limits) => limits.unwrap().0.numbers,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let group = limiting.create("any.task", &Limits::default()).unwrap();
    let expected = match limiting.version() {
        Version::V2 => format!("{disk} rbps=1048576 wbps=max riops=max wiops=max\n"),
        Version::V1 | Version::Hybrid => format!("{disk} 1048576\n"),
    };
    assert_eq!(io_limits_of(&group), expected);
}

#[test]
fn group_has_the_lower_limits_of_reading_and_writing() {
    let Some(groups) = Groups::new("throttle") else {
        return;
    };
    let most = IoLimits {
        read_bps: Some(1 << 20),
        ..IoLimits::default()
    };
    let io = IoLimits {
        read_bps: Some(8 << 20),
        write_iops: Some(100),
        ..IoLimits::default()
    };
    let limiting = groups.groups.clone().with_disk_of("/tmp".into(), most);
    let disk = match limiting.io_limits(io) {
        Ok(limits) => limits.unwrap().0.numbers,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let limits = Limits {
        io,
        ..Limits::default()
    };
    let group = limiting.create("slow.task", &limits).unwrap();
    let expected = match limiting.version() {
        Version::V2 => format!("{disk} rbps=1048576 wbps=max riops=max wiops=100\n"),
        Version::V1 | Version::Hybrid => format!("{disk} 1048576\n{disk} 100\n"),
    };
    assert_eq!(io_limits_of(&group), expected);
    let rig = Rig::new();
    let exit = rig.run(&within(&group, Task::sh(1, "cat /proc/self/cgroup")));
    assert_eq!(exit.code, Some(0));
    let output = rig.stdout();
    let is_of_disks = |line: &&str| limiting.version() == Version::V2 || line.contains("blkio");
    let line = output.lines().find(is_of_disks).unwrap();
    assert!(line.ends_with("/slow.task"), "{output}");
    limiting.remove("slow.task").unwrap();
    assert!(limiting.list().unwrap().is_empty());
}

/// The cores that a process may run on.
fn cores_of(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().to_owned()
}

/// Groups, if this machine can keep its first two cores apart.
fn with_two_cores(test: &str) -> Option<Groups> {
    let groups = Groups::new(test)?;
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let has_sets = Path::new("/sys/fs/cgroup/cpuset").is_dir() || controllers.contains("cpuset");
    if !has_sets || !cores_of(1).starts_with("0-") {
        eprintln!("skipped: no sets of processors, or only one processor");
        return None;
    }
    Some(groups)
}

#[test]
fn task_with_own_cores_has_them_alone() {
    let Some(groups) = with_two_cores("cores") else {
        return;
    };
    let all = cores_of(1);
    let rig = Rig::new();
    let (pid, go) = (fifo(&rig, "pid"), fifo(&rig, "go"));
    let script = "sleep 1000 & echo $! > pid; read x < go; kill $!";
    let sharing = groups.create("sharing.task", &Limits::default());
    let live = rig.start(&within(&sharing, Task::sh(1, script))).unwrap();
    let child: i32 = receive(&pid).parse().unwrap();
    assert_eq!(cores_of(child), all);
    let own = Limits {
        cores: [0].into(),
        ..Limits::default()
    };
    let pinned = groups.create("pinned.task", &own);
    assert!(!cores_of(child).starts_with('0'), "{}", cores_of(child));
    let other = Rig::new();
    let list = "grep Cpus_allowed_list /proc/self/status";
    let exit = other.run(&within(&pinned, Task::sh(1, list)));
    assert_eq!(exit.code, Some(0));
    assert!(
        other.stdout().trim().ends_with(":\t0"),
        "{}",
        other.stdout()
    );
    assert_eq!(groups.groups.find("pinned.task").unwrap(), pinned);
    groups.groups.remove("pinned.task").unwrap();
    assert_eq!(cores_of(child), all);
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&live).code, Some(0));
}

/// As the group of each task goes that ends by itself and leaves nothing.
#[test]
fn cores_of_group_that_was_empty_are_shared_again() {
    let Some(groups) = with_two_cores("empty") else {
        return;
    };
    let all = cores_of(1);
    let rig = Rig::new();
    let sharing = groups.create("sharing.task", &Limits::default());
    let task = within(&sharing, Task::sh(1, "exec sleep 1000"));
    let live = rig.start(&task).unwrap();
    let pid = live.task().pid;
    let own = Limits {
        cores: [0].into(),
        ..Limits::default()
    };
    groups.create("pinned.task", &own);
    assert!(!cores_of(pid).starts_with('0'), "{}", cores_of(pid));
    assert!(groups.groups.remove_empty("pinned.task").unwrap());
    assert_eq!(cores_of(pid), all);
    live.kill().unwrap();
    finish(&live);
}

#[test]
fn cores_are_shared_again_after_a_crash() {
    let Some(groups) = with_two_cores("crash") else {
        return;
    };
    let own = Limits {
        cores: [0].into(),
        ..Limits::default()
    };
    groups.create("sharing.task", &Limits::default());
    let sets = Path::new("/sys/fs/cgroup/cpuset").join(&groups.parent);
    // Version 2 has one tree, and each group that shares has the set itself.
    let (sets, sharing) = match sets.is_dir() {
        true => (sets, "shared"),
        false => (
            Path::new("/sys/fs/cgroup").join(&groups.parent),
            "sharing.task",
        ),
    };
    let shared = sets.join(sharing).join("cpuset.cpus");
    let before = fs::read_to_string(&shared).unwrap();
    groups.create("pinned.task", &own);
    assert_ne!(fs::read_to_string(&shared).unwrap(), before);
    // What an agent leaves that dies right after the group went.
    fs::remove_dir(sets.join("pinned.task")).unwrap();
    assert_ne!(fs::read_to_string(&shared).unwrap(), before);
    let next = Cgroups::detect(&groups.parent).unwrap().unwrap();
    next.share_cores().unwrap();
    assert_eq!(fs::read_to_string(&shared).unwrap(), before);
}

#[test]
fn changes_of_cores_under_load_leave_no_task_outside_its_own() {
    let Some(groups) = with_two_cores("load") else {
        return;
    };
    let rig = Rig::new();
    let go = fifo(&rig, "go");
    let script =
        "(while :; do /bin/true; done) & (while :; do /bin/true; done) & read x < go; kill -9 0";
    let sharing = groups.create("sharing.task", &Limits::default());
    let live = rig.start(&within(&sharing, Task::sh(1, script))).unwrap();
    let all = cores_of(1);
    for change in 0..500_u32 {
        let core = change % 2;
        let own = Limits {
            cores: [core].into(),
            ..Limits::default()
        };
        groups.create("pinned.task", &own);
        for pid in groups.groups.members("sharing.task").unwrap() {
            // It may have ended meanwhile, and a new one is at least as confined.
            if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
                let list = format!("Cpus_allowed_list:\t{all}\n");
                let own = format!("Cpus_allowed_list:\t{core}\n");
                assert!(
                    !status.contains(&list) && !status.contains(&own),
                    "{status}"
                );
            }
        }
        groups.groups.remove("pinned.task").unwrap();
    }
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&live).signal, Some(9));
}

#[test]
fn limit_of_memory_is_one_of_swap_too() {
    let Some(groups) = Groups::new("swap") else {
        return;
    };
    let of = |bytes: Option<u64>, no_swap| Limits {
        memory_max: bytes,
        no_swap,
        ..Limits::default()
    };
    // Made again with more, with less, and without: what it had before is in nobody's way.
    for megabytes in [Some(64), Some(128), Some(32), None, Some(64)] {
        let bytes = megabytes.map(|it| it << 20);
        let group = groups.create("one.task", &of(bytes, true));
        let dirs = group.procs.iter().filter_map(|procs| procs.parent());
        let mut found = dirs.filter_map(|dir| {
            let together = fs::read_to_string(dir.join("memory.memsw.limit_in_bytes"));
            let alone = fs::read_to_string(dir.join("memory.swap.max"));
            let expected = match (&alone, bytes) {
                (Ok(_), Some(_)) => "0".to_owned(),
                (Ok(_), None) => "max".to_owned(),
                (Err(_), bytes) => bytes.map_or("no limit".to_owned(), |it| it.to_string()),
            };
            Some((alone.or(together).ok()?.trim().to_owned(), expected))
        });
        let Some((is, expected)) = found.next_back() else {
            return eprintln!("skipped: the kernel does not count swap");
        };
        // Without a limit version 1 says the largest number of pages.
        assert!(
            is == expected || (bytes.is_none() && is.len() > 15),
            "{is}, not {expected}"
        );
    }
}

#[test]
fn shim_reports_oom_kill() {
    let Some(groups) = Groups::new("oom") else {
        return;
    };
    let limits = Limits {
        memory_max: Some(8 << 20),
        no_swap: true,
        ..Limits::default()
    };
    let group = groups.create("one.task", &limits);
    let rig = Rig::new();
    let exit = rig.run(&within(&group, Task::sh(1, "exec tail -n 1 /dev/zero")));
    assert_eq!((exit.signal, exit.oom), (Some(9), true));
    // The next run in the same group does not inherit it.
    let exit = rig.run(&within(&group, Task::sh(2, "exit 1")));
    assert_eq!((exit.code, exit.oom), (Some(1), false));
}

#[test]
fn leftovers_are_killed_by_cgroup() {
    let Some(groups) = Groups::new("leftovers") else {
        return;
    };
    let group = groups.create("one.task", &Limits::default());
    let rig = Rig::new();
    let (pid, go) = (fifo(&rig, "pid"), fifo(&rig, "go"));
    let script = "setsid sh -c '(echo $$ > pid; exec sleep 1000) & wait' & read x < go";
    let live = rig.start(&within(&group, Task::sh(1, script))).unwrap();
    let daemon = handle(receive(&pid).parse().unwrap());
    assert!(groups.groups.populated("one.task").unwrap());
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&live).code, Some(0));
    assert!(wait_readable(&daemon));
    assert!(!groups.groups.populated("one.task").unwrap());
}

#[test]
fn cgroup_of_killed_shim_is_killed_by_name() {
    let Some(groups) = Groups::new("kill") else {
        return;
    };
    let group = groups.create("one.task", &Limits::default());
    let rig = Rig::new();
    let live = rig
        .start(&within(&group, Task::sh(1, "sleep 1000 & sleep 1000")))
        .unwrap();
    let shim = rustix::process::Pid::from_raw(live.hello().unwrap().shim.pid).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    assert_eq!(outcome(&live), Outcome::ShimLost);
    let busy = groups.groups.remove("one.task").unwrap_err();
    assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    assert!(groups.groups.kill("one.task", SOON).unwrap());
    groups.groups.remove("one.task").unwrap();
    assert!(groups.groups.kill("one.task", SOON).unwrap());
}

#[test]
fn without_cgroup_kill_members_are_killed_one_by_one() {
    let Some(groups) = Groups::new("members") else {
        return;
    };
    let group = groups.create("one.task", &Limits::default());
    // Joined to the version 1 groups alone, so that the version 2 tree does not know it.
    let [cpu, memory, ..] = group.procs.as_slice() else {
        eprintln!("skipped: there are no control groups of version 1");
        return;
    };
    let rig = Rig::new();
    let script = "setsid sleep 1000 & sleep 1000 & echo up > ready; wait";
    let ready = fifo(&rig, "ready");
    let mut task = Task::sh(1, script);
    task.procs = vec![cpu.clone(), memory.clone()];
    let live = rig.start(&task).unwrap();
    assert_eq!(receive(&ready), "up");
    assert!(groups.groups.kill("one.task", SOON).unwrap());
    assert_eq!(finish(&live).signal, Some(9));
}

#[test]
fn cgroup_name_cannot_escape_parent() {
    let Some(groups) = Groups::new("names") else {
        return;
    };
    for name in ["", ".", "..", "a/b", "../a", "/a", "a/", "cgroup.procs"] {
        assert!(
            groups.groups.create(name, &Limits::default()).is_err(),
            "{name}"
        );
        assert!(groups.groups.remove(name).is_err(), "{name}");
        assert!(groups.groups.kill(name, SOON).is_err(), "{name}");
    }
    for parent in ["", "/", "..", "../x", "/x"] {
        assert!(Cgroups::detect(parent).is_err(), "{parent}");
    }
}

#[test]
fn cgroup_of_other_user_is_ignored() {
    let Some(groups) = Groups::new("other") else {
        return;
    };
    let parent = groups.parent.clone();
    // Of this one thread only.
    let other = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody)
            .map(|()| Cgroups::detect(&parent))
    });
    match other.join().unwrap() {
        Ok(found) => assert!(found.unwrap().is_none()),
        Err(_) => eprintln!("skipped: cannot become another user"),
    }
}

/// Where the parent of these groups may be.
fn dirs_of(groups: &Groups) -> Vec<PathBuf> {
    let trees = ["cpuset", "", "cpu", "memory", "pids", "unified"];
    let dirs = trees.map(|tree| Path::new("/sys/fs/cgroup").join(tree).join(&groups.parent));
    dirs.into_iter().filter(|dir| dir.is_dir()).collect()
}

#[test]
fn cgroups_cannot_be_locked_by_other_users() {
    let Some(groups) = Groups::new("closed") else {
        return;
    };
    let dirs = dirs_of(&groups);
    assert!(!dirs.is_empty());
    for dir in &dirs {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    // As it does for what an earlier agent made.
    Cgroups::detect(&groups.parent).unwrap().unwrap();
    let opened = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody)?;
        Ok(dirs.into_iter().find(|dir| fs::File::open(dir).is_ok()))
    });
    match opened.join().unwrap() {
        Ok(opened) => assert_eq!(opened, None),
        Err::<_, rustix::io::Errno>(_) => eprintln!("skipped: cannot become another user"),
    }
}

#[test]
fn lock_that_is_kept_for_ever_stops_no_task() {
    let Some(groups) = with_two_cores("locked") else {
        return;
    };
    let kept: Vec<fs::File> = dirs_of(&groups)
        .iter()
        .map(|dir| {
            let dir = fs::File::open(dir).unwrap();
            flock(&dir, FlockOperation::LockExclusive).unwrap();
            dir
        })
        .collect();
    groups.create("any.task", &Limits::default());
    groups.groups.share_cores().unwrap();
    drop(kept);
}

#[test]
fn cores_that_were_set_aside_by_half_are_given_back() {
    let Some(groups) = with_two_cores("half") else {
        return;
    };
    let shared = || groups.groups.shared_cores().unwrap().unwrap();
    let before = shared();
    // As an agent leaves it that dies in the middle: it has no cores yet.
    for dir in dirs_of(&groups) {
        fs::create_dir(dir.join("half")).unwrap();
    }
    groups.groups.share_cores().unwrap();
    groups.groups.give_back("half").unwrap();
    assert_eq!(groups.groups.list().unwrap(), [""; 0]);
    assert_eq!(shared(), before);
    groups.groups.give_back("half").unwrap();
}
