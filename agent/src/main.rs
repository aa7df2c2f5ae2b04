//! The `drover` program.
use clap::Parser;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = drover::cli::args::Cli::parse();
    match cli.command {
        drover::cli::args::Command::Up(args) => drover::runtime::up(args).await,
        drover::cli::args::Command::Agent(args) => drover::runtime::agent(args).await,
        _ => ExitCode::FAILURE,
    }
}
