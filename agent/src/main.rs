//! The `drover` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    drover::cli::main(std::env::args_os())
}
