//! The task's side of the fork: from a copy of the shim to the task's program.

use crate::core_dumps;
use crate::isolate::{self, NamespaceHandle};
use crate::privileges;
use crate::proc;
use crate::signals;
use crate::spec::{Fault, More, Start};
use crate::text::Text;
use crate::wire::Step;
use core::ffi::CStr;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat2, readlinkat_raw, statat};
use rustix::io::{Errno, Result, read, write};
use rustix::process::{
    Gid, Resource, Rlimit, Uid, chdir, fchdir, getrlimit, ioctl_tiocsctty, setrlimit, setsid, umask,
};
use rustix::runtime_448b8ad740e2a26f as runtime;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The task's end of what it inherits.
pub struct Ends<'a> {
    /// Its directory.
    pub task_dir: &'a OwnedFd,
    /// `/dev/null`.
    pub null: &'a OwnedFd,
    /// Write ends: stdout, stderr.
    pub outputs: [&'a OwnedFd; 2],
    /// The trees of its mounts, or who holds the namespaces that it enters.
    pub more: &'a More,
    /// Where the kernel put the number of the shim's arguments, and then the arguments.
    pub arguments: *mut *mut u8,
}

/// Becomes the task, or reports on `link` why not.
///
/// The program is executed only when the shim has said `go`, that is after the record names this
/// process: no task ever runs whose pid is not on record.
pub fn run(
    start: &Start,
    ends: &Ends<'_>,
    namespace_handle: Option<&NamespaceHandle>,
    link: &OwnedFd,
) -> ! {
    let fault = match prepare(start, ends, namespace_handle, link) {
        Err(fault) => fault,
        Ok(()) => {
            let mut go = [0];
            if !matches!(read(link, &mut go), Ok(1)) {
                runtime::exit_group(127);
            }
            execute(start, ends.task_dir)
        }
    };
    report(link, fault);
    runtime::exit_group(127)
}

/// Tells the shim what went wrong.
pub fn report(link: &OwnedFd, fault: Fault) {
    let mut report = [0; 12];
    for (place, word) in report.as_chunks_mut::<4>().0.iter_mut().zip([
        fault.step as u32,
        fault.errno.raw_os_error() as u32,
        fault.path,
    ]) {
        *place = word.to_le_bytes();
    }
    let _ = write(link, &report);
}

/// Enters the task's control groups.
pub fn join_groups(start: &Start) -> core::result::Result<(), Fault> {
    for (path, file) in (0..).zip(start.procs) {
        // The kernel reads 0 as "who writes this".
        proc::write_file(file, b"0").map_err(|errno| Fault {
            step: Step::Cgroup,
            errno,
            path,
        })?;
    }
    Ok(())
}

fn prepare(
    start: &Start,
    ends: &Ends<'_>,
    namespace_handle: Option<&NamespaceHandle>,
    link: &OwnedFd,
) -> core::result::Result<(), Fault> {
    setsid().map_err(Fault::at(Step::Session))?;
    join_groups(start)?;
    if let Some(score) = start.oom_score {
        let text = Text::new().push(if score < 0 { b"-" } else { b"" });
        let text = text.number(u64::from(score.unsigned_abs()));
        proc::write_file(c"/proc/self/oom_score_adj", text.as_c_str().to_bytes())
            .map_err(Fault::at(Step::OomScore))?;
    }
    if let Some(mask) = start.umask {
        umask(Mode::from_raw_mode(mask & 0o777));
    }
    if let Some(soft) = start.open_files {
        limit_open_files(soft).map_err(Fault::at(Step::OpenFiles))?;
    }
    core_dumps::leave_to_task();
    stdio(ends).map_err(Fault::at(Step::Stdio))?;
    if start.tty {
        // SAFETY: standard input was just set, and stays open until the program is executed.
        let terminal = unsafe { BorrowedFd::borrow_raw(0) };
        ioctl_tiocsctty(terminal).map_err(Fault::at(Step::Stdio))?;
    }
    match (&start.isolation, namespace_handle) {
        (Some(isolation), Some(namespace_handle)) => {
            isolate::enter(namespace_handle, isolation, link)?;
            privileges::become_user(isolation, start)?;
        }
        _ => become_user(start)?,
    }
    match (start.work_dir, namespace_handle) {
        (Some(path), _) => chdir(path),
        (None, None) => fchdir(ends.task_dir),
        (None, Some(_)) => chdir(c"/"),
    }
    .map_err(Fault::at(Step::WorkDir))?;
    signals::reset();
    Ok(())
}

