//! What `/proc` says of one process in a line.

use std::{fs, io};

use rustix::io::Errno;

/// Of the fields in `/proc/PID/stat`, what tells processes apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    /// Whether it has ended and waits for its parent to hear of it.
    pub(crate) is_zombie: bool,
    /// Whether a signal stopped it.
    pub(crate) is_stopped: bool,
    /// Who started it, or took it over when that one ended.
    pub(crate) parent: i32,
    /// The leader of its session; 0 if that is not in our process namespace.
    pub(crate) session: i32,
    /// Clock ticks from the machine's boot to the start of the process.
    pub(crate) start_time: u64,
}

impl Stat {
    /// # Errors
    /// `NotFound` if there is no such process.
    pub(crate) fn of(pid: i32) -> io::Result<Stat> {
        let line = match fs::read(format!("/proc/{pid}/stat")) {
            // It was reaped between opening and reading.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            line => line?,
        };
        Stat::parse(&line).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn parse(line: &[u8]) -> Option<Stat> {
        // The second field is the program's name in parentheses, which may hold anything.
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        Some(Stat {
            is_zombie: state == "Z",
            is_stopped: state == "T",
            parent: fields.next()?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
            start_time: fields.nth(15)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn stat_with_odd_process_name_is_parsed() {
        let line = b"7 (\xff) Z 1 (x) S 3 4 5 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 1 0 77 100 1\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.is_zombie, stat.parent, stat.session), (false, 3, 5));
        assert_eq!(stat.start_time, 77);
    }

    #[test]
    fn missing_process_is_not_found() {
        let error = Stat::of(i32::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
