//! Starting tasks: what they get, how their end is reported, and what stops them from starting.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{Rig, Task, c, fifo, finish, handle, is_root, receive, wait_readable};
use drover_io_real::shim::record::State;
use drover_io_real::shim::{Live, Recovered, StartError, Step};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, pidfd_send_signal, setrlimit};
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn refused(result: Result<Live, StartError>) -> (Step, i32, Option<String>) {
    match result {
        Err(StartError::Exec { step, errno, path }) => (step, errno, path),
        other => panic!("expected a failed start, got {other:?}"),
    }
}

#[test]
fn exit_code_and_output_are_reported() {
    let rig = Rig::new();
    let exit = rig.run(&Task::sh(1, "echo out; echo err >&2; exit 7"));
    assert_eq!(
        (exit.code, exit.signal, exit.known, exit.oom),
        (Some(7), None, true, false)
    );
    assert!(exit.started_ns > 0 && exit.finished_ns >= exit.started_ns);
    assert_eq!(
        (rig.stdout().as_str(), rig.stderr().as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn killing_signal_is_reported() {
    let rig = Rig::new();
    let exit = rig.run(&Task::sh(1, "kill -9 $$"));
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
}

#[test]
fn signals_reach_the_main_process_only_while_it_lives() {
    let rig = Rig::new();
    let ready = fifo(&rig, "ready");
    let task = Task::sh(
        1,
        "trap 'exit 3' TERM; echo up > ready; while :; do read x < ready; done",
    );
    let live = rig.start(&task).unwrap();
    assert_eq!(receive(&ready), "up");
    live.signal(15).unwrap();
    let record = finish(&live);
    assert_eq!(record.code, Some(3));
    assert!(live.signal(15).is_err());
}

#[test]
fn invalid_signal_is_refused() {
    let rig = Rig::new();
    let live = rig.start(&Task::sh(1, "exec sleep 1000")).unwrap();
    for number in [-1, 0, 65] {
        assert_eq!(live.signal(number).unwrap_err().raw_os_error(), Some(22));
    }
    live.kill().unwrap();
    assert_eq!(finish(&live).signal, Some(9));
}

#[test]
fn task_gets_exact_arguments() {
    let rig = Rig::new();
    let script = "tr '\\0' '\\n' < /proc/self/environ; ls /proc/self/fd; \
        grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; pwd; \
        cut -d' ' -f6 /proc/$$/stat; echo $$; cat /proc/self/oom_score_adj";
    let mut task = Task::sh(1, script);
    task.env = vec![c("PATH=/usr/bin:/bin"), c("A=b c")];
    task.umask = Some(0o027);
    task.oom_score_adj = Some(500);
    assert_eq!(rig.run(&task).code, Some(0));
    let output = rig.stdout();
    let lines: Vec<&str> = output.lines().collect();
    // The shell adds PWD and such for its children, so only ours are compared, and none else may be.
    assert!(lines.contains(&"A=b c"), "{output}");
    let set: Vec<_> = lines.iter().filter(|line| line.contains('=')).collect();
    let shell = ["PWD=", "OLDPWD=", "SHLVL=", "_=", "PATH=", "A="];
    assert!(
        set.iter()
            .all(|line| shell.iter().any(|own| line.starts_with(own))),
        "{output}"
    );
    // 3 is ls's own, of the directory.
    let fds: Vec<_> = lines
        .iter()
        .filter(|l| l.len() < 4 && l.parse::<u8>().is_ok())
        .collect();
    assert_eq!(fds[..4], [&"0", &"1", &"2", &"3"], "{output}");
    for name in ["SigBlk", "SigIgn"] {
        assert!(
            output.contains(&format!("{name}:\t0000000000000000")),
            "{output}"
        );
    }
    let rest = &lines[lines.len() - 5..];
    assert_eq!(rest[0], "0027");
    assert_eq!(
        fs::canonicalize(rest[1]).unwrap(),
        fs::canonicalize(rig.task_dir()).unwrap()
    );
    assert_eq!(rest[2], rest[3], "not a session of its own: {output}");
    assert_eq!(rest[4], "500");
}

#[test]
fn open_files_limit_is_set() {
    let rig = Rig::new();
    let limit = |number: u32, soft: Option<u64>| {
        rig.run(&Task {
            open_files: soft,
            ..Task::sh(number, "ulimit -Sn; ulimit -Hn")
        });
        let output = rig.stdout();
        let lines: Vec<String> = output.lines().rev().take(2).map(str::to_owned).collect();
        (lines[1].clone(), lines[0].clone())
    };
    let before = drover_io_real::open_files::raise().unwrap();
    let (soft, hard) = limit(1, None);
    assert_eq!(soft, hard, "it was not raised");
    assert_eq!(drover_io_real::open_files::raise().unwrap(), before);
    assert_eq!(limit(2, Some(77)), ("77".to_owned(), hard.clone()));
    assert_eq!(limit(3, Some(u64::MAX - 1)), (hard.clone(), hard.clone()));
    if let Some(before) = before {
        assert_eq!(limit(4, Some(before)), (before.to_string(), hard));
    }
}

#[test]
fn shim_runs_from_memory_that_nobody_can_write() {
    let rig = Rig::new();
    if let Some(why) = rig.home.remark() {
        return eprintln!("skipped: {why}");
    }
    let live = rig.start(&Task::sh(1, "exec sleep 1000")).unwrap();
    let shim = live.hello().unwrap().shim.pid;
    let exe = format!("/proc/{shim}/exe");
    let file = rig.home.program();
    let link = fs::read_link(&exe).unwrap();
    let of_memory = format!("/memfd:{} (deleted)", file.display());
    assert_eq!(link.to_str(), Some(of_memory.as_str()));
    let (image, on_disk) = (fs::metadata(&exe).unwrap(), fs::metadata(file).unwrap());
    assert_ne!((image.dev(), image.ino()), (on_disk.dev(), on_disk.ino()));
    let before = fs::read(&exe).unwrap();
    assert_eq!(before, fs::read(file).unwrap());
    // What the kernel does not refuse while it runs, the seals do.
    let written = fs::File::options().write(true).open(&exe);
    assert!(
        written
            .and_then(|mut image| image.write_all(b"other"))
            .is_err()
    );
    assert_eq!(fs::read(&exe).unwrap(), before);
    // Other shims share it, whatever was done to its mode.
    let _ = fs::set_permissions(&exe, fs::Permissions::from_mode(0o600));
    assert_eq!(rig.run(&Task::sh(2, "exit 3")).code, Some(3));
    live.kill().unwrap();
    assert!(wait_readable(&live));
}

#[test]
fn image_that_a_task_keeps_open_to_write_stops_no_start() {
    let rig = Rig::new();
    if let Some(why) = rig.home.remark() {
        return eprintln!("skipped: {why}");
    }
    let live = rig.start(&Task::sh(1, "exec sleep 1000")).unwrap();
    let shim = live.hello().unwrap().shim.pid;
    let image = fs::File::open(format!("/proc/{shim}/exe")).unwrap();
    live.kill().unwrap();
    assert!(wait_readable(&live));
    // While it runs, the kernel refuses that; and whoever is not root may not write.
    let again = format!("/proc/self/fd/{}", image.as_raw_fd());
    let Ok(kept) = fs::File::options().write(true).open(again) else {
        return eprintln!("skipped: the image cannot be opened to write");
    };
    assert_eq!(rig.run(&Task::sh(2, "exit 3")).code, Some(3));
    // The other copy is one that nobody can write, too.
    let live = rig.start(&Task::sh(3, "exec sleep 1000")).unwrap();
    let exe = format!("/proc/{}/exe", live.hello().unwrap().shim.pid);
    let link = fs::read_link(&exe).unwrap();
    assert!(link.to_str().unwrap().starts_with("/memfd:"), "{link:?}");
    assert_ne!(
        fs::metadata(&exe).unwrap().ino(),
        image.metadata().unwrap().ino()
    );
    drop(kept);
    live.kill().unwrap();
    assert!(wait_readable(&live));
}

#[test]
fn shim_dumps_no_core_and_task_may_ask_for_one() {
    let rig = Rig::new();
    let of = |pid: i32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max core file size"));
        let words: Vec<String> = line
            .unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        (words[0].clone(), words[1].clone())
    };
    let begun = |launch| {
        let live = rig.start(&Task::sh(launch, "exec sleep 1000")).unwrap();
        let record = live.hello().unwrap();
        let found = [record.shim.pid, record.task.pid].map(of);
        live.kill().unwrap();
        assert!(wait_readable(&live));
        found
    };
    let pairs =
        |pairs: [(&str, &str); 2]| pairs.map(|(soft, hard)| (soft.to_owned(), hard.to_owned()));
    // One byte: with none, the kernel would still start a program that takes dumps.
    let (_, hard) = of(std::process::id().cast_signed());
    if hard != "0" {
        assert_eq!(begun(1), pairs([("1", &hard), ("0", &hard)]));
    }
    let before = getrlimit(Resource::Core);
    let at_most = |most| {
        let (current, maximum) = (Some(0), Some(most));
        setrlimit(Resource::Core, Rlimit { current, maximum })
    };
    at_most(0).unwrap();
    // Not every root may raise it.
    let may_raise = at_most(1).is_ok();
    at_most(0).unwrap();
    let expected = match may_raise {
        true => pairs([("1", "1"), ("0", "1")]),
        false => pairs([("0", "0"), ("0", "0")]),
    };
    assert_eq!(begun(2), expected);
    // Others of this process begin as before, where that can be.
    let _ = setrlimit(Resource::Core, before);
}

#[test]
fn environment_is_exact() {
    let rig = Rig::new();
    let mut task = Task::program(1, &["/usr/bin/env"], &["env"]);
    task.env = vec![c("ONLY=this")];
    rig.run(&task);
    assert_eq!(rig.stdout(), "ONLY=this\n");
}

#[test]
fn user_and_groups_are_exact() {
    if !is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let rig = Rig::new();
    let mut task = Task::sh(1, "id -u; id -g; grep Groups /proc/self/status");
    task.ids = Some((65534, 65533));
    task.groups = Some(vec![1234, 4321]);
    assert_eq!(rig.run(&task).code, Some(0));
    assert_eq!(rig.stdout(), "65534\n65533\nGroups:\t1234 4321 \n");
    let mut none = Task::sh(2, "grep Groups /proc/self/status");
    (none.ids, none.groups) = (Some((65534, 65534)), Some(Vec::new()));
    rig.run(&none);
    assert!(rig.stdout().ends_with("Groups:\t \n"), "{}", rig.stdout());
}

#[test]
fn first_existing_candidate_is_executed() {
    let rig = Rig::new();
    let script = rig.task_dir().join("tool");
    fs::write(&script, "#!/bin/sh\necho script $0 $1\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    rig.run(&Task::program(
        1,
        &["local/tool", "tool", "/bin/false"],
        &["tool", "x"],
    ));
    assert_eq!(rig.stdout(), format!("script {} x\n", script.display()));
    fs::copy("/bin/echo", rig.task_dir().join("say")).unwrap();
    rig.run(&Task::program(2, &["say"], &["say", "binary"]));
    assert!(rig.stdout().ends_with("binary\n"));
}

#[test]
fn unreadable_candidate_is_skipped() {
    let rig = Rig::new();
    let closed = rig.dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("tool"), "").unwrap();
    let plain = rig.dir.path().join("plain");
    fs::write(&plain, "").unwrap();
    let there = plain.to_str().unwrap().to_owned();
    let hidden = closed.join("tool").to_str().unwrap().to_owned();
    fs::set_permissions(rig.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let start = |number: u32, program: &[&str]| {
        let mut task = Task::program(number, program, &["true"]);
        task.ids = is_root().then_some((65534, 65534));
        rig.start(&task)
    };
    finish(&start(1, &["true", &hidden, &there, "/bin/true"]).unwrap());
    let (step, denied, missing) = (Step::Exec, 13, 2);
    assert_eq!(
        refused(start(2, &["no", &there, &hidden, "/no"])),
        (step, denied, Some(there))
    );
    let path = Some("/no".to_owned());
    assert_eq!(refused(start(3, &[&hidden, "/no"])), (step, missing, path));
    let path = Some(hidden.clone());
    assert_eq!(refused(start(4, &[&hidden])), (step, denied, path));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn symlink_out_of_task_dir_is_refused() {
    let rig = Rig::new();
    symlink("/bin/sh", rig.task_dir().join("absolute")).unwrap();
    symlink("../../../../../../../../bin/sh", rig.task_dir().join("up")).unwrap();
    let paths = ["absolute", "up", "../../../../../../../bin/sh"];
    for (number, path) in (1..).zip(paths) {
        let task = Task::program(number, &[path], &["sh", "-c", "echo out"]);
        assert_eq!(
            refused(rig.start(&task)),
            (Step::Exec, 2, Some(path.to_owned()))
        );
    }
}

#[test]
fn failed_start_has_reason() {
    let rig = Rig::new();
    let missing = rig.start(&Task::program(1, &["nothing", "/nowhere/at/all"], &["x"]));
    assert_eq!(
        refused(missing),
        (Step::Exec, 2, Some("/nowhere/at/all".to_owned()))
    );
    fs::write(rig.task_dir().join("data"), "").unwrap();
    let plain = rig.start(&Task::program(2, &["data"], &["x"]));
    assert_eq!(refused(plain), (Step::Exec, 13, Some("data".to_owned())));
    let mut lost = Task::sh(3, "true");
    lost.work_dir = Some(c("/nowhere"));
    assert_eq!(
        refused(rig.start(&lost)),
        (Step::WorkDir, 2, Some("/nowhere".to_owned()))
    );
    let mut alone = Task::sh(4, "true");
    alone.procs = vec!["/proc/nowhere".into()];
    assert_eq!(refused(rig.start(&alone)).0, Step::Cgroup);
    for number in 1..=4 {
        let found = rig.home.recover(&common::launch_id(number)).unwrap();
        assert!(matches!(found, Recovered::Failed { .. }), "{found:?}");
    }
}

#[test]
fn launch_starts_once() {
    let rig = Rig::new();
    let task = Task::sh(1, "echo ran");
    let live = rig.start(&task).unwrap();
    assert!(matches!(rig.start(&task), Err(StartError::AlreadyClaimed)));
    finish(&live);
    assert!(matches!(rig.start(&task), Err(StartError::AlreadyClaimed)));
    assert_eq!(rig.stdout(), "ran\n");
}

#[test]
fn concurrent_starts_launch_once() {
    let rig = Rig::new();
    let task = Task::sh(1, "echo ran");
    let won = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..8).map(|_| scope.spawn(|| rig.start(&task))).collect();
        let results: Vec<_> = starters
            .into_iter()
            .map(|starter| starter.join().unwrap())
            .collect();
        results
            .into_iter()
            .filter_map(Result::ok)
            .collect::<Vec<_>>()
    });
    assert_eq!(won.len(), 1);
    finish(&won[0]);
    assert_eq!(rig.stdout(), "ran\n");
}

