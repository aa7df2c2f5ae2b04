//! Who dies when: agents that come back, shims that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{OUT, Rig, Task, fifo, finish, handle, launch_id, outcome, receive, wait_readable};
use drover_io_real::shim::record::{Record, State};
use drover_io_real::shim::{Outcome, Recovered, ShimHome, StartError};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

fn kill_shim(record: &Record) {
    kill_process(Pid::from_raw(record.shim.pid).unwrap(), Signal::KILL).unwrap();
}

fn running(found: Recovered) -> drover_io_real::shim::Live {
    match found {
        Recovered::Running(live) => live,
        other => panic!("expected a running task, got {other:?}"),
    }
}

#[test]
fn next_agent_finds_task_and_exit() {
    let rig = Rig::new();
    let go = fifo(&rig, "go");
    let task = Task::sh(1, "echo before; read x < go; echo after; exit 4");
    let first = rig.start(&task).unwrap();
    let home = ShimHome::open(&rig.dir.path().join("data")).unwrap();
    let second = running(home.recover(&task.launch).unwrap());
    assert_eq!(second.task(), first.task());
    assert_eq!(home.list().unwrap(), [task.launch.as_str()]);
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&second).code, Some(4));
    assert_eq!(finish(&first).code, Some(4));
    assert!(
        matches!(home.recover(&task.launch).unwrap(), Recovered::Exited(exit) if exit.code == Some(4))
    );
    assert_eq!(rig.stdout(), "before\nafter\n");
    home.forget(&task.launch).unwrap();
    assert!(home.read_record(&task.launch).unwrap().is_none());
}

/// Not a test of its own: what [`killed_agent_leaves_tasks_running`] runs as its agent.
#[test]
fn helper_agent_to_kill() {
    let Some(dir) = std::env::var_os("DROVER_TEST_AGENT") else {
        return;
    };
    let rig = Rig::at(dir.into());
    let live = rig
        .start(&Task::sh(1, "read x < go; echo survived; exit 6"))
        .unwrap();
    fs::write(
        rig.task_dir().join("started"),
        format!("{}\n", live.task().pid),
    )
    .unwrap();
    // Killed here.
    kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
    drop(live);
}

#[test]
fn killed_agent_leaves_tasks_running() {
    let rig = Rig::new();
    let (go, started) = (fifo(&rig, "go"), fifo(&rig, "started"));
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_agent_to_kill"])
        .env("DROVER_TEST_AGENT", rig.dir.path())
        .spawn()
        .unwrap();
    let pid: i32 = receive(&started).parse().unwrap();
    assert!(!agent.wait().unwrap().success());
    let live = running(rig.home.recover(&launch_id(1)).unwrap());
    assert_eq!(live.task().pid, pid);
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&live).code, Some(6));
    assert_eq!(rig.stdout(), "survived\n");
}

#[test]
fn killed_shim_is_replaced_without_data_loss() {
    let rig = Rig::new();
    let (half, go) = (fifo(&rig, "half"), fifo(&rig, "go"));
    let script = "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo $i; \
        [ $i = 2000 ] && echo > half; done; read x < go; exit 8";
    let task = Task {
        max_files: 1000,
        max_file_size: 700,
        ..Task::sh(1, script)
    };
    let mut live = rig.start(&task).unwrap();
    let mut takeovers = 0;
    receive(&half);
    // In the middle of the output, and again, and again.
    while takeovers < 5 {
        kill_shim(&live.hello().unwrap());
        assert_eq!(outcome(&live), Outcome::ShimLost);
        let next = rig.takeover(&live, &task).unwrap();
        assert_eq!(next.task(), live.task());
        live = next;
        takeovers += 1;
    }
    fs::write(go, "go\n").unwrap();
    let exit = finish(&live);
    assert_eq!((exit.code, exit.known), (Some(8), true));
    let expected = (1..=4000).fold(String::new(), |mut text, number| {
        writeln!(text, "{number}").unwrap();
        text
    });
    assert_eq!(rig.output(OUT, 700), expected);
}

/// Until the next shim comes, only the agent that found the task again keeps open what it writes to.
#[test]
fn shim_killed_after_restart_of_agent_is_replaced_without_data_loss() {
    let rig = Rig::new();
    let (go, written) = (fifo(&rig, "go"), fifo(&rig, "written"));
    let script = "trap '' PIPE; read x < go; echo alone && state=well; echo $state > written; \
        read x < go; echo after; exit 3";
    let task = Task::sh(1, script);
    drop(rig.start(&task).unwrap());
    let found = running(rig.home.recover(&task.launch).unwrap());
    kill_shim(&found.hello().unwrap());
    assert_eq!(outcome(&found), Outcome::ShimLost);
    fs::write(&go, "go\n").unwrap();
    assert_eq!(receive(&written), "well");
    let next = rig.takeover(&found, &task).unwrap();
    fs::write(&go, "go\n").unwrap();
    assert_eq!(finish(&next).code, Some(3));
    assert_eq!(rig.stdout(), "alone\nafter\n");
}

