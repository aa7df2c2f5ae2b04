//! The file that plugins of a network read. Who has it locked is the only one that runs plugins for that network.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, StatxFlags, flock, openat, statx};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::flock::lock_within;

/// The file.
const INPUT: &str = "cni-input";

/// How long plugins that were killed may take to be gone.
const LAST: Duration = Duration::from_secs(1);

/// The file, locked: only one plugin at a time runs for a network. A plugin has the lock too, so that one which outlives
/// its agent is waited for by the next.
pub(super) struct Input(File);

impl Input {
    /// Takes it, when nobody else has it. Who still reads it after `timeout` is a plugin whose agent died before it
    /// could end it, or what such a plugin left running: it is killed, as it would have been by its agent, so that
    /// nothing makes the network while it is taken back. What cannot be ended does not keep us off for ever.
    pub(super) fn take(dir: BorrowedFd<'_>, timeout: Duration) -> io::Result<Input> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(dir, INPUT, flags, Mode::from_raw_mode(0o600))?);
        if !lock_within(&file, timeout)? && end_readers(&file)? > 0 {
            lock_within(&file, LAST)?;
        }
        Ok(Input(file))
    }

    /// What the next plugin reads.
    pub(super) fn with(&mut self, text: &[u8]) -> io::Result<File> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(text)?;
        self.0.rewind()?;
        self.0.try_clone()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        // Not only our handle: what a plugin left running may have one.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Kills the processes that have it as their standard input, each with the process group that it leads. How many there
/// were.
fn end_readers(file: &File) -> io::Result<usize> {
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let (path, number) = (fs::read_link(&own)?, number(&own)?);
    let reads = |pid: Pid| {
        let input = PathBuf::from(format!("/proc/{pid}/fd/0"));
        // By the path first: nothing is asked of whatever others have opened.
        fs::read_link(&input).is_ok_and(|it| it == path) && is_number(&input, number)
    };
    let mut ended = 0;
    for entry in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        if !reads(pid) || pid.as_raw_pid().unsigned_abs() == process::id() {
            continue;
        }
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        // Whose input it was is sure only if it still is.
        if reads(pid) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = pidfd_send_signal(&handle, Signal::KILL);
            ended += 1;
        }
    }
    Ok(ended)
}

fn is_number(file: &Path, number_of_it: (u32, u32, u64)) -> bool {
    number(file).is_ok_and(|number| number == number_of_it)
}

/// The device and the number of a file, as far as they are known without asking anybody who may not answer.
fn number(file: &Path) -> io::Result<(u32, u32, u64)> {
    let found = statx(CWD, file, AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::AsFd;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use super::*;

    fn opened(home: &tempfile::TempDir) -> File {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        options.open(home.path().join(INPUT)).unwrap()
    }

    fn is_free(file: &File) -> bool {
        lock_within(file, Duration::ZERO).unwrap()
    }

    #[test]
    fn input_has_one_holder_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        let mut input = Input::take(dir.as_fd(), Duration::ZERO).unwrap();
        let mut seen = String::new();
        input.with(b"long text").unwrap();
        input
            .with(b"short")
            .unwrap()
            .read_to_string(&mut seen)
            .unwrap();
        assert_eq!(seen, "short");
        let other = opened(&home);
        assert!(!is_free(&other));
        // Somebody who has a handle for ever keeps nobody off.
        let _kept = input.with(b"").unwrap();
        drop(input);
        assert!(is_free(&other));
        drop(Input::take(dir.as_fd(), Duration::ZERO).unwrap());
    }

    #[test]
    fn plugin_that_outlives_its_agent_is_ended_with_its_group() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        let (before, other) = (opened(&home), opened(&home));
        assert!(is_free(&before));
        // Its child has another input, and says when both are gone: then nobody writes any more.
        let mut plugin = Command::new("/bin/sh");
        plugin
            .args([
                "-c",
                "sleep 1000 < /dev/null & echo so far; exec sleep 1000",
            ])
            .process_group(0)
            .stdin(before.try_clone().unwrap())
            .stdout(Stdio::piped());
        let mut child = plugin.spawn().unwrap();
        drop(plugin);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        // As when its agent is killed: nothing unlocks it.
        drop(before);
        assert!(!is_free(&other));
        let input = Input::take(dir.as_fd(), Duration::ZERO).unwrap();
        assert!(!is_free(&other));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        output.read_to_string(&mut String::new()).unwrap();
        drop(input);
        assert!(is_free(&other));
    }
}
