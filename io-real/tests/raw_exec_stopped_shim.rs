//! The driver `raw_exec` and tasks that are enemies of their shims: they stop them, kill them, or take
//! their sockets away. Whatever they do, they can be stopped and destroyed, and people hear why.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::driver::{World, sh};
use common::{handle, receive, wait_readable};
use drover_core::effect::{DriverEffect, request};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::ExitResult;
use drover_core::model::task::LogConfig;
use drover_core::op::{Failure, Op};
use drover_io_real::shim::ShimHome;
use drover_io_real::shim::record::{Record, State};
use rustix::io::dup2;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::{Signal, pidfd_send_signal};
use std::fs;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a driver said until it gave the answer that was waited for.
#[derive(Default)]
struct Received {
    reported: Vec<String>,
    exits: Vec<ExitResult>,
}

impl Received {
    fn note(&mut self, input: DriverInput) {
        match input {
            DriverInput::Event { message, .. } => self.reported.push(message),
            DriverInput::Exited { result, .. } => self.exits.push(result),
            DriverInput::Stopped { result, .. } => result.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn has_event(&self, words: &str) -> bool {
        self.reported
            .iter()
            .any(|reported| reported.contains(words))
    }
}

/// Destroys a launch. What was said until then, and the answer.
fn destroy(world: &mut World, launch: u128) -> (Received, Result<Option<ExitResult>, Failure>) {
    let launch = LaunchId(launch);
    let asked = world.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
    let mut received = Received::default();
    loop {
        match world.receive() {
            DriverInput::Destroyed { op, result, .. } if op == asked => return (received, result),
            other => received.note(other),
        }
    }
}

/// Waits for the end of a launch. What was said until then.
fn exited(world: &mut World) -> Received {
    let mut received = Received::default();
    while received.exits.is_empty() {
        let input = world.receive();
        received.note(input);
    }
    received
}

fn shim(world: &World, launch: u128) -> OwnedFd {
    handle(shim_pid(world, launch))
}

fn shim_pid(world: &World, launch: u128) -> i32 {
    let home = ShimHome::open(world.data.path()).unwrap();
    let record = home.read_record(&LaunchId(launch).to_string()).unwrap();
    record.unwrap().shim.pid
}

/// Stops a shim as its task may, and waits until it stands still.
fn stop_shim(world: &World, launch: u128) {
    let pid = shim_pid(world, launch);
    pidfd_send_signal(handle(pid), Signal::STOP).unwrap();
    while !fs::read_to_string(format!("/proc/{pid}/stat"))
        .unwrap()
        .contains(") T ")
    {
        std::thread::yield_now();
    }
}

/// Starts a task whose main process says `up` when it has done what `script` says, and then runs on.
fn start(world: &mut World, launch: u128, script: &str) -> OwnedFd {
    let up = world.fifo(&format!("up{launch}"));
    let script = format!("{script}; echo $$ > up{launch}; while :; do sleep 1000 & wait; done");
    world.start(launch, sh(&script)).unwrap();
    handle(receive(&up).parse().unwrap())
}

/// A process that was a shim and is none any more.
fn assert_gone(world: &mut World, launch: u128, processes: &[OwnedFd]) {
    assert!(processes.iter().all(wait_readable), "something lives on");
    world.assert_gone(launch);
}

#[test]
fn stop_of_task_with_stopped_shim_works() {
    let mut world = World::new("stopped-stop");
    let main = start(&mut world, 1, "trap 'exit 7' TERM; kill -STOP $PPID");
    let shim = shim(&world, 1);
    world.stop(1, "SIGTERM");
    let received = exited(&mut world);
    assert_eq!(received.exits[0].code, Some(7));
    assert!(received.has_event("was stopped, and has been continued"));
    let (_, ended) = destroy(&mut world, 1);
    assert_eq!(ended.unwrap().unwrap().code, Some(7));
    assert_gone(&mut world, 1, &[main, shim]);
}

#[test]
fn destroy_of_task_with_stopped_shim_reports_it() {
    let mut world = World::new("stopped-destroy");
    let main = start(&mut world, 1, "trap '' TERM INT; kill -STOP $PPID");
    let shim = shim(&world, 1);
    let (received, ended) = destroy(&mut world, 1);
    assert_eq!(ended.unwrap().unwrap().signal, 9);
    assert!(received.has_event("was stopped, and has been continued"));
    assert_gone(&mut world, 1, &[main, shim]);
}

#[test]
fn task_that_keeps_stopping_its_shim_is_destroyed() {
    let mut world = World::new("stopped-again");
    let up = world.fifo("up");
    let script = "kill -STOP $PPID; echo $$ > up; while :; do kill -STOP $PPID; done";
    world.start(1, sh(script)).unwrap();
    let main = handle(receive(&up).parse().unwrap());
    let shim = shim(&world, 1);
    let (received, ended) = destroy(&mut world, 1);
    assert!(ended.is_ok(), "{ended:?}");
    assert!(!received.reported.is_empty());
    assert_gone(&mut world, 1, &[main, shim]);
}

#[test]
fn exit_of_task_with_stopped_shim_is_noticed() {
    let mut world = World::new("stopped-end");
    let go = world.fifo("go");
    let script = "read x < go; kill -STOP $PPID; exit 3";
    world.start(1, sh(script)).unwrap();
    fs::write(go, "go\n").unwrap();
    let received = exited(&mut world);
    assert_eq!(received.exits[0].code, Some(3));
    assert!(received.has_event("was stopped, and has been continued"));
    let (_, ended) = destroy(&mut world, 1);
    assert_eq!(ended.unwrap().unwrap().code, Some(3));
    world.assert_gone(1);
}

#[test]
fn unresponsive_shim_is_destroyed_with_task() {
    let mut world = World::new("silent-destroy");
    let main = start(&mut world, 1, "trap '' TERM INT");
    let shim = shim(&world, 1);
    let socket = format!("{}.s", LaunchId(1));
    fs::remove_file(world.run_dir().join(socket)).unwrap();
    let (received, ended) = destroy(&mut world, 1);
    assert!(!ended.unwrap().unwrap().is_success());
    assert!(received.has_event("did not answer, and was killed"));
    assert_gone(&mut world, 1, &[main, shim]);
}

/// Puts in the place of a shim's socket one that takes requests and answers none.
fn silence(world: &World, launch: u128) -> OwnedFd {
    let path = world.run_dir().join(format!("{}.s", LaunchId(launch)));
    fs::remove_file(&path).unwrap();
    let kind = SocketType::SEQPACKET;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    // A socket's path has 108 bytes at most.
    let short = world.dir.path().join(format!("{launch}"));
    bind(&socket, &SocketAddrUnix::new(&short).unwrap()).unwrap();
    fs::rename(short, path).unwrap();
    listen(&socket, 16).unwrap();
    socket
}

/// As many tasks end whose shims are silent as the runtime has threads for what blocks: others start and
/// end meanwhile, and what else blocks is done.
#[test]
fn silent_shims_delay_nothing_else() {
    const THREADS: usize = 2;
    let mut world = World::new("silent-many");
    world.begin_with(THREADS);
    let silent: Vec<u128> = (1..=2 * THREADS as u128).collect();
    let mut mains = Vec::new();
    let mut sockets = Vec::new();
    for launch in &silent {
        mains.push(start(&mut world, *launch, "true"));
        sockets.push(silence(&world, *launch));
    }
    let hanging: Vec<Op> = silent
        .iter()
        .map(|launch| {
            let launch = LaunchId(*launch);
            world.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }))
        })
        .collect();
    let started = world.ask_start(9, sh("exec sleep 1000"));
    // Answers come in the order in which work ends: what hangs takes seconds.
    match world.receive() {
        DriverInput::Started { op, .. } => assert_eq!(op, started),
        other => panic!("it was waited for what hangs: {other:?}"),
    }
    assert_eq!(destroy(&mut world, 9).1.unwrap().unwrap().signal, 9);
    let life = world.life();
    let other = life.runtime.block_on(async {
        let work = tokio::task::spawn_blocking(|| 7);
        tokio::select! {
            biased;
            done = work => done.ok(),
            _ = life.reported.recv() => None,
        }
    });
    assert_eq!(other, Some(7), "something that hung has ended before");
    let mut received = Received::default();
    let mut left = hanging;
    while !left.is_empty() {
        match world.receive() {
            DriverInput::Destroyed { op, result, .. } => {
                result.unwrap();
                left.retain(|asked| *asked != op);
            }
            other => received.note(other),
        }
    }
    assert!(received.has_event("did not answer, and was killed"));
    assert!(mains.iter().all(wait_readable), "something lives on");
}

