//! What `/proc` and the cgroup files report.

use crate::record::{Id, Process};
use crate::text::{self, Text};
use core::ffi::CStr;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Result, read, write};

/// Reads the start of a file and returns the part of `buffer` that was filled.
pub fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..)
        && !rest.is_empty()
    {
        match read(&file, rest)? {
            0 => break,
            more => len += more,
        }
    }
    Ok(buffer.get(..len).unwrap_or_default())
}

/// Writes a control file of `/proc` or of a cgroup in one call.
pub fn write_file(path: &CStr, bytes: &[u8]) -> Result<()> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, bytes).map(|_| ())
}

/// The boot's id; zeros where there is none to read.
pub fn boot_id() -> Id {
    let mut buffer = [0; 40];
    let id = read_file(c"/proc/sys/kernel/random/boot_id", &mut buffer).unwrap_or_default();
    id.get(..36)
        .and_then(|id| id.try_into().ok())
        .unwrap_or([0; 36])
}

/// What is of interest in `/proc/<pid>/stat`.
pub struct Stat {
    /// One letter; `Z` is a zombie.
    pub state: u8,
    /// Session id.
    pub session: i32,
    /// Clock ticks from boot to the start.
    pub start_time: u64,
    /// For a zombie, and for who may look: its wait status.
    pub exit_code: i32,
}

/// Reads `/proc/<pid>/stat`; `None` if there is no such process.
pub fn stat(pid: i32) -> Option<Stat> {
    let path = Text::new()
        .push(b"/proc/")
        .number(pid as u64)
        .push(b"/stat");
    let mut buffer = [0; 1024];
    let line = read_file(path.as_c_str(), &mut buffer).ok()?;
    // The name in field 2 may hold anything, also ") "; the last bracket ends it.
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = line
        .get(name_end + 2..)?
        .split(|byte| matches!(byte, b' ' | b'\n'));
    let state = *fields.next()?.first()?;
    let session = text::number(fields.nth(2)?)? as i32;
    let start_time = text::number(fields.nth(15)?)?;
    let exit_code = fields.nth(29).and_then(text::number).unwrap_or(0) as i32;
    Some(Stat {
        state,
        session,
        start_time,
        exit_code,
    })
}

/// A process with its start time; the start time is 0 if it is gone.
pub fn identity(pid: i32) -> Process {
    Process {
        pid,
        start_time: stat(pid).map_or(0, |stat| stat.start_time),
    }
}

/// The number of OOM kills in a file with a line `oom_kill N`; 0 if there is none.
pub fn oom_kills(path: &CStr) -> u64 {
    let mut buffer = [0; 512];
    let content = read_file(path, &mut buffer).unwrap_or_default();
    let mut count = 0;
    for line in content.split(|byte| *byte == b'\n') {
        if let Some(digits) = line.strip_prefix(b"oom_kill ") {
            count = text::number(digits).unwrap_or(0);
        }
    }
    count
}
