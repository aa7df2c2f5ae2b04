//! Tasks of `exec` in tests: as isolated as can be, and what runs beside them.

use std::sync::Arc;

use drover_core::driver::config::ExecConfig;
use drover_core::driver::isolation::ExecPolicy;
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::effect::{DriverEffect, Program, TaskConfig};
use drover_core::ids::LaunchId;
use drover_core::input::DriverInput;
use drover_core::time::Span;
use drover_io_real::session::SessionOutput;

use super::driver::{World, sh};

pub fn isolated(mut config: TaskConfig, policy: &ExecPolicy, asked: &ExecConfig) -> TaskConfig {
    config.profile = Some(policy.profile(asked).unwrap());
    config.user = "nobody".to_owned();
    config
}

/// A script that runs as nobody, as isolated as can be.
pub fn script(text: &str) -> TaskConfig {
    isolated(sh(text), &ExecPolicy::default(), &ExecConfig::default())
}

pub fn as_root(mut config: TaskConfig) -> TaskConfig {
    config.user = "root".to_owned();
    config
}

/// The output of a program that runs beside launch 1.
pub fn beside(world: &mut World, command: &str, args: &[&str], config: TaskConfig) -> String {
    let (asking, mut client) = world.life().sessions.begin();
    let program = Arc::new(SessionProgram {
        command: command.to_owned(),
        args: args.iter().map(|it| (*it).to_owned()).collect(),
        tty: false,
        task: config,
    });
    let session = asking.id;
    world.ask(|op| {
        DriverEffect::OpenSession(OpenSession {
            op,
            launch: LaunchId(1),
            session,
            program,
        })
    });
    match world.receive() {
        DriverInput::SessionOpened { result, .. } => assert_eq!(result, Ok(())),
        other => panic!("{other:?}"),
    }
    let mut reply = String::new();
    while let Some(output) = world.life().runtime.block_on(client.output.recv()) {
        match output {
            SessionOutput::Data(_, chunk) => reply.push_str(&String::from_utf8_lossy(&chunk)),
            SessionOutput::Closed(_) => {}
            SessionOutput::Exited(exit) => {
                assert_eq!(exit.code, Some(0), "{reply}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    match world.receive() {
        DriverInput::SessionEnded { .. } => reply,
        other => panic!("{other:?}"),
    }
}

/// Runs a script of a shell beside the first task, as the agent runs those of checks, to its good end.
pub fn run_beside(world: &mut World, text: String, task: TaskConfig) {
    let program = Program {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), text],
        timeout: Span::secs(60),
        task,
    };
    world.ask_exec(1, program);
    match world.receive() {
        DriverInput::Executed { result, .. } => assert_eq!(result, Ok(0)),
        other => panic!("{other:?}"),
    }
}
