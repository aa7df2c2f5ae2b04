//! What to start, as the agent sent it: views into one mapping, and the descriptors.

use crate::record::Id;
use crate::wire::{self, Step};
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSliceMut, read};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Gid;

/// A step that failed.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Where.
    pub step: Step,
    /// Why.
    pub errno: Errno,
    /// At which of several paths.
    pub path: u32,
}

impl Fault {
    /// Makes `map_err` read well.
    pub fn at(step: Step) -> impl Fn(Errno) -> Self {
        move |errno| Self {
            step,
            errno,
            path: 0,
        }
    }
}

/// Strings in a row.
#[derive(Clone, Copy)]
pub struct List {
    bytes: &'static [u8],
    count: u32,
}

impl Iterator for List {
    type Item = &'static CStr;

    fn next(&mut self) -> Option<&'static CStr> {
        self.count = self.count.checked_sub(1)?;
        let mut reader = Reader { bytes: self.bytes };
        let text = reader.string()?;
        self.bytes = reader.bytes;
        Some(text)
    }
}

/// The part that is needed as long as the task runs.
#[derive(Clone, Copy)]
pub struct Keep {
    /// The launch.
    pub launch: Id,
    /// How many log files to keep for each stream; 0 = output is thrown away.
    pub max_files: u32,
    /// Bytes of a log file.
    pub max_size: u64,
    /// First part of the log files' names: stdout, stderr.
    pub bases: [&'static CStr; 2],
    /// Path of `cgroup.kill`, if there is one.
    pub kill: Option<&'static CStr>,
    /// Path of the file with the OOM counter, if there is one.
    pub oom: Option<&'static CStr>,
}

/// How a task is kept apart from the host.
#[derive(Clone, Copy)]
pub struct Isolation {
    /// Which namespaces it has of its own, as for `clone`.
    pub namespaces: u32,
    /// Whether these are there already, and are entered.
    pub enter: bool,
    /// Whether nothing that it executes may gain privileges.
    pub no_new_privs: bool,
    /// Capabilities that it may have.
    pub bounding: u64,
    /// Capabilities that it has.
    pub effective: u64,
    /// Filters for system calls.
    pub filters: Filters,
    /// What its root is made of.
    pub mounts: Mounts,
}

/// Filters in a row.
#[derive(Clone, Copy)]
pub struct Filters {
    bytes: &'static [u8],
    count: u32,
}

impl Iterator for Filters {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        self.count = self.count.checked_sub(1)?;
        let mut reader = Reader { bytes: self.bytes };
        let len = reader.u32()? as usize;
        let filter = reader.take(len)?;
        self.bytes = reader.bytes;
        Some(filter)
    }
}

/// Mounts in a row: what (see [`wire`]), and where below the root.
#[derive(Clone, Copy)]
pub struct Mounts {
    bytes: &'static [u8],
    count: u32,
}

impl Iterator for Mounts {
    type Item = (u32, &'static CStr);

    fn next(&mut self) -> Option<(u32, &'static CStr)> {
        self.count = self.count.checked_sub(1)?;
        let mut reader = Reader { bytes: self.bytes };
        let mount = (reader.u32()?, reader.string()?);
        self.bytes = reader.bytes;
        Some(mount)
    }
}

/// The part that is needed for the start only.
pub struct Start {
    /// User and group to become.
    pub user: Option<(u32, u32)>,
    /// Supplementary groups to have, exactly.
    pub groups: Option<&'static [Gid]>,
    /// Value for `oom_score_adj`.
    pub oom_score: Option<i32>,
    /// File creation mask.
    pub umask: Option<u32>,
    /// Soft limit of open files.
    pub open_files: Option<u64>,
    /// Whether standard input is a terminal that becomes the session's own.
    pub tty: bool,
    /// Working directory; `None` = the task directory.
    pub work_dir: Option<&'static CStr>,
    /// cgroup files to write `0` to.
    pub procs: List,
    /// Paths of the program, to be tried in order.
    pub candidates: List,
    /// NULL-terminated arguments.
    pub argv: *const *const u8,
    /// NULL-terminated environment.
    pub envp: *const *const u8,
    /// Whether somebody is connected to it.
    pub lifeline: bool,
    /// How it is isolated, if it is.
    pub isolation: Option<Isolation>,
}

/// What a shim is for.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one of it, and no allocator"
)]
pub enum Job {
    /// Starting a task.
    Start(Start),
    /// Going on with the task of a shim that died.
    Adopt,
    /// Moving the output of a task that somebody else starts.
    Collect,
}

/// The descriptors that every start has.
pub type Fds = [Option<OwnedFd>; wire::START_FDS];

