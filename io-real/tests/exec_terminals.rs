//! The driver `exec`: a session's terminal is one of the task's. Without root, or without control groups, these tests
//! say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs;
use std::sync::Arc;

use common::driver::{World, sh};
use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::config::ExecConfig;
use drover_core::driver::isolation::ExecPolicy;
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::op::{Failure, Op};
use drover_io_real::session::{Asking, SessionClient, SessionInput, SessionOutput, WindowSize};

/// A script of this user, which may mount if it is root.
fn script(user: &str, text: &str) -> TaskConfig {
    let policy = ExecPolicy {
        allow_caps: Capabilities::ALL,
        ..ExecPolicy::default()
    };
    let asked = ExecConfig {
        cap_add: match user {
            "root" => vec!["sys_admin".to_owned()],
            _ => Vec::new(),
        },
        ..ExecConfig::default()
    };
    let mut config = sh(text);
    config.profile = Some(policy.profile(&asked).unwrap());
    config.user = user.to_owned();
    config
}

/// A program beside a task, with a terminal.
struct Session {
    op: Op,
    client: SessionClient,
    _asking: Asking,
    shown: String,
}

fn ask(world: &mut World, launch: u128, user: &str, text: &str) -> (Session, Result<(), Failure>) {
    let (asking, client) = world.life().sessions.begin();
    let program = Arc::new(SessionProgram {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), text.to_owned()],
        tty: true,
        task: script(user, ""),
    });
    let session = asking.id;
    let launch = LaunchId(launch);
    let op = world.ask(|op| {
        DriverEffect::OpenSession(OpenSession {
            op,
            launch,
            session,
            program,
        })
    });
    let session = Session {
        op,
        client,
        _asking: asking,
        shown: String::new(),
    };
    match world.receive() {
        DriverInput::SessionOpened { op, result, .. } if op == session.op => (session, result),
        other => panic!("{other:?}"),
    }
}

fn open(world: &mut World, launch: u128, user: &str, text: &str) -> Session {
    let (session, result) = ask(world, launch, user, text);
    result.unwrap();
    session
}

impl Session {
    fn say(&self, world: &mut World, what: SessionInput) {
        let runtime = &world.life().runtime;
        runtime.block_on(self.client.input.send(what)).unwrap();
    }

    fn type_in(&self, world: &mut World, keys: &'static str) {
        self.say(world, SessionInput::Stdin(keys.into()));
    }

    /// What is said until a text is among it, or to the end; the exit code then.
    fn read_until(&mut self, world: &mut World, until: Option<&str>) -> Option<i32> {
        while until.is_none_or(|text| !self.shown.contains(text)) {
            let next = self.client.output.recv();
            match world.life().runtime.block_on(next).unwrap() {
                SessionOutput::Data(_, bytes) => self.shown += &String::from_utf8_lossy(&bytes),
                SessionOutput::Closed(_) => {}
                SessionOutput::Exited(result) => return result.code,
                SessionOutput::Failed(why) => panic!("{why}"),
            }
        }
        None
    }

    /// What was said, and the exit code, when it has ended.
    fn end(mut self, world: &mut World) -> (String, Option<i32>) {
        let code = self.read_until(world, None);
        ended(world, self.op);
        (self.shown.replace('\r', ""), code)
    }
}

fn ended(world: &mut World, session: Op) {
    match world.receive() {
        DriverInput::SessionEnded { op, .. } if op == session => {}
        other => panic!("{other:?}"),
    }
}

/// The number of a terminal. The first may still be taken by a session that has ended a moment ago.
fn number_of(name: &str) -> u32 {
    let number = name.strip_prefix("/dev/pts/");
    number.and_then(|number| number.parse().ok()).expect(name)
}

