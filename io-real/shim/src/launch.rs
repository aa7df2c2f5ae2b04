//! The shim's side of the fork.

use crate::child::{self, Ends};
use crate::claim::Claim;
use crate::isolate::{self, NamespaceHandle};
use crate::kernel;
use crate::proc;
use crate::record::{Failure, Process, State};
use crate::spec::{Fault, Keep, Start};
use crate::wire::Step;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::runtime_448b8ad740e2a26f::{Fork, kernel_fork};

/// Starts the task and leaves the record at `Running`, or at `Failed`.
pub fn launch(
    claim: &mut Claim,
    keep: &Keep,
    start: &Start,
    ends: &Ends<'_>,
) -> Result<Pid, Fault> {
    claim.record.oom_base = keep.oom.map_or(0, proc::oom_kills);
    let started = begin(claim, start, ends);
    if let Err(fault) = started {
        fail(claim, fault);
    }
    started
}

/// Opens the namespaces of an isolated task first. They end with the process that holds them, if the task does
/// not start.
fn begin(claim: &mut Claim, start: &Start, ends: &Ends<'_>) -> Result<Pid, Fault> {
    let Some(isolation) = &start.isolation else {
        return fork(claim, start, ends, None);
    };
    let namespace_handle = isolate::open(isolation, start, ends)?;
    claim.record.holder = namespace_handle
        .holder
        .map_or_else(Process::default, |holder| {
            proc::identity(Pid::as_raw(Some(holder)))
        });
    let started = isolate::lead_next_child(&namespace_handle, isolation)
        .and_then(|()| fork(claim, start, ends, Some(&namespace_handle)));
    if started.is_err() {
        isolate::end(&namespace_handle);
    }
    started
}

/// Leaves the record at `Failed`: this launch will never run.
pub fn fail(claim: &mut Claim, fault: Fault) {
    let errno = fault.errno.raw_os_error();
    claim.record.failure = Failure {
        step: fault.step as u32,
        errno,
        path: fault.path,
    };
    claim.record.state = State::Failed;
    let _ = claim.save();
    claim.sync();
}

fn fork(
    claim: &mut Claim,
    start: &Start,
    ends: &Ends<'_>,
    namespace_handle: Option<&NamespaceHandle>,
) -> Result<Pid, Fault> {
    let fault = Fault::at(Step::Fork);
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    let (mine, its) = pair.map_err(&fault)?;
    // SAFETY: there is one thread and no lock; the child gets a whole copy of a working process.
    match unsafe { kernel_fork() }.map_err(&fault)? {
        Fork::Child(_) => {
            // Or the child would not see the shim's death, and would hold the record's lock.
            drop(mine);
            claim.abandon_copy();
            child::run(start, ends, namespace_handle, &its)
        }
        Fork::ParentOf(pid) => {
            drop(its);
            release(claim, pid, &mine)
        }
    }
}

/// Puts the child on record, lets it go, and hears whether the program was executed.
fn release(claim: &mut Claim, pid: Pid, link: &OwnedFd) -> Result<Pid, Fault> {
    claim.record.task = proc::identity(Pid::as_raw(Some(pid)));
    claim.record.started_ns = kernel::now_ns();
    claim.record.state = State::Running;
    let saved = claim.save().map_err(Fault::at(Step::Record));
    if saved.is_ok() {
        // Refused if the child failed before; then its report is there to be read.
        let _ = send(link, &[1], SendFlags::NOSIGNAL);
    } else {
        let _ = rustix::net::shutdown(link, rustix::net::Shutdown::Both);
    }
    let mut report = [0; 12];
    let outcome = match (saved, receive(link, &mut report)) {
        (Err(fault), _) => Err(fault),
        // The link closes without a word when the program is executed.
        (Ok(()), Ok(0)) => return Ok(pid),
        (Ok(()), Ok(_)) => Err(parse(&report)),
        (Ok(()), Err(errno)) => Err(Fault {
            step: Step::Fork,
            errno,
            path: 0,
        }),
    };
    let _ = waitpid(Some(pid), WaitOptions::empty());
    outcome
}

/// Hears from a child that only prepares something. All is well when it says that it was at step 0.
pub fn prepared(link: &OwnedFd) -> Result<(), Fault> {
    let mut report = [0; 12];
    let broken = Fault {
        step: Step::Namespaces,
        errno: Errno::CHILD,
        path: 0,
    };
    match receive(link, &mut report) {
        Ok(12) if report == [0; 12] => Ok(()),
        Ok(12) => Err(parse(&report)),
        Ok(_) | Err(_) => Err(broken),
    }
}

/// Reads the report. A child that failed before it read `go` resets the link by leaving that unread;
/// its report lies behind the error that this makes.
fn receive(link: &OwnedFd, report: &mut [u8; 12]) -> Result<usize, Errno> {
    match read(link, report.as_mut_slice()) {
        Err(Errno::CONNRESET) => read(link, report.as_mut_slice()),
        reply => reply,
    }
}

fn parse(report: &[u8; 12]) -> Fault {
    let mut words = report
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes));
    let step = words.next().and_then(Step::from_raw).unwrap_or(Step::Fork);
    let errno = Errno::from_raw_os_error(words.next().unwrap_or(0) as i32);
    Fault {
        step,
        errno,
        path: words.next().unwrap_or(0),
    }
}
