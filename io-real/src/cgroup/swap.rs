//! Whether a group may be swapped out.
//!
//! Version 1 bounds memory and swap together, by a number that is never below the limit of memory; version 2
//! bounds swap alone. The files are plain here, since what to do where there are none depends on whether the
//! machine has swap at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Once;

use super::Version;

/// Bounds memory and swap, in bytes; -1 is no bound.
const TOGETHER: &str = "memory.memsw.limit_in_bytes";

/// Bounds swap, in bytes; `max` is no bound.
const ALONE: &str = "memory.swap.max";

/// That swap cannot be forbidden is told once.
static WARNED: Once = Once::new();

/// Lifts a bound that an earlier use of the group left, below which its new limit of memory could not go up.
///
/// # Errors
/// What the kernel says.
pub(super) fn allow(dir: &Path, version: Version) -> io::Result<()> {
    match version {
        Version::V1 | Version::Hybrid => write(dir, TOGETHER, "-1"),
        Version::V2 => write(dir, ALONE, "max"),
    }
    .map(|_| ())
}

/// Lets none of a group be swapped out that has a limit of so many bytes of memory. Where the kernel cannot do
/// that and has swap, it is told once, and nothing is changed. A task that was swapped out before keeps what it has.
///
/// # Errors
/// What the kernel says.
pub(super) fn forbid(dir: &Path, version: Version, memory: u64) -> io::Result<()> {
    let done = match version {
        Version::V1 | Version::Hybrid => match write(dir, TOGETHER, &memory.to_string()) {
            // It has more than that already, and its shim is to be replaced nevertheless.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Ok(()),
            done => done?,
        },
        Version::V2 => write(dir, ALONE, "0")?,
    };
    if !done && machine_has_swap() {
        WARNED.call_once(|| {
            tracing::warn!(
                "the kernel does not count swap by control group, so tasks may be swapped out beyond their limit of \
                 memory; boot it with swapaccount=1, or have no swap"
            );
        });
    }
    Ok(())
}

/// False if there is no such file: the kernel does not count swap.
fn write(dir: &Path, file: &str, text: &str) -> io::Result<bool> {
    // The kernel makes these files, and nobody else can.
    match OpenOptions::new().write(true).open(dir.join(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        file => file?.write_all(text.as_bytes()).map(|()| true),
    }
}

/// The table of what the machine swaps to has a heading, and then a line for each.
fn machine_has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|table| table.lines().count() > 1)
}