#[test]
fn terminal_has_a_name_in_the_task() {
    let Some(mut world) = World::isolated("terminal") else {
        return;
    };
    world.start(1, script("nobody", "exec sleep 1000")).unwrap();
    let text = "read go; tty; test -t 0 && test -t 1 && test -t 2 && echo all; stty size; ls -1 /dev/pts; \
                stat -c '%U %a' $(tty); echo by name > $(tty); echo by device > /dev/tty; exit 7";
    for _ in 0..2 {
        let session = open(&mut world, 1, "nobody", text);
        let size = WindowSize {
            height: 40,
            width: 100,
        };
        session.say(&mut world, SessionInput::Resize(size));
        session.type_in(&mut world, "go\n");
        let (shown, code) = session.end(&mut world);
        let number = number_of(shown.lines().nth(1).unwrap());
        let expected = format!(
            "go\n/dev/pts/{number}\nall\n40 100\n{number}\nptmx\nnobody 620\nby name\nby device\n"
        );
        assert_eq!((shown, code), (expected, Some(7)));
    }
    let mut first = open(&mut world, 1, "nobody", "tty; read go");
    first.read_until(&mut world, Some("\n"));
    let mut second = open(&mut world, 1, "root", "tty; read go");
    second.read_until(&mut world, Some("\n"));
    assert_ne!(
        number_of(first.shown.trim()),
        number_of(second.shown.trim())
    );
    for session in [first, second] {
        session.type_in(&mut world, "go\n");
        assert_eq!(session.end(&mut world).1, Some(0));
    }
    world.end(1);
}

#[test]
fn keys_stop_and_interrupt_what_is_in_front() {
    let Some(mut world) = World::isolated("terminal-keys") else {
        return;
    };
    world.start(1, script("nobody", "exec sleep 1000")).unwrap();
    let text = "trap 'echo trapped' INT; set -m; sh -c 'echo first; exec sleep 1000'; echo stopped $?; kill -9 %1; \
                sh -c 'echo second; exec sleep 1000'; echo interrupted $?; exit 5";
    let mut session = open(&mut world, 1, "nobody", text);
    for (until, keys) in [("first", "\u{1a}"), ("second", "\u{3}")] {
        session.read_until(&mut world, Some(until));
        session.type_in(&mut world, keys);
    }
    let (shown, code) = session.end(&mut world);
    assert!(shown.contains("stopped 148\n"), "{shown}");
    assert!(shown.contains("interrupted 130\n"), "{shown}");
    assert_eq!(code, Some(5));
    world.end(1);
}

#[test]
fn program_is_hung_up_when_its_client_goes() {
    let Some(mut world) = World::isolated("terminal-hangup") else {
        return;
    };
    world.start(1, script("nobody", "exec sleep 1000")).unwrap();
    let text = "trap 'echo hung > /local/up; exit' HUP; echo ready; while :; do sleep 1; done";
    let mut session = open(&mut world, 1, "nobody", text);
    session.read_until(&mut world, Some("ready"));
    let op = session.op;
    drop(session);
    ended(&mut world, op);
    let left = fs::read_to_string(world.task_dir().join("local/up")).unwrap();
    assert_eq!(left, "hung\n");
    world.end(1);
    let (_, result) = ask(&mut world, 1, "nobody", "tty");
    assert!(result.is_err(), "{result:?}");
}

#[test]
fn hostile_task_only_spoils_its_own_sessions() {
    let Some(mut world) = World::isolated("terminal-hostile") else {
        return;
    };
    let (go, done) = (world.fifo("go"), world.fifo("done"));
    let obey = "while read -r line < /go; do eval \"$line\"; echo done > /done; done";
    world.start(1, script("root", obey)).unwrap();
    world.start(2, script("nobody", "exec sleep 1000")).unwrap();
    let fresh =
        "umount /dev/pts/ptmx 2>/dev/null; umount -l /dev/pts; mount -t tmpfs none /dev/pts";
    for trick in [
        "mount --bind /dev/null /dev/pts/ptmx",
        "mount --bind /dev/tty /dev/pts/ptmx",
        &format!("{fresh}; echo > /dev/pts/ptmx"),
        &format!("{fresh}; mkfifo /dev/pts/ptmx"),
        &format!("{fresh}; ln -s /proc/1/root/dev/null /dev/pts/ptmx"),
        &format!("{fresh}; mkdir /dev/pts/ptmx"),
        &format!("{fresh}; mount --bind /proc /dev/pts"),
    ] {
        fs::write(&go, format!("{trick}\n")).unwrap();
        assert_eq!(fs::read_to_string(&done).unwrap(), "done\n");
        let (_, result) = ask(&mut world, 1, "root", "tty");
        let failure = result.unwrap_err();
        assert!(
            failure.message.contains("cannot make a terminal: "),
            "{trick}: {failure:?}"
        );
        println!("{trick}: {}", failure.message);
        let other = open(&mut world, 2, "nobody", "tty");
        let (shown, code) = other.end(&mut world);
        number_of(shown.trim());
        assert_eq!(code, Some(0));
    }
    world.end(1);
    world.end(2);
}
