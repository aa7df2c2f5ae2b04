//! Sessions of the public clients of Nomad's API, unchanged: `clients/session.py` with python-nomad, and `clients/go`
//! with Nomad's Go client. Where they are is given by variables: `DROVER_PYTHON_NOMAD` is a Python that has the
//! package, `DROVER_GO_SESSION` the Go program, built.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use support::{Lone, Program};

/// The program of this variable; none where it is not installed.
fn installed(variable: &str) -> Option<OsString> {
    let program = std::env::var_os(variable);
    if program.is_none() {
        eprintln!("skipped: {variable} names no program");
    }
    program
}

/// Runs a session against a new agent, and fails with what it printed if one of its steps did.
#[track_caller]
fn passes(command: &mut Command) {
    let lone = Lone::new();
    let addr = format!("http://{}", lone.agent.addr);
    let out = Program::of(command.env("NOMAD_ADDR", addr)).end().ok();
    assert!(out.contains("\"failed\": 0"), "{out}");
}

#[test]
fn python_nomad_session_passes() {
    let Some(python) = installed("DROVER_PYTHON_NOMAD") else {
        return;
    };
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/session.py");
    passes(Command::new(python).arg(session));
}

#[test]
fn go_client_session_passes() {
    let Some(session) = installed("DROVER_GO_SESSION") else {
        return;
    };
    passes(&mut Command::new(session));
}