/// The descriptors of an isolated task's start.
pub type More = [Option<OwnedFd>; wire::MORE_FDS];

/// All that came.
pub struct Spec {
    /// For as long as the task runs.
    pub keep: Keep,
    /// What to do.
    pub job: Job,
    /// The descriptors, in the order that [`wire`] gives.
    pub fds: Fds,
    /// The trees of mounts, or who holds the namespaces.
    pub more: More,
    base: *mut u8,
    kept: usize,
    size: usize,
}

impl Spec {
    /// Frees what only the start needed.
    pub fn release(&mut self) {
        // Done, whatever it was; only a start holds anything.
        self.job = Job::Adopt;
        let kept = self.kept.next_multiple_of(4096);
        if kept < self.size {
            // SAFETY: `start` was all that pointed there. With pages larger than 4 KiB the call may
            // be refused, and the memory just stays.
            let _ = unsafe { munmap(self.base.add(kept).cast(), self.size - kept) };
        }
    }
}

struct Reader {
    bytes: &'static [u8],
}

impl Reader {
    fn take(&mut self, len: usize) -> Option<&'static [u8]> {
        let (head, tail) = self.bytes.split_at_checked(len)?;
        self.bytes = tail;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'static CStr> {
        let len = self.u32()? as usize;
        CStr::from_bytes_with_nul(self.take(len)?).ok()
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn path(&mut self) -> Option<Option<&'static CStr>> {
        self.string()
            .map(|path| if path.is_empty() { None } else { Some(path) })
    }

    fn list(&mut self, count: u32) -> Option<List> {
        let list = List {
            bytes: self.bytes,
            count,
        };
        for _ in 0..count {
            self.string()?;
        }
        Some(list)
    }

    fn isolation(&mut self) -> Option<Isolation> {
        let (namespaces, how) = (self.u32()?, self.u32()?);
        let (bounding, effective) = (self.u64()?, self.u64()?);
        let mut filters = Filters {
            count: self.u32()?,
            bytes: self.bytes,
        };
        let all = filters;
        for _ in 0..all.count {
            filters.next()?;
        }
        self.bytes = filters.bytes;
        let mut mounts = Mounts {
            count: self.u32()?,
            bytes: self.bytes,
        };
        let tree = mounts;
        for _ in 0..tree.count {
            mounts.next()?;
        }
        self.bytes = mounts.bytes;
        Some(Isolation {
            namespaces,
            enter: how & wire::ENTER != 0,
            no_new_privs: how & wire::NO_NEW_PRIVS != 0,
            bounding,
            effective,
            filters: all,
            mounts: tree,
        })
    }

    fn keep(&mut self) -> Option<Keep> {
        Some(Keep {
            launch: self.take(36)?.try_into().ok()?,
            max_files: self.u32()?,
            max_size: self.u64()?.max(1),
            bases: [self.string()?, self.string()?],
            kill: self.path()?,
            oom: self.path()?,
        })
    }
}

/// The counts in the header.
struct Counts {
    body: usize,
    procs: u32,
    candidates: u32,
    args: u32,
    vars: u32,
    groups: u32,
}

/// Receives a spec. Blocks until all of it is there or the agent is gone.
pub fn receive(agent: BorrowedFd<'_>) -> Result<Spec, Errno> {
    let mut header = [0; wire::HEADER];
    let (fds, more) = receive_header(agent, &mut header)?;
    let mode = u16::from_le_bytes([header[6], header[7]]);
    let counts = parse_header(&header).ok_or(Errno::PROTO)?;
    // After the body, aligned: the argument and environment pointers, and the groups.
    let body = counts.body.next_multiple_of(8);
    let pointers = (counts.args as usize + counts.vars as usize + 2) * 8;
    let size = (body + pointers + counts.groups as usize * 4).next_multiple_of(4096);
    // SAFETY: a fresh mapping aliases nothing.
    let base: *mut u8 = unsafe {
        mmap_anonymous(
            core::ptr::null_mut(),
            size,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?
        .cast()
    };
    let mut at = 0;
    while at < counts.body {
        // SAFETY: inside the mapping, which nothing else refers to yet.
        let rest = unsafe { core::slice::from_raw_parts_mut(base.add(at), counts.body - at) };
        match read(agent, rest)? {
            0 => return Err(Errno::CONNRESET),
            more => at += more,
        }
    }
    // SAFETY: the body is written, and from here on only read. What points into the part that
    // `release` unmaps lives in `Start`, which `release` drops first.
    let bytes: &'static [u8] = unsafe { core::slice::from_raw_parts(base, counts.body) };
    let mut reader = Reader { bytes };
    let keep = reader.keep().ok_or(Errno::PROTO)?;
    let kept = counts.body - reader.bytes.len();
    let job = match mode {
        wire::START => {
            // SAFETY: the size above leaves room for the pointers and the groups.
            let arena = unsafe { base.add(body) };
            Job::Start(parse_start(&mut reader, &counts, arena).ok_or(Errno::PROTO)?)
        }
        wire::COLLECT => Job::Collect,
        _ => Job::Adopt,
    };
    Ok(Spec {
        keep,
        job,
        fds,
        more,
        base,
        kept,
        size,
    })
}

fn parse_header(header: &[u8; wire::HEADER]) -> Option<Counts> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(
            header.get(at..)?.get(..4)?.try_into().ok()?,
        ))
    };
    let known = word(0)? == wire::MAGIC
        && u16::from_le_bytes([header[4], header[5]]) == wire::VERSION
        && matches!(header[6], 1..=3);
    let counts = Counts {
        body: word(8)? as usize,
        procs: word(12)?,
        candidates: word(16)?,
        args: word(20)?,
        vars: word(24)?,
        groups: word(28)?,
    };
    // Each string and each group takes four bytes at least, so no count exceeds the body's length.
    let limit = wire::MAX_BODY as u32;
    let sane = counts.body <= wire::MAX_BODY
        && counts.args <= limit
        && counts.vars <= limit
        && counts.groups <= limit;
    (known && sane).then_some(counts)
}

