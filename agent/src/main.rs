//! The `drover` program.

use std::process::ExitCode;

use drover_io_real::artifact::{HELPER, helper};
use drover_io_real::notify;

fn main() -> ExitCode {
    // Before anything else: what is fetched is fetched without rights, and without threads.
    let word = std::env::args_os().nth(1);
    if word.as_ref().is_some_and(|word| word == HELPER) {
        return helper::main();
    }
    if word.is_some_and(|word| word == notify::HELPER) {
        return notify::helper_main();
    }
    drover::program::main(std::env::args_os())
}