#[test]
fn abandoned_launch_never_starts() {
    let rig = Rig::new();
    let task = Task::sh(1, "echo ran");
    let found = rig.home.recover(&task.launch).unwrap();
    assert!(matches!(found, Recovered::NeverStarted));
    assert!(matches!(rig.start(&task), Err(StartError::AlreadyClaimed)));
    rig.home.forget(&task.launch).unwrap();
    rig.home.forget(&task.launch).unwrap();
    assert!(rig.home.list().unwrap().is_empty());
}

#[test]
fn launch_ids_are_checked() {
    let rig = Rig::new();
    for id in [
        "",
        "../../../../etc/passwd-xxxxxxxxxxxxxxx",
        "00000000-0000-4000-8000-00000000000/",
    ] {
        let mut task = Task::sh(1, "true");
        task.launch = id.to_owned();
        assert!(matches!(rig.start(&task), Err(StartError::Spawn(_))));
        assert!(rig.home.recover(id).is_err());
        assert!(rig.home.forget(id).is_err());
    }
}

#[test]
fn leftover_processes_are_killed() {
    let rig = Rig::new();
    let pid = fifo(&rig, "pid");
    // A daemon as they come: two forks and a session of its own, with the output still held.
    let script = "setsid sh -c '(echo $$ > pid; exec sleep 1000) & wait' & read x < go; exit 5";
    let go = fifo(&rig, "go");
    let live = rig.start(&Task::sh(1, script)).unwrap();
    let daemon = handle(receive(&pid).parse().unwrap());
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&live).code, Some(5));
    assert!(wait_readable(&daemon), "the daemon lives");
}

