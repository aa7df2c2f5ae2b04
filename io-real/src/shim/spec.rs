//! What a caller says to start a task, and what it hears of the end.

use super::record::{Exit, Record};
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Who a task runs as.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// User and group id; `None` = the agent's.
    pub ids: Option<(u32, u32)>,
    /// Exactly these supplementary groups; `None` = the agent's.
    pub groups: Option<&'a [u32]>,
}

/// The cgroup files of a task, all with absolute paths. Empty and `None` = no cgroup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cgroup<'a> {
    /// Each `cgroup.procs` file that the task joins.
    pub procs: &'a [&'a Path],
    /// `cgroup.kill`: makes the end of a task's leftovers quick and sure.
    pub kill: Option<&'a Path>,
    /// The file with the line `oom_kill N`: `memory.oom_control` (v1) or `memory.events` (v2).
    pub oom: Option<&'a Path>,
}

/// Where a task's output goes: `<base>.0`, `<base>.1`, ... in one directory. A launch goes on in the
/// newest file.
#[derive(Clone, Copy, Debug)]
pub struct Logs<'a> {
    /// Output is thrown away: it goes to `/dev/null`, and the rest here is of no meaning.
    pub discarded: bool,
    /// The directory.
    pub dir: BorrowedFd<'a>,
    /// First part of the names for standard output.
    pub stdout: &'a str,
    /// First part of the names for standard error.
    pub stderr: &'a str,
    /// How many files to keep of each, at least 1.
    pub max_files: u32,
    /// Bytes of a file, at least 1.
    pub max_file_size: u64,
}

/// The standard streams of a program that somebody is connected to.
#[derive(Clone, Copy, Debug)]
pub struct SessionStreams<'a> {
    /// What it reads.
    pub stdin: BorrowedFd<'a>,
    /// Where its output goes.
    pub stdout: BorrowedFd<'a>,
    /// Where its errors go.
    pub stderr: BorrowedFd<'a>,
    /// Whether these are a terminal, which becomes the program's own.
    pub tty: bool,
    /// The read end of a pipe: when its last write end is closed, the program is hung up and ended.
    pub lifeline: BorrowedFd<'a>,
}

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSpec<'a> {
    /// The launch id: a UUID as text, 36 characters.
    pub launch: &'a str,
    /// Paths of the program, tried in order until one exists. Absolute, or relative to `task_dir`,
    /// out of which no link leads then.
    pub program: &'a [&'a CStr],
    /// Arguments, the program's name first.
    pub args: &'a [&'a CStr],
    /// The whole environment, as `NAME=value`.
    pub env: &'a [&'a CStr],
    /// Who it runs as.
    pub user: User<'a>,
    /// The task's directory.
    pub task_dir: BorrowedFd<'a>,
    /// The working directory; `None` = `task_dir`.
    pub work_dir: Option<&'a CStr>,
    /// Value for `oom_score_adj`; `None` = the agent's.
    pub oom_score_adj: Option<i32>,
    /// File creation mask; `None` = 022.
    pub umask: Option<u32>,
    /// Soft limit of open files; `None` = the agent's.
    pub open_files: Option<u64>,
    /// cgroup files.
    pub cgroup: Cgroup<'a>,
    /// Log files.
    pub logs: Logs<'a>,
}

/// How a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExitRecord {
    /// Exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// The kernel killed something in its cgroup for lack of memory.
    pub oom: bool,
    /// False if how it ended is not known; then there is neither code nor signal.
    pub known: bool,
    /// Output at the very end could not be written (disk full) and is lost.
    pub output_lost: bool,
    /// Start, wall clock, ns since 1970.
    pub started_ns: u64,
    /// End of the main process, wall clock, ns since 1970.
    pub finished_ns: u64,
}

impl ExitRecord {
    /// The exit in a record; `None` if it holds none.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let (code, signal, known) = match record.exit {
            Exit::None => return None,
            Exit::Code(code) => (Some(code), None, true),
            Exit::Signal(signal) => (None, Some(signal), true),
            Exit::Unknown => (None, None, false),
        };
        Some(Self {
            code,
            signal,
            oom: record.oom,
            known,
            output_lost: record.lost,
            started_ns: record.started_ns,
            finished_ns: record.finished_ns,
        })
    }
}
