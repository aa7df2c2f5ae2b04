//! What owns the core: its clock, its inputs and the carrying out of its effects.

use std::process::ExitCode;

use crate::cli::args::{AgentArgs, UpArgs};

/// Runs an agent until it is asked to end.
pub async fn agent(args: AgentArgs) -> ExitCode {
    let _ = args;
    eprintln!("this build has no agent yet");
    ExitCode::FAILURE
}

/// Runs an agent with one job in the foreground.
pub async fn up(args: UpArgs) -> ExitCode {
    let _ = args;
    eprintln!("this build has no agent yet");
    ExitCode::FAILURE
}
