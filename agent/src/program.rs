//! The program: an agent, or a command that asks one.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::args::{Cli, Command};
use crate::cli::screen::{Colour, Screen};
use crate::{cli, runtime};

/// After how many pieces of work the runtime looks whether somebody asks for something. With its own 61 a request waits
/// for as many pieces of a long list, each a few hundred microseconds, before it is seen at all.
const POLLS_BETWEEN_EVENTS: u32 = 4;

/// Runs the program with these arguments, the first of which is its own name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::parse(args) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .event_interval(POLLS_BETWEEN_EVENTS)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(cli));
            // Whoever still reads from a terminal is not waited for.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            Screen::of_process(Colour::Never).complain(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Up(args) => runtime::up(args).await,
        Command::Agent(args) => runtime::agent(args).await,
        Command::Rehearse(args) => cli::rehearse(&cli.connection, &args),
        Command::Replay(args) => cli::replay(&cli.connection, &args),
        Command::Client(command) => cli::run(&cli.connection, command).await,
    }
}