#[test]
fn kill_reaches_all_processes() {
    let rig = Rig::new();
    let pid = fifo(&rig, "pid");
    let script = "trap '' TERM INT; setsid sleep 1000 & echo $! > pid; wait";
    let live = rig.start(&Task::sh(1, script)).unwrap();
    let child = handle(receive(&pid).parse().unwrap());
    live.kill().unwrap();
    assert_eq!(finish(&live).signal, Some(9));
    assert!(wait_readable(&child));
}

/// A start whose task waits, before its program is executed, until somebody reads a pipe that stands for
/// its control group. `meanwhile` gets the shim. How the start went, and the task.
fn held_up(meanwhile: impl FnOnce(&OwnedFd)) -> (Rig, Result<Live, StartError>, OwnedFd) {
    let rig = Rig::new();
    let gate = fifo(&rig, "gate");
    let mut task = Task::sh(1, "exec sleep 1000");
    task.procs = vec![gate.clone()];
    let (started, main) = std::thread::scope(|scope| {
        let starting = scope.spawn(|| rig.start(&task));
        let record = loop {
            match rig.home.read_record(&task.launch) {
                Ok(Some(record)) if record.state == State::Running => break record,
                _ => std::thread::yield_now(),
            }
        };
        let main = handle(record.task.pid);
        meanwhile(&handle(record.shim.pid));
        // Opening it lets the task go on.
        receive(&gate);
        (starting.join().unwrap(), main)
    });
    (rig, started, main)
}

#[test]
fn shim_that_is_stopped_during_the_start_is_continued() {
    let (_rig, started, _) = held_up(|shim| pidfd_send_signal(shim, Signal::STOP).unwrap());
    let live = started.unwrap();
    assert!(live.take_continued());
    live.kill().unwrap();
    assert_eq!(finish(&live).signal, Some(9));
}

#[test]
fn shim_killed_during_start_is_reported_lost() {
    let (rig, started, main) = held_up(|shim| {
        pidfd_send_signal(shim, Signal::KILL).unwrap();
        assert!(wait_readable(shim));
    });
    assert!(matches!(started, Err(StartError::Lost)), "{started:?}");
    // It had let the task go.
    let found = rig.home.recover(&common::launch_id(1)).unwrap();
    assert!(matches!(found, Recovered::Vanished { task: Some(_), .. }));
    pidfd_send_signal(&main, Signal::KILL).unwrap();
    assert!(wait_readable(&main));
}