/// Sets the soft limit; the hard one stays, and bounds it.
fn limit_open_files(soft: u64) -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(soft, |maximum| soft.min(maximum)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
}

/// The sources lie above 2, since the agent gave the shim all three standard descriptors, so no
/// step overwrites the source of a later one.
fn stdio(ends: &Ends<'_>) -> Result<()> {
    let [stdout, stderr] = ends.outputs;
    dup2_stdin(ends.null)?;
    dup2_stdout(stdout)?;
    dup2_stderr(stderr)
}

/// Groups go first: who has given up root cannot change them any more.
pub fn become_user(start: &Start) -> core::result::Result<(), Fault> {
    if let Some(groups) = start.groups {
        set_thread_groups(groups).map_err(Fault::at(Step::Groups))?;
    }
    if let Some((uid, gid)) = start.user {
        let (uid, gid) = (Uid::from_raw_unchecked(uid), Gid::from_raw_unchecked(gid));
        set_thread_res_gid(gid, gid, gid).map_err(Fault::at(Step::Gid))?;
        set_thread_res_uid(uid, uid, uid).map_err(Fault::at(Step::Uid))?;
    }
    Ok(())
}

/// Tries the candidates; comes back only with the reason why none was executed.
///
/// As in a search of a path by name, a place that may not be looked into is passed over, and so is
/// a file that may not be executed; but that is told, if nothing better is found.
fn execute(start: &Start, task_dir: &OwnedFd) -> Fault {
    let (mut denied, mut missing, mut closed) = (None, None, None);
    for (path, candidate) in (0..).zip(start.candidates) {
        let absolute = candidate.to_bytes().first() == Some(&b'/');
        let errno = if absolute {
            // SAFETY: the spec made both arrays NULL-terminated.
            unsafe { runtime::execve(candidate, start.argv, start.envp) }
        } else {
            execute_below(candidate, start, task_dir)
        };
        let fault = Fault {
            step: Step::Exec,
            errno,
            path,
        };
        match errno {
            Errno::NOENT | Errno::NOTDIR => missing = Some(fault),
            Errno::ACCESS if absolute => {
                let there = statat(CWD, candidate, AtFlags::empty()).is_ok();
                let place = if there { &mut denied } else { &mut closed };
                place.get_or_insert(fault);
            }
            _ => return fault,
        }
    }
    denied.or(missing).or(closed).unwrap_or(Fault {
        step: Step::Exec,
        errno: Errno::NOENT,
        path: 0,
    })
}

/// Executes a file of the task directory, which is the root for all links on the way to it.
fn execute_below(candidate: &CStr, start: &Start, task_dir: &OwnedFd) -> Errno {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let program = match openat2(task_dir, candidate, flags, Mode::empty(), within) {
        Ok(program) => program,
        Err(errno) => return errno,
    };
    // SAFETY: the spec made both arrays NULL-terminated.
    let errno =
        unsafe { runtime::execveat(&program, c"", start.argv, start.envp, AtFlags::EMPTY_PATH) };
    if errno != Errno::NOENT {
        return errno;
    }
    // A script: its interpreter would have to open a descriptor that is closed by then. Give it the
    // resolved path. Should the task swap the file now, it gets to run what it could run anyway.
    let link = Text::new()
        .push(b"/proc/self/fd/")
        .number(program.as_raw_fd() as u64);
    let mut path = [0; 4096];
    match readlinkat_raw(CWD, link.as_c_str(), &mut path) {
        Ok(_) => match CStr::from_bytes_until_nul(&path) {
            // SAFETY: the spec made both arrays NULL-terminated.
            Ok(path) => unsafe { runtime::execve(path, start.argv, start.envp) },
            Err(_) => Errno::NAMETOOLONG,
        },
        Err(errno) => errno,
    }
}
