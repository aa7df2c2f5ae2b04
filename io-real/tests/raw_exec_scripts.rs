//! The driver `raw_exec`: programs that run beside a task, with what the task has and no longer than it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use common::driver::{World, sh};
use common::{handle, wait_readable};
use drover_core::effect::{DriverEffect, Program, TaskConfig, request};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

const SLEEP: &str = "exec sleep 1000";

fn program(script: &str, time: Span, task: TaskConfig) -> Program {
    Program {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        timeout: time,
        task,
    }
}

fn answer(world: &mut World, asked: Op) -> Result<i32, Failure> {
    match world.receive() {
        DriverInput::Executed { op, result, .. } if op == asked => result,
        other => panic!("{other:?}"),
    }
}

fn exec(world: &mut World, launch: u128, program: Program) -> Result<i32, Failure> {
    let asked = world.ask_exec(launch, program);
    answer(world, asked)
}

/// Runs a script beside a task that sleeps.
fn run(world: &mut World, script: &str) -> Result<i32, Failure> {
    exec(world, 1, program(script, Span::secs(60), sh(SLEEP)))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A process whose number is in a file, once it is there.
fn process(world: &mut World, name: &str) -> OwnedFd {
    let path = world.task_dir().join(name);
    world.until(|_| read(&path).ends_with('\n'));
    handle(read(&path).trim().parse().unwrap())
}

#[test]
fn script_has_task_environment() {
    let mut world = World::new("script");
    let mut task =
        sh("cut -d: -f2- /proc/self/cgroup | sort > own; echo > own.done; exec sleep 1000");
    task.env.insert("COLOUR".to_owned(), "green".to_owned());
    world.start(1, task.clone()).unwrap();
    let script = "cut -d: -f2- /proc/self/cgroup | sort > its; pwd > where; echo $COLOUR > colour; \
        ls /proc/self/fd | wc -l > open; exit 7";
    let code = exec(&mut world, 1, program(script, Span::secs(60), task));
    assert_eq!(code, Ok(7));
    let dir = world.task_dir();
    world.until(|_| dir.join("own.done").exists());
    assert_eq!(read(&dir.join("its")), read(&dir.join("own")), "its groups");
    assert_eq!(read(&dir.join("where")).trim(), dir.to_str().unwrap());
    assert_eq!(read(&dir.join("colour")), "green\n");
    // Its three, and the listing's own.
    assert_eq!(read(&dir.join("open")).trim(), "4");
    // Of the launch that is asked for only to wait there may be one.
    let asked = format!("{}.r", LaunchId(u128::MAX));
    let records: BTreeSet<String> = fs::read_dir(world.run_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".r") && *name != asked)
        .collect();
    let own = format!("{}.r", LaunchId(1));
    assert_eq!(records, [own].into(), "nothing is left of it");
    world.end(1);
    world.assert_gone(1);
}

#[test]
fn script_runs_as_the_tasks_user() {
    let mut world = World::new("script-user");
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let mut task = sh(SLEEP);
    task.user = "nobody".to_owned();
    world.start(1, task.clone()).unwrap();
    let out = world.task_dir().join("local/out");
    rustix::fs::chmod(out.parent().unwrap(), 0o777.into()).unwrap();
    let code = exec(
        &mut world,
        1,
        program("echo > local/out", Span::secs(60), task),
    );
    assert_eq!(code, Ok(0));
    assert_eq!(fs::metadata(&out).unwrap().uid(), 65534);
    world.end(1);
}

#[test]
fn script_exit_code_is_reported() {
    let mut world = World::new("script-ends");
    world.start(1, sh(SLEEP)).unwrap();
    assert_eq!(run(&mut world, "exit 0"), Ok(0));
    assert_eq!(run(&mut world, "kill -9 $$"), Ok(137));
    // What it says goes nowhere, and does not hinder it.
    assert_eq!(run(&mut world, "head -c 1000000 /dev/zero; exit 3"), Ok(3));
    let missing = Program {
        command: "no-such-program".to_owned(),
        ..program("", Span::secs(60), sh(SLEEP))
    };
    let refused = exec(&mut world, 1, missing).unwrap_err();
    assert!(refused.message.contains("no program"), "{refused:?}");
    world.end(1);
    let over = run(&mut world, "exit 0").unwrap_err();
    assert!(over.message.contains("does not run"), "{over:?}");
    world.assert_silence();
}