#[test]
fn adopted_task_gets_signals_and_leaves_nothing() {
    let rig = Rig::new();
    let pid = fifo(&rig, "pid");
    let task = Task::sh(1, "trap 'exit 2' TERM; sleep 1000 & echo $! > pid; wait");
    let live = rig.start(&task).unwrap();
    let child = handle(receive(&pid).parse().unwrap());
    kill_shim(&live.hello().unwrap());
    assert_eq!(outcome(&live), Outcome::ShimLost);
    let live = rig.takeover(&live, &task).unwrap();
    live.signal(15).unwrap();
    assert_eq!(finish(&live).code, Some(2));
    assert!(wait_readable(&child));
}

#[test]
fn living_shim_is_not_replaced() {
    let rig = Rig::new();
    let task = Task::sh(1, "exec sleep 1000");
    let live = rig.start(&task).unwrap();
    assert!(matches!(
        rig.takeover(&live, &task),
        Err(StartError::AlreadyClaimed)
    ));
    live.kill().unwrap();
    finish(&live);
    assert!(matches!(
        rig.takeover(&live, &task),
        Err(StartError::AlreadyClaimed)
    ));
}

#[test]
fn task_without_shim_is_gone() {
    let rig = Rig::new();
    let task = Task::sh(1, "exec sleep 1000");
    let live = rig.start(&task).unwrap();
    let main = handle(live.task().pid);
    kill_shim(&live.hello().unwrap());
    assert_eq!(outcome(&live), Outcome::ShimLost);
    match rig.home.recover(&task.launch).unwrap() {
        Recovered::Vanished {
            task: Some(task),
            exit: None,
        } => assert_eq!(task, live.task()),
        other => panic!("{other:?}"),
    }
    rustix::process::pidfd_send_signal(&main, Signal::KILL).unwrap();
    assert!(wait_readable(&main));
    // A zombie counts as gone: nothing of it can run.
    match rig.home.recover(&task.launch).unwrap() {
        Recovered::Vanished {
            task: None,
            exit: None,
        } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn shim_dead_before_exec_started_nothing() {
    let rig = Rig::new();
    let launch = launch_id(1);
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap()[..36]
        .try_into()
        .unwrap();
    let record = Record::new(launch.as_bytes().try_into().unwrap(), boot, State::Starting);
    let path = rig.dir.path().join("data/run").join(format!("{launch}.r"));
    fs::write(&path, record.encode()).unwrap();
    assert!(matches!(
        rig.home.recover(&launch).unwrap(),
        Recovered::NeverStarted
    ));
    assert_eq!(
        rig.home.read_record(&launch).unwrap().unwrap().state,
        State::Abandoned
    );
    fs::write(&path, "no record").unwrap();
    assert!(matches!(
        rig.home.recover(&launch).unwrap(),
        Recovered::Vanished { .. }
    ));
    assert!(matches!(
        rig.start(&Task::sh(1, "true")),
        Err(StartError::AlreadyClaimed)
    ));
}

#[test]
fn shim_is_small() {
    let rig = Rig::new();
    let live = rig
        .start(&Task::sh(1, "echo warm; exec sleep 1000"))
        .unwrap();
    let shim = live.hello().unwrap().shim.pid;
    // The answer leaves before its descriptor is closed; a second one shows that it is.
    live.hello().unwrap();
    let fds = || fs::read_dir(format!("/proc/{shim}/fd")).unwrap().count();
    assert!(
        fds() <= 7,
        "more than six descriptors and a client: {}",
        fds()
    );
    assert_eq!(
        fs::read_dir(format!("/proc/{shim}/task")).unwrap().count(),
        1
    );
    let maps = fs::read_to_string(format!("/proc/{shim}/smaps")).unwrap();
    let (mut private, mut is_image) = (0, false);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (name, value) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        if !name.ends_with(':') {
            is_image = line.contains("/shim-");
        } else if match is_image {
            // All shims share the image, but for the pages of it that each has changed.
            true => name == "Anonymous:",
            false => matches!(name, "Private_Dirty:" | "Private_Clean:"),
        } {
            private += value.parse::<u64>().unwrap();
        }
    }
    eprintln!(
        "a shim's private memory: {private} KiB, descriptors: {}",
        fds()
    );
    assert!(private <= 24, "{private} KiB\n{maps}");
    live.kill().unwrap();
    finish(&live);
}
