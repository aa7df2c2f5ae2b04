//! The namespaces of an isolated task.
//!
//! They are made by a process that is born in them and does nothing else: it builds the root
//! ([`crate::root`]), and from then on holds the namespaces and buries orphans. It is the first process of the
//! process namespace, so the kernel kills all of that with it. The task's program is not its child
//! but the shim's, born in that namespace and led into the others by this process's pidfd; so the shim sees its
//! end and signals it as it does every task. Programs beside a task (sessions, scripts) come in by the same way.
//!
//! Nobody in the namespaces can look into a process of ours there, or into a child that has not executed its
//! program yet: they are not dumpable, and have capabilities that a task lacks.

use crate::child::{self, Ends};
use crate::kernel;
use crate::launch;
use crate::root;
use crate::spec::{Fault, Isolation, More, Start};
use crate::wire::Step;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open,
    set_dumpable_behavior, wait, waitpid,
};
use rustix::runtime_448b8ad740e2a26f as runtime;
use rustix::thread::{
    ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe,
};

/// The program of a task is the second process in its process namespace.
const PROGRAM: i32 = 2;

/// The way into namespaces.
pub struct NamespaceHandle {
    /// The pidfd of the process that holds them.
    handle: OwnedFd,
    /// That process, if it is a child of ours.
    pub holder: Option<Pid>,
}

/// Makes the namespaces, or takes those that are there.
pub fn open(
    isolation: &Isolation,
    start: &Start,
    ends: &Ends<'_>,
) -> Result<NamespaceHandle, Fault> {
    let fault = Fault::at(Step::Namespaces);
    // Also for the children that come of it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(&fault)?;
    if isolation.enter {
        let given = ends.more.first().and_then(Option::as_ref);
        let given = given.ok_or_else(|| fault(Errno::BADF))?;
        let handle = given.try_clone().map_err(&fault)?;
        return Ok(NamespaceHandle {
            handle,
            holder: None,
        });
    }
    let kind = SocketType::SEQPACKET;
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let (mine, its) = pair.map_err(&fault)?;
    let later = ThreadNameSpaceType::CONTROL_GROUP.bits();
    // SAFETY: there is one thread and no lock; the child gets a whole copy of a working process.
    let Some(holder) =
        unsafe { kernel::fork_into(isolation.namespaces & !later) }.map_err(&fault)?
    else {
        drop(mine);
        hold(isolation, start, ends, &its)
    };
    drop(its);
    let opened = launch::prepared(&mine)
        .and_then(|()| pidfd_open(holder, PidfdFlags::empty()).map_err(&fault));
    match opened {
        Ok(handle) => Ok(NamespaceHandle {
            handle,
            holder: Some(holder),
        }),
        Err(fault) => {
            end_holder(holder);
            Err(fault)
        }
    }
}

/// Has the next child born in the process namespace.
pub fn lead_next_child(
    namespace_handle: &NamespaceHandle,
    isolation: &Isolation,
) -> Result<(), Fault> {
    let processes = ThreadNameSpaceType::PROCESS_ID;
    match isolation.namespaces & processes.bits() {
        0 => Ok(()),
        _ => move_into_thread_name_spaces(namespace_handle.handle.as_fd(), processes)
            .map_err(Fault::at(Step::Enter)),
    }
}

/// In that child: enters the other namespaces, and closes all but the standard descriptors and `link`. The root
/// and the working directory are those of the mount namespace then.
pub fn enter(
    namespace_handle: &NamespaceHandle,
    isolation: &Isolation,
    link: &OwnedFd,
) -> Result<(), Fault> {
    let others = isolation.namespaces & !ThreadNameSpaceType::PROCESS_ID.bits();
    let others = ThreadNameSpaceType::from_bits_retain(others);
    move_into_thread_name_spaces(namespace_handle.handle.as_fd(), others)
        .map_err(Fault::at(Step::Enter))?;
    let link = link.as_raw_fd() as u32;
    // SAFETY: from here on this process uses the standard descriptors and the link only.
    unsafe {
        kernel::close_all(3, link.saturating_sub(1));
        kernel::close_all(link + 1, u32::MAX);
    }
    Ok(())
}

/// Ends namespaces in which nothing was started.
pub fn end(namespace_handle: &NamespaceHandle) {
    if let Some(holder) = namespace_handle.holder {
        end_holder(holder);
    }
}

fn end_holder(holder: Pid) {
    let _ = kill_process(holder, Signal::KILL);
    let _ = waitpid(Some(holder), WaitOptions::empty());
}

/// The life of the holder.
fn hold(isolation: &Isolation, start: &Start, ends: &Ends<'_>, link: &OwnedFd) -> ! {
    hide_name(ends.arguments);
    if let Err(fault) = build(isolation, start, ends.more) {
        child::report(link, fault);
        runtime::exit_group(127);
    }
    let _ = write(link, &[0; 12]);
    // SAFETY: nothing below uses a descriptor.
    unsafe { kernel::close_all(0, u32::MAX) };
    let is_first = getpid() == Pid::INIT;
    loop {
        match kernel::wait_signal() {
            Some(number) if number == Signal::CHILD.as_raw() => bury(),
            Some(number) if is_first => pass_on(number),
            Some(_) | None => {}
        }
    }
}

/// Takes this program's path, which is one of the host, out of what the task can read of the process.
fn hide_name(arguments: *mut *mut u8) {
    // SAFETY: the kernel put the path there, with NUL at its end, into memory that is this process's own.
    unsafe {
        let name = arguments.add(1).read();
        let mut at = 0;
        while !name.is_null() && name.add(at).read() != 0 {
            name.add(at).write(0);
            at += 1;
        }
    }
}

fn build(isolation: &Isolation, start: &Start, more: &More) -> Result<(), Fault> {
    child::join_groups(start)?;
    let groups = ThreadNameSpaceType::CONTROL_GROUP.bits();
    if isolation.namespaces & groups != 0 {
        // Now that the groups are those that shall look like the root.
        // SAFETY: no descriptors become unshared, which is what could surprise somebody.
        unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP) }.map_err(Fault::at(Step::Namespaces))?;
    }
    root::build(isolation.mounts, more)
}

/// Buries all orphans that are dead.
fn bury() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Who signals the first process means the task's program, which would be the first elsewhere.
fn pass_on(number: i32) {
    if let (Some(signal), Some(program)) =
        (crate::signals::from_number(number), Pid::from_raw(PROGRAM))
    {
        let _ = kill_process(program, signal);
    }
}