#[test]
fn signal_reaches_task_of_unresponsive_shim() {
    let mut world = World::new("silent-signal");
    let main = start(&mut world, 1, "trap 'exit 5' TERM");
    let socket = format!("{}.s", LaunchId(1));
    fs::remove_file(world.run_dir().join(socket)).unwrap();
    world.stop(1, "SIGTERM");
    assert_eq!(exited(&mut world).exits[0].code, Some(5));
    let (_, ended) = destroy(&mut world, 1);
    assert_eq!(ended.unwrap().unwrap().code, Some(5));
    assert_gone(&mut world, 1, &[main]);
}

#[test]
fn next_agent_kills_tasks_with_stopped_shims() {
    let mut world = World::new("stopped-all");
    let mut processes = Vec::new();
    for launch in 1..=8 {
        processes.push(start(&mut world, launch, "true"));
        processes.push(shim(&world, launch));
        stop_shim(&world, launch);
    }
    world.begin();
    let mut asked = Vec::new();
    for launch in (1..=8).map(LaunchId) {
        let logs = LogConfig::default();
        asked.push(world.ask(|op| DriverEffect::Recover(request::Recover { op, launch, logs })));
    }
    let mut received = Received::default();
    while !asked.is_empty() {
        match world.receive() {
            DriverInput::Recovered { op, found, .. } => {
                assert_eq!(found, Found::Running);
                asked.retain(|asked| *asked != op);
            }
            other => received.note(other),
        }
    }
    assert_eq!(received.reported.len(), 8, "{:?}", received.reported);
    for launch in 1..=8 {
        assert_eq!(destroy(&mut world, launch).1.unwrap().unwrap().signal, 9);
    }
    assert!(processes.iter().all(wait_readable));
}

