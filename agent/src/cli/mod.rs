//! The command line.
pub mod args;
/// Runs.
pub fn main(_: std::env::ArgsOs) -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
