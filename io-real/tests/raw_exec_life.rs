//! The driver `raw_exec`: lives and ends of launches, each answered and told once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::driver::{World, key, sh};
use common::{handle, kernel_keeps_exit_codes, receive, wait_readable};
use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, request};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found};
use drover_io_real::driver::Driver;
use std::fs;

#[test]
fn exit_codes_and_signals_are_reported() {
    let mut world = World::new("codes");
    for (launch, code) in [(1, 0), (2, 1), (3, 255)] {
        let exit = world.run(launch, sh(&format!("exit {code}")));
        assert_eq!((exit.code, exit.signal), (Some(code), 0));
        assert!(!exit.oom_killed && exit.message.is_none());
    }
    for (launch, signal) in [(4, 9), (5, 15), (6, 6)] {
        let exit = world.run(launch, sh(&format!("kill -{signal} $$")));
        assert_eq!((exit.code, exit.signal), (Some(128 + signal), signal));
    }
    world.assert_silence();
    for launch in 1..=6 {
        assert!(
            world.destroy(launch).unwrap().is_some(),
            "told again, until it is forgotten"
        );
        world.assert_gone(launch);
    }
}

#[test]
fn stop_sends_signal_only() {
    let mut world = World::new("stop");
    let signals = [("", "INT"), ("SIGTERM", "TERM"), ("hup", "HUP")];
    for (launch, (asked, trapped)) in (1..).zip(signals) {
        let up = world.fifo(&format!("up{launch}"));
        let script = format!(
            "trap 'exit 7' {trapped}; echo up > up{launch}; while :; do sleep 1000 & wait; done"
        );
        world.start(launch, sh(&script)).unwrap();
        assert_eq!(receive(&up), "up");
        world.stop(launch, asked);
        let mut received = [world.receive(), world.receive()];
        received.sort_by_key(|input| matches!(input, DriverInput::Exited { .. }));
        let [
            DriverInput::Stopped { result, .. },
            DriverInput::Exited { result: exit, .. },
        ] = received
        else {
            panic!("{received:?}");
        };
        assert_eq!((result, exit.code), (Ok(()), Some(7)));
        // What is over is stopped already, and takes no signal.
        world.stop(launch, asked);
        assert!(matches!(
            world.receive(),
            DriverInput::Stopped { result: Ok(()), .. }
        ));
        let (launch, signal) = (LaunchId(launch), "SIGTERM".to_owned());
        world.ask(|op| DriverEffect::Signal(request::Signal { op, launch, signal }));
        assert!(matches!(
            world.receive(),
            DriverInput::Signaled { result: Err(_), .. }
        ));
    }
    world.start(9, sh("exec sleep 1000")).unwrap();
    world.stop(9, "SIGNOPE");
    let DriverInput::Stopped {
        result: Err(failure),
        ..
    } = world.receive()
    else {
        panic!("there is no such signal");
    };
    assert!(failure.message.contains("SIGNOPE"), "{}", failure.message);
    world.end(9);
}

#[test]
fn destroy_kills_daemons() {
    let mut world = World::new("destroy");
    let (daemon, main) = (world.fifo("daemon"), world.fifo("main"));
    let script = "trap '' INT TERM HUP; \
        setsid sh -c '(trap \"\" TERM; echo $$ > daemon; exec sleep 1000) & wait' & \
        echo $$ > main; while :; do sleep 1000; done";
    world.start(1, sh(script)).unwrap();
    let daemon = handle(receive(&daemon).parse().unwrap());
    let main = handle(receive(&main).parse().unwrap());
    let exit = world.end(1);
    assert_eq!((exit.code, exit.signal), (Some(137), 9));
    assert!(wait_readable(&daemon) && wait_readable(&main));
    for _ in 0..3 {
        assert_eq!(world.destroy(1).unwrap().unwrap().signal, 9);
    }
    world.assert_silence();
    world.assert_gone(1);
}

