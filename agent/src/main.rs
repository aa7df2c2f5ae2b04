//! The `drover` program.

use std::process::ExitCode;

use drover_io_real::artifact::{HELPER, helper};

fn main() -> ExitCode {
    // Before anything else: what is fetched is fetched without rights, and without threads.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == HELPER)
    {
        return helper::main();
    }
    drover::cli::main(std::env::args_os())
}
