//! The program itself: what it takes to run it.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

use std::process::Command;

/// The libraries of the C library and of the compiler, which every machine has.
const THERE: [&str; 5] = [
    "linux-vdso.so",
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "ld-linux",
];

#[test]
fn program_needs_nothing_that_a_bare_machine_lacks() {
    let shown = Command::new(env!("CARGO_BIN_EXE_drover"))
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .unwrap();
    // A program without libraries knows no such switch, and says which commands it has.
    let shown = String::from_utf8(shown.stdout).unwrap();
    for line in shown.lines().filter(|line| line.contains(".so")) {
        let path = line.split_whitespace().next().unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert!(THERE.iter().any(|it| name.starts_with(it)), "{line}");
    }
}