#[test]
fn next_agent_recovers_task_and_reports_exit() {
    let mut world = World::new("recover");
    let (up, go) = (world.fifo("up"), world.fifo("go"));
    let script = "echo before; echo $$ > up; read x < go; echo after; exit 4";
    world.start(1, sh(script)).unwrap();
    world.start(2, sh("exec sleep 1000")).unwrap();
    world.start(3, sh("exit 3")).unwrap();
    assert_eq!(world.exited().code, Some(3));
    let main = handle(receive(&up).parse().unwrap());
    world.begin();
    assert_eq!(world.recover(1), Found::Running);
    assert_eq!(world.recover(2), Found::Running);
    let Found::Exited(exit) = world.recover(3) else {
        panic!("it ended");
    };
    assert_eq!(exit.code, Some(3));
    assert_eq!(world.recover(4), Found::NeverStarted);
    fs::write(go, "go\n").unwrap();
    assert_eq!(world.exited().code, Some(4));
    assert!(wait_readable(&main));
    assert_eq!(world.stdout(), "before\nafter\n");
    assert_eq!(world.end(2).signal, 9);
    // Without having been looked for, it is destroyed all the same, and its end is told there.
    world.begin();
    let exit = world.destroy(3).unwrap().unwrap();
    assert_eq!(exit.code, Some(3));
    assert_eq!(world.destroy(1).unwrap().unwrap().code, Some(4));
    world.assert_gone(1);
    world.assert_gone(3);
}

#[test]
fn unreadable_launch_is_reported_gone() {
    let mut world = World::new("unreadable");
    let record = world.run_dir().join(format!("{}.r", LaunchId(1)));
    fs::create_dir(record).unwrap();
    let Found::Gone(why) = world.recover(1) else {
        panic!("nobody can know");
    };
    assert!(why.contains("cannot be recovered"), "{why}");
    let damaged = world.run_dir().join(format!("{}.r", LaunchId(2)));
    fs::write(damaged, "no record").unwrap();
    assert!(matches!(world.recover(2), Found::Gone(_)));
    assert_eq!(world.destroy(2), Ok(None));
    world.assert_gone(2);
}

#[test]
fn launch_destroyed_before_start_never_starts() {
    let mut world = World::new("never");
    assert_eq!(world.destroy(1), Ok(None));
    let failure = world.refused(1, sh("echo ran"));
    assert!(!failure.recoverable, "{}", failure.message);
    world.assert_no_group(1);
    assert_eq!(world.recover(2), Found::NeverStarted);
    world.refused(2, sh("echo ran"));
    world.assert_no_group(2);
    assert!(fs::read_dir(world.log_dir()).unwrap().next().is_none());
}

#[test]
fn running_launch_is_not_started_again() {
    let mut world = World::new("twice");
    world.start(1, sh("exec sleep 1000")).unwrap();
    let failure = world.refused(1, sh("echo ran"));
    assert!(
        failure.message.contains("started or given up before"),
        "{}",
        failure.message
    );
    // The one that runs is as it was.
    let (launch, signal) = (LaunchId(1), "SIGTERM".to_owned());
    world.ask(|op| DriverEffect::Signal(request::Signal { op, launch, signal }));
    let mut received = [world.receive(), world.receive()];
    received.sort_by_key(|input| matches!(input, DriverInput::Exited { .. }));
    assert!(matches!(
        &received[0],
        DriverInput::Signaled { result: Ok(()), .. }
    ));
    assert!(matches!(&received[1], DriverInput::Exited { result, .. } if result.signal == 15));
    assert_eq!(world.destroy(1).unwrap().unwrap().signal, 15);
    world.assert_gone(1);
}