#[test]
fn next_agent_kills_task_of_unresponsive_shim() {
    let mut world = World::new("silent-recover");
    let main = start(&mut world, 1, "true");
    let shim = shim(&world, 1);
    let socket = format!("{}.s", LaunchId(1));
    fs::remove_file(world.run_dir().join(socket)).unwrap();
    world.begin();
    let Found::Gone(why) = world.recover(1) else {
        panic!("it cannot be watched");
    };
    assert!(why.contains("does not answer"), "{why}");
    let (received, ended) = destroy(&mut world, 1);
    assert!(!ended.unwrap().unwrap().is_success());
    assert!(received.has_event("did not answer, and was killed"));
    assert_gone(&mut world, 1, &[main, shim]);
}

#[test]
fn start_with_killed_shim_is_lost_not_failed() {
    let mut world = World::new("lost-start");
    let program = world.task_dir().join("killed");
    fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    run_instead_of_shims(&world, &program);
    let asked = world.ask_start(1, sh("exec sleep 1000"));
    match world.receive() {
        DriverInput::StartLost { op, why, .. } => {
            assert_eq!(op, asked);
            assert!(why.contains("shim was killed"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(destroy(&mut world, 1).1, Ok(None));
    world.assert_no_group(1);
}

#[test]
fn launch_of_other_boot_is_recovered_as_rebooted() {
    let mut world = World::new("rebooted");
    let name = LaunchId(1).to_string();
    let id = name.as_bytes().try_into().unwrap();
    let mut record = Record::new(id, [b'0'; 36], State::Running);
    // A number that lives, and is another's in this boot.
    record.task.pid = i32::try_from(std::process::id()).unwrap();
    fs::write(world.run_dir().join(format!("{name}.r")), record.encode()).unwrap();
    assert_eq!(world.recover(1), Found::Rebooted);
    assert_eq!(destroy(&mut world, 1).1, Ok(None));
    world.assert_gone(1);
}

#[test]
fn shim_killed_during_destroy_is_not_replaced() {
    let mut world = World::new("killed-destroy");
    for launch in 1..=15 {
        let main = start(&mut world, launch, "true");
        let shim = shim(&world, launch);
        pidfd_send_signal(&shim, Signal::KILL).unwrap();
        let (_, ended) = destroy(&mut world, launch);
        assert!(ended.is_ok(), "{ended:?}");
        assert_gone(&mut world, launch, &[main, shim]);
    }
    let bin = world.data.path().join("bin");
    world.until(|_| shims_of(&bin) == 0);
}

/// Puts another program in place of the memory from which this world's shims run.
fn run_instead_of_shims(world: &World, program: &Path) {
    let memory = format!("/memfd:{}/bin/", world.data.path().display());
    let program = fs::File::open(program).unwrap();
    let mut replaced = 0;
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let is_memory = |link: PathBuf| link.to_str().is_some_and(|link| link.starts_with(&memory));
        if !fs::read_link(entry.path()).is_ok_and(is_memory) {
            continue;
        }
        let number = entry.file_name().to_str().unwrap().parse().unwrap();
        // SAFETY: it is open, and stays so: its owner is not this one, and executes what the number leads to.
        let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
        // Not closed when it is executed: the interpreter of a script reads it by the number.
        dup2(&program, &mut place).unwrap();
        replaced += 1;
    }
    assert_eq!(replaced, 1, "{memory}");
}

/// How many shims of a data directory live.
fn shims_of(bin: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let programs = processes.filter_map(|process| fs::read_link(process.path().join("exe")).ok());
    let from_memory = format!("/memfd:{}", bin.display());
    let is_ours = |program: &PathBuf| program.starts_with(bin) || program.starts_with(&from_memory);
    programs.filter(is_ours).count()
}
