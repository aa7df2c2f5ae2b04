//! What an agent and a shim say to each other over sockets.
//!
//! **Handshake**, on the stream socket that is the shim's standard input. The agent sends a header
//! of [`HEADER`] bytes with the descriptors attached (`SCM_RIGHTS`), then the body; the shim
//! answers once with [`ANSWER`] bytes. All numbers are little-endian.
//!
//! Header: `u32` magic `DRSP`, `u16` version, `u16` mode (1 start, 2 adopt, 3 collect), then `u32` each: body
//! length, and the number of cgroup files, candidate paths, arguments, variables and groups.
//!
//! A *string* is a `u32` length that counts the final NUL, and the bytes with that NUL. Body:
//! 1. launch id (36 bytes); `u32` files to keep (0 = output is thrown away); `u64` bytes of a file
//! 2. strings: name of the stdout logs, of the stderr logs; paths of `cgroup.kill` and of the file
//!    with the line `oom_kill N` (empty = none)
//! 3. `u32` flags ([`HAS_USER`] ...), `u32` uid, `u32` gid, `i32` oom_score_adj, `u32` umask, `u64`
//!    soft limit of open files
//! 4. the groups, `u32` each
//! 5. strings: working directory (empty = the task directory), then the cgroup files, candidate
//!    paths, arguments, variables
//! 6. of a task that is isolated: `u32` namespaces (as for `clone`), `u32` how ([`ENTER`] ...), `u64` each:
//!    capabilities that it may have, and that it has from the start; `u32` number of seccomp filters, each a
//!    `u32` length and the bytes; `u32` number of mounts, each `u32` what ([`ROOT`] ...) and a string, the
//!    place below the root
//!
//! The bodies of the others end after 2.
//!
//! Descriptors for start: run directory, log directory, stdout and stderr read ends, task
//! directory, `/dev/null`, stdout and stderr write ends; for a session the *lifeline* too, the read end of a
//! pipe that nobody writes to: once all write ends are closed, the program is hung up and ended. The
//! program's own ends then stand for `/dev/null` and the write ends. Where a task is isolated, something stands for
//! the lifeline in any case, and after it come the trees of the mounts, in their order, or the pidfd of the process
//! that holds the namespaces. For the others: the first four. Where output is
//! thrown away, `/dev/null` stands for the log directory and for the ends of the pipes.
//!
//! Answer: `u32` kind (see [`Verdict`]), then for a failure `u32` step, `i32` errno, `u32` path;
//! for a start `i32` pid, 4 bytes of nothing, `u64` start time, both at offset 16.
//!
//! **Control**, on the seqpacket socket `run/<launch>.s`: a request is [`REQUEST`] bytes, `u32`
//! operation and `i32` argument. `HELLO` is answered by the record (`record::SIZE` bytes) with the
//! read ends of both pipes attached, if there are pipes; the others by an `i32` errno, 0 = done.

/// Bytes of the header.
pub const HEADER: usize = 32;
/// First four bytes of the header.
pub const MAGIC: u32 = u32::from_le_bytes(*b"DRSP");
/// Version of everything here.
pub const VERSION: u16 = 1;
/// The largest body, in bytes.
pub const MAX_BODY: usize = 4 << 20;
/// Mode: start a task.
pub const START: u16 = 1;
/// Mode: take over the task of a shim that died.
pub const ADOPT: u16 = 2;
/// Mode: move the output of a task that somebody else starts, until a kill.
pub const COLLECT: u16 = 3;
/// Descriptors that may come with a start; the last one comes with sessions only.
pub const START_FDS: usize = 9;
/// Descriptors of mounts that may come with a start, beside the others: with them the kernel's limit of 253.
pub const MORE_FDS: usize = 128;
/// Descriptors that come with an adoption, and with a collection.
pub const ADOPT_FDS: usize = 4;

/// Flag: switch to the given uid and gid.
pub const HAS_USER: u32 = 1;
/// Flag: set exactly the given supplementary groups.
pub const HAS_GROUPS: u32 = 2;
/// Flag: set the given oom_score_adj.
pub const HAS_OOM_SCORE: u32 = 4;
/// Flag: set the given umask.
pub const HAS_UMASK: u32 = 8;
/// Flag: set the given soft limit of open files.
pub const HAS_OPEN_FILES: u32 = 16;
/// Flag: standard input is a terminal, and becomes the session's own.
pub const HAS_TTY: u32 = 32;

