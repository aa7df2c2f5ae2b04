//! The driver `raw_exec`: exec sessions have what their task has, and end with it, with their client and with the
//! agent.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use common::driver::{World, sh};
use common::{handle, wait_readable};
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::op::{Failure, Op};
use drover_io_real::session::{
    Asking, Output, SessionClient, SessionInput, SessionOutput, WindowSize,
};

const SLEEP: &str = "exec sleep 1000";
/// It stays when it is only asked to go.
const STUBBORN: &str = "trap '' HUP; echo $$ > pid; while :; do sleep 1; done";

struct Session {
    op: Op,
    client: SessionClient,
    _asking: Asking,
}

fn ask(world: &mut World, script: &str, tty: bool, task: TaskConfig) -> Session {
    let (asking, client) = world.life().sessions.begin();
    let program = Arc::new(SessionProgram {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        tty,
        task,
    });
    let session = asking.id;
    let op = world.ask(|op| {
        DriverEffect::OpenSession(OpenSession {
            op,
            launch: LaunchId(1),
            session,
            program,
        })
    });
    Session {
        op,
        client,
        _asking: asking,
    }
}

fn opened(world: &mut World, asked: Op) -> Result<(), Failure> {
    match world.receive() {
        DriverInput::SessionOpened { op, result, .. } if op == asked => result,
        other => panic!("{other:?}"),
    }
}

fn open(world: &mut World, script: &str, tty: bool) -> Session {
    let session = ask(world, script, tty, sh(SLEEP));
    opened(world, session.op).unwrap();
    session
}

fn ended(world: &mut World, session: Op) {
    match world.receive() {
        DriverInput::SessionEnded { op, .. } if op == session => {}
        other => panic!("{other:?}"),
    }
}

fn say(world: &mut World, session: &Session, what: SessionInput) {
    let runtime = &world.life().runtime;
    runtime.block_on(session.client.input.send(what)).unwrap();
}

/// What comes until the session ends: standard output, errors, and the exit code.
fn outcome(world: &mut World, session: &mut Session) -> (String, String, Option<i32>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    loop {
        let next = session.client.output.recv();
        match world.life().runtime.block_on(next).unwrap() {
            SessionOutput::Data(Output::Stdout, bytes) => out.extend(bytes),
            SessionOutput::Data(Output::Stderr, bytes) => err.extend(bytes),
            SessionOutput::Closed(_) => {}
            SessionOutput::Exited(result) => {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                return (text(out), text(err), result.code);
            }
            SessionOutput::Failed(why) => panic!("{why}"),
        }
    }
}

/// The process that a stubborn program is.
fn stubborn(world: &mut World) -> OwnedFd {
    let path = world.task_dir().join("pid");
    let read = move || fs::read_to_string(&path).unwrap_or_default();
    world.until(|_| read().ends_with('\n'));
    handle(read().trim().parse().unwrap())
}

#[test]
fn session_has_what_its_task_has() {
    let mut world = World::new("session");
    let mut task = sh("cut -d: -f2- /proc/self/cgroup | sort > own; exec sleep 1000");
    task.env.insert("COLOUR".to_owned(), "green".to_owned());
    world.start(1, task.clone()).unwrap();
    let own = world.task_dir().join("own");
    world.until(|_| fs::read_to_string(&own).is_ok_and(|text| !text.is_empty()));
    let script = "pwd; echo $COLOUR; cut -d: -f2- /proc/self/cgroup | sort > its; ls /proc/self/fd | wc -l; \
        read line; echo got $line; echo bad >&2; exit 5";
    let mut session = ask(&mut world, script, false, task);
    opened(&mut world, session.op).unwrap();
    say(
        &mut world,
        &session,
        SessionInput::Stdin("line one\n".into()),
    );
    let (out, err, code) = outcome(&mut world, &mut session);
    let dir = world.task_dir();
    let dir = dir.to_str().unwrap();
    // Three standard streams, and the directory that is listed.
    assert_eq!(out, format!("{dir}\ngreen\n4\ngot line one\n"));
    assert_eq!((err.as_str(), code), ("bad\n", Some(5)));
    let read = |name: &str| fs::read_to_string(world.task_dir().join(name)).unwrap();
    assert_eq!(read("its"), read("own"), "the same control group");
    ended(&mut world, session.op);
    world.end(1);
}

#[test]
fn session_with_terminal_has_its_size_and_end_of_input() {
    let mut world = World::new("session-tty");
    world.start(1, sh(SLEEP)).unwrap();
    let mut session = open(&mut world, "read go; stty size; cat; tty", true);
    let size = WindowSize {
        height: 40,
        width: 100,
    };
    say(&mut world, &session, SessionInput::Resize(size));
    say(&mut world, &session, SessionInput::Stdin("go\n".into()));
    say(&mut world, &session, SessionInput::CloseStdin);
    let (out, _, code) = outcome(&mut world, &mut session);
    assert!(out.starts_with("go\r\n40 100\r\n/dev/pts/"), "{out:?}");
    assert_eq!(code, Some(0));
    ended(&mut world, session.op);
    world.end(1);
}