fn parse_start(reader: &mut Reader, counts: &Counts, arena: *mut u8) -> Option<Start> {
    let flags = reader.u32()?;
    let (uid, gid) = (reader.u32()?, reader.u32()?);
    let oom_score = reader.u32()? as i32;
    let umask = reader.u32()?;
    let open_files = reader.u64()?;
    let raw_groups = reader.take(counts.groups as usize * 4)?;
    let work_dir = reader.path()?;
    let procs = reader.list(counts.procs)?;
    let candidates = reader.list(counts.candidates)?;
    let args = reader.list(counts.args)?;
    let vars = reader.list(counts.vars)?;
    let isolation = match flags & wire::HAS_ISOLATION {
        0 => None,
        _ => Some(reader.isolation()?),
    };
    let argv: *mut *const u8 = arena.cast();
    // SAFETY: the arena has room for both arrays with their NULLs, and then for the groups. Its
    // memory is fresh, that is zero, so the NULLs are there already.
    let (envp, groups) = unsafe {
        let envp = argv.add(counts.args as usize + 1);
        (envp, envp.add(counts.vars as usize + 1).cast::<u32>())
    };
    for (array, list) in [(argv, args), (envp, vars)] {
        for (at, text) in list.enumerate() {
            // SAFETY: the list holds exactly as many strings as the array has places.
            unsafe { array.add(at).write(text.as_ptr().cast()) };
        }
    }
    for (at, raw) in raw_groups.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: `raw_groups` holds `counts.groups` of them.
        unsafe { groups.add(at).write(u32::from_le_bytes(*raw)) };
    }
    // SAFETY: just written; a `Gid` is a transparent `u32`.
    let groups: &'static [Gid] =
        unsafe { core::slice::from_raw_parts(groups.cast(), counts.groups as usize) };
    Some(Start {
        user: (flags & wire::HAS_USER != 0).then_some((uid, gid)),
        groups: (flags & wire::HAS_GROUPS != 0).then_some(groups),
        oom_score: (flags & wire::HAS_OOM_SCORE != 0).then_some(oom_score),
        umask: (flags & wire::HAS_UMASK != 0).then_some(umask),
        open_files: (flags & wire::HAS_OPEN_FILES != 0).then_some(open_files),
        tty: flags & wire::HAS_TTY != 0,
        work_dir,
        procs,
        candidates,
        argv,
        envp,
        lifeline: flags & wire::HAS_LIFELINE != 0,
        isolation,
    })
}

fn receive_header(
    agent: BorrowedFd<'_>,
    header: &mut [u8; wire::HEADER],
) -> Result<(Fds, More), Errno> {
    const MOST: usize = wire::START_FDS + wire::MORE_FDS;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(header)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let message = recvmsg(agent, &mut parts, &mut control, flags)?;
    if message.bytes != wire::HEADER {
        return Err(Errno::CONNRESET);
    }
    let mut fds = [const { None }; wire::START_FDS];
    let mut more = [const { None }; wire::MORE_FDS];
    let mut places = fds.iter_mut().chain(&mut more);
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            for fd in received {
                if let Some(place) = places.next() {
                    *place = Some(fd);
                }
            }
        }
    }
    Ok((fds, more))
}
