//! What a caller says to start a task, and what it hears of the end.

use super::record::{Exit, Record};
use super::wire;
use crate::network;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// How a task is kept apart from the host.
#[derive(Clone, Copy, Debug)]
pub struct Isolation<'a> {
    /// Which namespaces it has of its own, as for `clone`.
    pub namespaces: u32,
    /// Whether these are made.
    pub entrance: Entrance<'a>,
    /// Whether nothing that it executes may gain privileges.
    pub no_new_privileges: bool,
    /// The capabilities that it may have, a bit each.
    pub bounding: u64,
    /// The capabilities that it has.
    pub effective: u64,
    /// Filters for system calls, loaded in this order.
    pub filters: &'a [Vec<u8>],
}

/// How a program comes into its namespaces.
#[derive(Clone, Copy, Debug)]
pub enum Entrance<'a> {
    /// They are made, with this root.
    Make(&'a [Mount]),
    /// They are those that this process holds; its pidfd.
    Enter(BorrowedFd<'a>),
}

/// One mount of a task's root, in the order in which they are made.
#[derive(Debug)]
pub struct Mount {
    /// What.
    pub what: Mounted,
    /// Where below the root, without a slash at the beginning.
    pub place: CString,
}

/// What is mounted.
#[derive(Debug)]
pub enum Mounted {
    /// The root itself, first of all: a mount that is nowhere yet.
    Root(OwnedFd),
    /// A mount that is nowhere yet.
    Tree(OwnedFd),
    /// A new `proc`.
    Proc,
    /// A new `mqueue`.
    Mqueue,
    /// A new `sysfs` for reading only.
    Sysfs,
    /// What is there already, for reading only, if anything is.
    ReadOnly,
    /// Nothing, over what is there already, if anything is.
    Mask,
}

impl Mounted {
    /// Its number.
    pub(super) fn number(&self) -> u32 {
        match self {
            Mounted::Root(_) => wire::ROOT,
            Mounted::Tree(_) => wire::TREE,
            Mounted::Proc => wire::PROC,
            Mounted::Mqueue => wire::MQUEUE,
            Mounted::Sysfs => wire::SYSFS,
            Mounted::ReadOnly => wire::READ_ONLY,
            Mounted::Mask => wire::MASK,
        }
    }

    fn tree(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Mounted::Root(tree) | Mounted::Tree(tree) => Some(tree.as_fd()),
            Mounted::Proc
            | Mounted::Mqueue
            | Mounted::Sysfs
            | Mounted::ReadOnly
            | Mounted::Mask => None,
        }
    }
}

impl<'a> Isolation<'a> {
    /// The descriptors that go with it.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'a>> {
        match self.entrance {
            Entrance::Make(mounts) => mounts.iter().filter_map(|it| it.what.tree()).collect(),
            Entrance::Enter(holder) => vec![holder],
        }
    }

    /// The mounts that are made.
    pub(super) fn mounts(&self) -> &'a [Mount] {
        match self.entrance {
            Entrance::Make(mounts) => mounts,
            Entrance::Enter(_) => &[],
        }
    }
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
    /// How it is isolated, if it is.
    pub isolation: Option<Isolation<'a>>,
    /// The network in which it starts; that of the agent if none.
    pub entrance: Option<&'a network::Entrance>,
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