/// Flag: the lifeline is one.
pub const HAS_LIFELINE: u32 = 64;
/// Flag: the task is isolated.
pub const HAS_ISOLATION: u32 = 128;

/// Isolation: the namespaces are there already; their holder's pidfd came with the spec.
pub const ENTER: u32 = 1;
/// Isolation: nothing that the task executes may gain privileges.
pub const NO_NEW_PRIVS: u32 = 2;

/// A mount: the next descriptor's tree becomes the root. The first of all.
pub const ROOT: u32 = 1;
/// A mount: the next descriptor's tree.
pub const TREE: u32 = 2;
/// A mount: a new `proc` of the process namespace.
pub const PROC: u32 = 3;
/// A mount: a new `mqueue` of the IPC namespace.
pub const MQUEUE: u32 = 4;
/// A mount: a new `sysfs`, for reading only.
pub const SYSFS: u32 = 5;
/// A mount: what is at the place already, for reading only; nothing if nothing is there.
pub const READ_ONLY: u32 = 6;
/// A mount: nothing, over what is at the place already; `/dev/null` hides files. Nothing if nothing is there.
pub const MASK: u32 = 7;

/// Bytes of the shim's answer.
pub const ANSWER: usize = 32;

/// The kinds of answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Verdict {
    /// The task runs (or was adopted).
    Started = 1,
    /// Another shim, or an agent, decided this launch; nothing was started.
    AlreadyClaimed = 2,
    /// Nothing runs; step, errno and path say why.
    Failed = 3,
}

/// The steps of a start, in order; later additions at the end, since records name them by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Step {
    /// Receiving what to start.
    Spec = 1,
    /// Opening or writing the record.
    Record = 2,
    /// Making the control socket.
    Socket = 3,
    /// Entering the log directory or opening a log file.
    Log = 4,
    /// Making the task's process.
    Fork = 5,
    /// Making its session.
    Session = 6,
    /// Joining a cgroup; `path` counts the files.
    Cgroup = 7,
    /// Setting oom_score_adj.
    OomScore = 8,
    /// Setting standard input, output and error.
    Stdio = 9,
    /// Setting the supplementary groups.
    Groups = 10,
    /// Setting the group.
    Gid = 11,
    /// Setting the user.
    Uid = 12,
    /// Entering the working directory.
    WorkDir = 13,
    /// Executing the program; `path` counts the candidates.
    Exec = 14,
    /// Finding the task that is to be adopted.
    Adopt = 15,
    /// Setting the limit of open files.
    OpenFiles = 16,
    /// Making the namespaces.
    Namespaces = 17,
    /// Making the root; `path` counts the mounts.
    Mount = 18,
    /// Making it the root.
    Root = 19,
    /// Entering the namespaces.
    Enter = 20,
    /// Dropping capabilities.
    Capabilities = 21,
    /// Loading the filters for system calls.
    Seccomp = 22,
}

impl Step {
    /// The step with this number.
    pub fn from_raw(raw: u32) -> Option<Self> {
        const ALL: [Step; 22] = [
            Step::Spec,
            Step::Record,
            Step::Socket,
            Step::Log,
            Step::Fork,
            Step::Session,
            Step::Cgroup,
            Step::OomScore,
            Step::Stdio,
            Step::Groups,
            Step::Gid,
            Step::Uid,
            Step::WorkDir,
            Step::Exec,
            Step::Adopt,
            Step::OpenFiles,
            Step::Namespaces,
            Step::Mount,
            Step::Root,
            Step::Enter,
            Step::Capabilities,
            Step::Seccomp,
        ];
        ALL.iter().copied().find(|step| *step as u32 == raw)
    }
}

/// Bytes of a control request.
pub const REQUEST: usize = 8;
/// Operation: who are you? Answered with the record and the pipes.
pub const HELLO: u32 = 1;
/// Operation: send signal number `argument` to the task's main process.
pub const SIGNAL: u32 = 2;
/// Operation: kill everything that belongs to the task.
pub const KILL: u32 = 3;
