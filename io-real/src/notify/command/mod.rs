//! Telling a program: it is run for each message, which it reads from its standard input.
//!
//! It is started by a process of ours, the [`helper`], that ends it with everything it started when the agent is gone. It
//! has no shell around it, an environment of the message's variables and a path, `/` as its directory, the
//! usual few open files, and no terminal. What it writes is logged at level `debug`, as far as it is short.

pub(super) mod helper;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::message::Message;
use super::settings::CommandSettings;
use super::target::Trouble;
use crate::cancel::end;
use helper::{HELPER, Request};

/// How much of what it writes is kept, in bytes.
const MAX_OUTPUT: usize = 16 * 1024;

pub(super) async fn run(
    target: &str,
    command: &CommandSettings,
    message: &Message,
) -> Result<(), Trouble> {
    let request = Request {
        path: command.path.clone(),
        args: command.args.clone(),
        variables: message.variables(),
        input: String::from_utf8_lossy(&message.json()).into_owned(),
    };
    let limit = command.timeout;
    let work = tokio::task::spawn_blocking(move || to_its_end(&request, limit));
    let (output, ended) = work
        .await
        .map_err(|error| Trouble::passing(error.to_string()))?
        .map_err(|error| Trouble::passing(format!("it cannot be run: {error}")))?;
    for line in String::from_utf8_lossy(&output).lines() {
        tracing::debug!(notify = target, "it wrote: {line:?}");
    }
    match ended {
        None => Err(Trouble::passing(format!("it was ended after {limit:?}"))),
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Trouble::passing(format!("it failed: {status}"))),
    }
}

/// What it wrote, and how it ended; none if its time was over.
fn to_its_end(request: &Request, limit: Duration) -> io::Result<(Vec<u8>, Option<ExitStatus>)> {
    let until = Instant::now() + limit;
    let mut child = start()?;
    let pid = Pid::from_child(&child);
    let received = talk(&mut child, request, until);
    // Whatever it left running is over with it.
    if received.as_ref().is_ok_and(|(_, in_time)| *in_time) {
        let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), over) {}
    }
    end(pid);
    let status = child.wait()?;
    let (output, in_time) = received?;
    Ok((output, in_time.then_some(status)))
}

fn start() -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0("drover")
        .arg(HELPER)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Says what is to be run, and hears what it writes until it ends. The way in stays open until then: when it
/// closes, the helper knows that the agent is gone. Whether it ended in time.
fn talk(child: &mut Child, request: &Request, until: Instant) -> io::Result<(Vec<u8>, bool)> {
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok((Vec::new(), false));
    };
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    to.write_all(&line)?;
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match next(&from, &process, until)? {
            Next::Output => {}
            Next::End => return Ok((output, true)),
            Next::Late => return Ok((output, false)),
        }
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok((output, true));
        }
        let remaining = MAX_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(buffer.get(..count.min(remaining)).unwrap_or_default());
    }
}

/// What comes next of a program.
enum Next {
    Output,
    /// It ended, and nothing of what it wrote is left. What it started may hold its output open.
    End,
    /// Nothing in time.
    Late,
}

fn next(from: &ChildStdout, process: &OwnedFd, until: Instant) -> io::Result<Next> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Also of one that writes without end.
            return Ok(Next::Late);
        }
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        let output = PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN);
        let mut fds = [output, PollFd::new(process, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let [output, end] = fds.map(|fd| !fd.revents().is_empty());
        match (output, end) {
            (true, _) => return Ok(Next::Output),
            (false, true) => return Ok(Next::End),
            (false, false) => {}
        }
    }
}