#[test]
fn concurrent_start_and_destroy_leave_nothing() {
    let mut world = World::new("race");
    for launch in 1..=30 {
        world.ask_start(launch, sh("exec sleep 1000"));
        let id = LaunchId(launch);
        world.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch: id }));
        let (mut started, mut failed, mut exits, mut destroyed) = (0, 0, 0, 0);
        while started + failed == 0 || destroyed == 0 {
            match world.receive() {
                DriverInput::Started { .. } => started += 1,
                DriverInput::StartFailed { .. } => failed += 1,
                DriverInput::Exited { .. } => exits += 1,
                DriverInput::Destroyed { result, .. } => {
                    result.unwrap();
                    destroyed += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((started + failed, destroyed), (1, 1));
        // Who destroys it tells it too.
        assert!(exits <= 1);
        // A start that won is destroyed now, as the core would.
        world.end_quietly(launch);
        world.assert_no_group(launch);
    }
}

#[test]
fn killed_shim_is_replaced_with_same_limits() {
    let mut world = World::new("successor");
    let go = world.fifo("go");
    world
        .start(1, sh("echo before; read x < go; echo after; exit 2"))
        .unwrap();
    let limit = world.memory_limit(1);
    let home = drover_io_real::shim::ShimHome::open(world.data.path()).unwrap();
    let name = LaunchId(1).to_string();
    for _ in 0..3 {
        let before = home.read_record(&name).unwrap().unwrap().shim;
        let shim = handle(before.pid);
        rustix::process::pidfd_send_signal(&shim, rustix::process::Signal::KILL).unwrap();
        assert!(wait_readable(&shim));
        world.until(|_| home.read_record(&name).unwrap().unwrap().shim != before);
        world.assert_silence();
    }
    assert_eq!(world.memory_limit(1), limit);
    fs::write(go, "go\n").unwrap();
    // An older kernel has forgotten it when whoever inherited the task has taken note of its end.
    let code = world.exited().code;
    assert!(code == Some(2) || code.is_none() && !kernel_keeps_exit_codes());
    assert_eq!(world.stdout(), "before\nafter\n");
    assert_eq!(world.destroy(1).unwrap().unwrap().code, code);
    world.assert_gone(1);
}

#[test]
fn successor_killed_before_it_answers_is_replaced() {
    let mut world = World::new("short-lived-successor");
    let go = world.fifo("go");
    (world.start(1, sh("read x < go; echo after; exit 2"))).unwrap();
    let home = drover_io_real::shim::ShimHome::open(world.data.path()).unwrap();
    let name = LaunchId(1).to_string();
    let mut before = home.read_record(&name).unwrap().unwrap().shim;
    for _ in 0..12 {
        let shim = handle(before.pid);
        rustix::process::pidfd_send_signal(&shim, rustix::process::Signal::KILL).unwrap();
        // Its name is there shortly before its answer is.
        let shim = || home.read_record(&name).unwrap().unwrap().shim;
        world.until(|_| (0..1_000).any(|_| shim() != before));
        before = shim();
    }
    world.assert_silence();
    fs::write(go, "go\n").unwrap();
    let code = world.exited().code;
    assert!(code == Some(2) || code.is_none() && !kernel_keeps_exit_codes());
    assert_eq!(world.stdout(), "after\n");
    assert_eq!(world.destroy(1).unwrap().unwrap().code, code);
    world.assert_gone(1);
}

#[test]
fn task_is_not_swapped_out_beyond_its_limit_of_memory() {
    let mut world = World::new("swapless");
    let go = world.fifo("go");
    world.start(1, sh("read x < go")).unwrap();
    if let Some(groups) = &world.groups {
        let (parent, name) = (&groups.parent, LaunchId(1));
        let v1 = format!("/sys/fs/cgroup/memory/{parent}/{name}/memory.memsw.limit_in_bytes");
        let v2 = format!("/sys/fs/cgroup/{parent}/{name}/memory.swap.max");
        match (fs::read_to_string(v1), fs::read_to_string(v2)) {
            (Ok(limit), _) => assert_eq!(Some(limit), world.memory_limit(1)),
            (_, Ok(limit)) => assert_eq!(limit, "0\n"),
            (Err(_), Err(_)) => eprintln!("skipped: the kernel does not count swap"),
        }
    }
    fs::write(go, "go\n").unwrap();
    assert_eq!(world.exited().code, Some(0));
    world.destroy(1).unwrap();
    world.assert_gone(1);
}

#[test]
fn interrupted_work_is_answered() {
    let mut world = World::new("lost");
    let life = world.life.take().unwrap();
    let (launch, op) = (LaunchId(1), drover_core::op::Op(1));
    {
        let _runtime = life.runtime.enter();
        life.driver.carry_out(
            key(),
            DriverEffect::Destroy(request::Destroy { op, launch }),
        );
    }
    let mut reported = life.reported;
    drop(life.runtime);
    let Ok(Input::Driver(
        _,
        DriverInput::Destroyed {
            op: answered,
            result,
            ..
        },
    )) = reported.try_recv()
    else {
        panic!("no answer");
    };
    assert_eq!(answered, op);
    assert!(result.is_err() && reported.try_recv().is_err());
}
