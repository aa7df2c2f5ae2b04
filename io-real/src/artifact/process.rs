//! Starting the process that fetches, and hearing what it says.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use drover_core::op::Failure;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::wire::{HelperAnswer, MAX_LINE, Request};
use crate::cancel::{Cancel, end};
use crate::transfers::{Amount, Coming};

/// The word by which the program knows that it is to fetch.
pub const HELPER: &str = "artifact-helper";

/// Where programs are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

/// What a process that fetches left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// How many bytes came.
    pub(super) bytes: u64,
    /// Whether it left a tree, or one file.
    pub(super) tree: bool,
}

/// Runs such a process in this directory until it is over, with everything it started.
/// When the agent is gone, all of them end: the way in is closed then.
///
/// # Errors
/// It cannot be started, it says why it failed, or it was ended.
pub(super) fn run(
    scratch: &OwnedFd,
    request: &Request,
    variables: &[String],
    cancel: &Cancel,
    coming: &mut Coming,
) -> Result<Fetched, Failure> {
    let lost = |error: io::Error| Failure::recoverable(format!("the fetching process: {error}"));
    let mut child = start(scratch, variables).map_err(lost)?;
    let pid = Pid::from_child(&child);
    cancel.began(pid);
    let reported = talk(&mut child, request, coming);
    // Whatever it left running must not touch what it fetched.
    end(pid);
    let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), over) {}
    let status = cancel.ended(pid, || child.wait());
    if cancel.is_cancelled() {
        return Err(Failure::recoverable("it was cancelled"));
    }
    match reported {
        Ok(Some(HelperAnswer::Done { bytes, tree })) => Ok(Fetched { bytes, tree }),
        Ok(Some(HelperAnswer::Failed { why, again })) => Err(Failure {
            message: why.chars().take(500).collect(),
            recoverable: again,
        }),
        Ok(Some(HelperAnswer::Fetched { .. }) | None) => Err(silent(status)),
        Err(error) => Err(lost(error)),
    }
}

fn start(scratch: &OwnedFd, variables: &[String]) -> io::Result<Child> {
    let given = |name: &String| Some((name.clone(), env::var_os(name)?));
    Command::new("/proc/self/exe")
        .arg0("drover")
        .arg(HELPER)
        .env_clear()
        .env("PATH", PATH)
        .envs(variables.iter().filter_map(given))
        .current_dir(format!("/proc/self/fd/{}", scratch.as_raw_fd()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Asks, and hears what is said until the last word. The way in stays open until then: when it
/// closes, the process knows that nobody waits any more.
fn talk(
    child: &mut Child,
    request: &Request,
    coming: &mut Coming,
) -> io::Result<Option<HelperAnswer>> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(None);
    };
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    match to.write_all(&line) {
        // It is gone already; it may have said why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        asked => asked?,
    }
    let mut from = BufReader::new(from);
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    loop {
        line.clear();
        if from.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        match serde_json::from_slice(&line)? {
            HelperAnswer::Fetched { bytes, total } => coming.is(Amount { bytes, total }),
            last @ (HelperAnswer::Done { .. } | HelperAnswer::Failed { .. }) => {
                return Ok(Some(last));
            }
        }
    }
}

fn silent(status: io::Result<ExitStatus>) -> Failure {
    let how = match status {
        Ok(status) => format!("{status}"),
        Err(error) => format!("{error}"),
    };
    Failure::recoverable(format!(
        "the fetch helper ended without an answer ({how}): it may have used too much memory or time"
    ))
}
