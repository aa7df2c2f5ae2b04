//! The driver `raw_exec`: when a task is told to have ended for lack of memory. Without control groups these tests pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod common;

use std::fs;
use std::sync::Arc;

use common::driver::{World, sh};
use drover_core::effect::{DriverEffect, Program, request};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::time::Span;

/// A program that takes all the memory that it can get.
const GREEDY: &str = "tail -n 1 /dev/zero";

#[test]
fn successful_task_is_not_an_oom_kill_for_a_program_beside_it() {
    let mut world = World::new("oom-beside");
    if world.groups.is_none() {
        eprintln!("skipped: there are no control groups");
        return;
    }
    let go = world.fifo("go");
    let mut task = sh("read line < go; exit 0");
    task.memory_limit = 32 << 20;
    world.start(1, task.clone()).unwrap();
    let program = Arc::new(Program {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), format!("exec {GREEDY}")],
        timeout: Span::secs(60),
        task,
    });
    world.ask(|op| {
        DriverEffect::Exec(request::Exec {
            op,
            launch: LaunchId(1),
            program,
            output: false,
        })
    });
    match world.receive() {
        DriverInput::Executed { result, .. } => assert_eq!(result, Ok(137)),
        other => panic!("{other:?}"),
    }
    fs::write(go, "\n").unwrap();
    let exit = world.exited();
    assert_eq!(exit, ExitResult::code(0));
    assert!(exit.is_success());
    world.destroy(1).unwrap();
}

#[test]
fn task_failed_by_oom_kill_of_its_child_is_reported_as_such() {
    let mut world = World::new("oom-child");
    if world.groups.is_none() {
        eprintln!("skipped: there are no control groups");
        return;
    }
    let mut task = sh(&format!("{GREEDY}; exit 3"));
    task.memory_limit = 32 << 20;
    let exit = world.run(1, task);
    assert_eq!(
        (exit.code, exit.signal, exit.oom_killed),
        (Some(3), 0, true)
    );
    let message = exit.message.unwrap();
    assert!(message.starts_with("out of memory"), "{message}");
    world.destroy(1).unwrap();
}
