//! Runs a program that should say a line and end, and holds it to that.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_setfl};

use crate::timed_child::TimedChild;

/// How much of what it says is kept.
const MOST: usize = 4096;

/// Runs a program without arguments, environment or input. Answers what it said, on either of its
/// outputs, until it ended or `deadline` came; then it and whatever is left of its group is killed.
///
/// # Errors
/// It cannot be started or watched, or did not end in time.
pub(super) fn output(program: &Path, deadline: Instant) -> io::Result<Vec<u8>> {
    let (reader, writer) = io::pipe()?;
    let running = TimedChild::spawn(
        Command::new(program)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer),
    )?;
    let mut reported = File::from(OwnedFd::from(reader));
    fcntl_setfl(&reported, OFlags::NONBLOCK)?;
    let mut bytes = Vec::new();
    loop {
        let ended = running.is_over_or_says(&reported, deadline)?;
        let open = read_some(&mut reported, &mut bytes)?;
        match ended {
            true => return Ok(bytes),
            false if open && bytes.len() < MOST => {}
            // It has said enough. It still has to end.
            false => return running.until_over(deadline).map(|()| bytes),
        }
    }
}

/// Reads what there is. False when nothing can follow.
fn read_some(from: &mut File, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 1024];
    while bytes.len() < MOST {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(length) => bytes.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