#[test]
fn large_input_and_output_arrive_whole() {
    let mut world = World::new("session-pipes");
    world.start(1, sh(SLEEP)).unwrap();
    let mut session = open(&mut world, "cat", false);
    let input = session.client.input.clone();
    let runtime = &world.life().runtime;
    let feeding = runtime.spawn(async move {
        for round in 0..100_u8 {
            let chunk = vec![round; 30_000].into();
            input.send(SessionInput::Stdin(chunk)).await.unwrap();
        }
        input.send(SessionInput::CloseStdin).await.unwrap();
    });
    let (out, _, code) = outcome(&mut world, &mut session);
    assert_eq!((out.len(), code), (3_000_000, Some(0)));
    assert!(out.bytes().is_sorted());
    world.life().runtime.block_on(feeding).unwrap();
    ended(&mut world, session.op);
    world.end(1);
}

#[test]
fn program_that_does_not_exist_is_refused() {
    let mut world = World::new("session-none");
    world.start(1, sh(SLEEP)).unwrap();
    let (asking, _client) = world.life().sessions.begin();
    let program = Arc::new(SessionProgram {
        command: "/no/such".to_owned(),
        args: Vec::new(),
        tty: true,
        task: sh(SLEEP),
    });
    let asked = world.ask(|op| {
        DriverEffect::OpenSession(OpenSession {
            op,
            launch: LaunchId(1),
            session: asking.id,
            program,
        })
    });
    let failure = opened(&mut world, asked).unwrap_err();
    assert!(
        failure.message.contains("there is no program"),
        "{failure:?}"
    );
    let gone = ask(&mut world, "true", false, sh(SLEEP));
    // One that has ended cannot have any.
    opened(&mut world, gone.op).unwrap();
    ended(&mut world, gone.op);
    world.end(1);
    let late = ask(&mut world, "true", false, sh(SLEEP));
    assert!(opened(&mut world, late.op).is_err());
}

#[test]
fn client_that_goes_ends_stubborn_program_and_its_children() {
    let mut world = World::new("session-gone");
    world.start(1, sh(SLEEP)).unwrap();
    for tty in [false, true] {
        let _ = fs::remove_file(world.task_dir().join("pid"));
        let session = open(&mut world, STUBBORN, tty);
        let program = stubborn(&mut world);
        let op = session.op;
        drop(session);
        ended(&mut world, op);
        assert!(wait_readable(&program), "the program lives on");
    }
    let records = world.run_dir().read_dir().unwrap();
    let names = records.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The task's own, and that of the launch that is asked for while one waits (`until`).
    let others = [1, u128::MAX].map(|launch| LaunchId(launch).to_string());
    let is_other = |name: &String| others.iter().any(|other| name.starts_with(other));
    let left: Vec<String> = names.filter(|name| !is_other(name)).collect();
    assert_eq!(left, Vec::<String>::new(), "no record is left");
    world.end(1);
}

/// A terminal that is gone ends with a hangup by itself; of pipes it has to come from the shim.
#[test]
fn program_without_terminal_is_hung_up_when_its_client_goes() {
    let mut world = World::new("session-hangup");
    world.start(1, sh(SLEEP)).unwrap();
    // The shell also tells of its sleep, which is hung up too; nobody reads that any more.
    let script =
        "trap '' PIPE; trap 'echo hung > up; exit' HUP; sh -c 'echo ready; exec sleep 1000'";
    let mut session = open(&mut world, script, false);
    let first = session.client.output.recv();
    match world.life().runtime.block_on(first) {
        Some(SessionOutput::Data(Output::Stdout, _)) => {}
        other => panic!("{other:?}"),
    }
    let op = session.op;
    drop(session);
    ended(&mut world, op);
    let left = fs::read_to_string(world.task_dir().join("up")).unwrap_or_default();
    assert_eq!(left, "hung\n", "it was asked to go");
    world.end(1);
}

#[test]
fn destroyed_task_takes_its_sessions_along() {
    let mut world = World::new("session-destroy");
    world.start(1, sh(SLEEP)).unwrap();
    let session = open(&mut world, STUBBORN, false);
    let program = stubborn(&mut world);
    let destroyed = world.ask(|op| {
        let launch = LaunchId(1);
        DriverEffect::Destroy(drover_core::effect::request::Destroy { op, launch })
    });
    let (mut task, mut its) = (false, false);
    while !(task && its) {
        match world.receive() {
            DriverInput::Destroyed { op, result, .. } if op == destroyed => {
                assert!(result.is_ok());
                task = true;
            }
            DriverInput::SessionEnded { op, .. } if op == session.op => its = true,
            DriverInput::Exited { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(wait_readable(&program), "the program lives on");
}

#[test]
fn dead_agent_takes_its_sessions_along_and_leaves_the_task() {
    let mut world = World::new("session-agent");
    world.start(1, sh(SLEEP)).unwrap();
    let session = open(&mut world, STUBBORN, true);
    let program = stubborn(&mut world);
    world.begin();
    assert!(wait_readable(&program), "the program lives on");
    drop(session);
    assert_eq!(
        world.recover(1),
        drover_core::input::Found::Running,
        "the task goes on"
    );
    world.end(1);
}
