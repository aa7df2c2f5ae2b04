//! The process between the agent and a program that is notified. It starts the program, and ends it with
//! everything in its process group when the agent is gone: its standard input closes then.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use rustix::process::{
    Resource, Rlimit, Signal, getpgrp, getrlimit, kill_process_group, setrlimit,
};
use serde::{Deserialize, Serialize};

use crate::plugin::process::pass_nothing_on;

/// The word by which the program knows that it is to run another one.
pub const HELPER: &str = "notify-helper";

/// Where programs are looked for that it starts.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How many files it may have open.
const FILES: u64 = 1024;
/// The longest request.
const MAX_LINE: u64 = 1 << 20;

/// What is to be run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) path: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// What it reads.
    pub(super) input: String,
}

/// The whole life of the process.
pub fn main() -> ExitCode {
    match work() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // The agent logs it.
            let _ = writeln!(io::stdout(), "it cannot be run: {error}");
            ExitCode::from(127)
        }
    }
}

fn work() -> io::Result<u8> {
    let mut line = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    thread::Builder::new().spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    })?;
    pass_nothing_on()?;
    limit(Resource::Nofile, FILES)?;
    // Not nothing: then the kernel would still start a program that takes dumps, if it knows one.
    limit(Resource::Core, 1)?;
    let out = || io::stdout().as_fd().try_clone_to_owned().map(Stdio::from);
    let mut child = Command::new(&request.path)
        .args(&request.args)
        .env_clear()
        .env("PATH", PATH)
        .envs(&request.variables)
        .stdin(Stdio::piped())
        .stdout(out()?)
        .stderr(out()?)
        .spawn()?;
    if let Some(mut to) = child.stdin.take() {
        // It need not read it.
        let _ = to.write_all(request.input.as_bytes());
        let _ = to.write_all(b"\n");
    }
    let status = child.wait()?;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Bounds what it may use. What is stricter already stays so.
fn limit(what: Resource, most: u64) -> io::Result<()> {
    let hard = getrlimit(what).maximum.unwrap_or(u64::MAX).min(most);
    let limit = Rlimit {
        current: Some(hard),
        maximum: Some(hard),
    };
    Ok(setrlimit(what, limit)?)
}