/// Only the beginning is kept, but a program whose output is read no further fails, and its service with it.
#[test]
fn check_with_much_output_is_not_cut_off() {
    let mut world = World::new("script-output");
    world.start(1, sh(SLEEP)).unwrap();
    let launch = LaunchId(1);
    let program = Arc::new(program("exec seq 100000", Span::secs(60), sh(SLEEP)));
    let output = true;
    let asked = world.ask(|op| {
        DriverEffect::Exec(request::Exec {
            op,
            launch,
            program,
            output,
        })
    });
    match world.receive() {
        DriverInput::Executed {
            op, result, output, ..
        } => {
            assert_eq!((op, result), (asked, Ok(0)));
            assert!(output.starts_with("1\n2\n3\n"), "{output}");
        }
        other => panic!("{other:?}"),
    }
    world.end(1);
}

#[test]
fn script_is_killed_at_timeout() {
    let mut world = World::new("script-time");
    world.start(1, sh(SLEEP)).unwrap();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & sleep 1000";
    let asked = world.ask_exec(1, program(script, Span::secs(15), sh(SLEEP)));
    let daemon = process(&mut world, "daemon");
    let late = answer(&mut world, asked).unwrap_err();
    assert!(late.message.contains("within 15s"), "{late:?}");
    assert!(wait_readable(&daemon), "what it started ended with it");
    assert_eq!(run(&mut world, "exit 0"), Ok(0), "the task goes on");
    world.end(1);
}

#[test]
fn change_script_ends_with_its_task() {
    let mut world = World::new("script-task");
    world.start(1, sh(SLEEP)).unwrap();
    let script = "echo $$ > pid; trap '' TERM INT HUP; while :; do sleep 1000; done";
    let asked = world.ask_exec(1, program(script, Span::secs(3600), sh(SLEEP)));
    let script = process(&mut world, "pid");
    world.ask(|op| {
        DriverEffect::Destroy(request::Destroy {
            op,
            launch: LaunchId(1),
        })
    });
    let mut received = Vec::new();
    while received.len() < 2 {
        match world.receive() {
            DriverInput::Executed { op, result, .. } => {
                // Its exit code, unless it was only about to be noted that it runs.
                assert!(
                    op == asked && matches!(result, Ok(137) | Err(_)),
                    "{result:?}"
                );
                received.push("script");
            }
            DriverInput::Destroyed { result, .. } => {
                assert!(result.is_ok(), "{result:?}");
                received.push("task");
            }
            DriverInput::Exited { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(wait_readable(&script));
    world.assert_gone(1);
}

/// Whose fault it is that a script of a task that ends by itself is killed, the core can only know if it
/// hears of the task first.
#[test]
fn task_exit_is_reported_before_script_exit() {
    let mut world = World::new("script-order");
    let task = "until [ -e pid ]; do sleep 0.01; done; exit 0";
    world.start(1, sh(task)).unwrap();
    let script = "echo $$ > pid; exec sleep 1000";
    let asked = world.ask_exec(1, program(script, Span::secs(3600), sh(SLEEP)));
    assert_eq!(world.exited().code, Some(0));
    world.ask(|op| {
        DriverEffect::Destroy(request::Destroy {
            op,
            launch: LaunchId(1),
        })
    });
    let mut received = [world.receive(), world.receive()];
    received.sort_by_key(|input| matches!(input, DriverInput::Destroyed { .. }));
    let [DriverInput::Executed { op, result, .. }, _] = received else {
        panic!("{received:?}");
    };
    assert_eq!((op, result), (asked, Ok(137)));
    world.assert_gone(1);
}

/// Nobody waits for it any more, so the next agent ends it, and the task goes on.
#[test]
fn script_of_dead_agent_is_killed_by_next() {
    let mut world = World::new("script-orphan");
    world.start(1, sh(SLEEP)).unwrap();
    let script = "echo $$ > pid; exec sleep 1000";
    world.ask_exec(1, program(script, Span::secs(3600), sh(SLEEP)));
    let script = process(&mut world, "pid");
    world.begin();
    let life = world.life();
    let runtime = life.runtime.enter();
    life.driver
        .end_unknown(&[LaunchId(1)].into(), drover_io_real::driver::Orphans::End)
        .unwrap();
    drop(runtime);
    assert!(wait_readable(&script));
    assert_eq!(world.recover(1), drover_core::input::Found::Running);
    world.end(1);
}
