//! Joins the network of an allocation, as the only program of a container, and stays while it is needed.
//!
//! An engine starts a container in the network of another container's process, and in none that it did not make
//! itself. So while a task's container starts there is a container with this program, whose process is in
//! the allocation's network. It ends when the agent closes its end of the pipe, which it does too when it dies.

use core::ffi::CStr;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, Result, write};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
};

/// What the program is called with.
const ARGUMENT: &CStr = c"join-network";
/// The network, as it is mounted into the container.
const NETWORK: &CStr = c"/.drover/network";
/// The pipe by which the agent learns whether this process is in there: the number of an error, or 0.
const PIPE: &CStr = c"/.drover/pipe";

/// Whether that is what this process is for.
///
/// # Safety
/// `arguments` must be what the kernel gave the program.
pub unsafe fn is_wanted(arguments: *mut *mut u8) -> bool {
    // SAFETY: their number comes first, and then they, each of which ends with a NUL.
    unsafe {
        arguments.cast::<usize>().read() > 1
            && CStr::from_ptr(arguments.add(2).read().cast()) == ARGUMENT
    }
}

/// Joins, and waits until nobody needs it. The status to exit with.
pub fn join() -> i32 {
    match serve() {
        Ok(()) => 0,
        Err(errno) => errno.raw_os_error(),
    }
}

fn serve() -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = openat(CWD, PIPE, flags, Mode::empty())?;
    let joined = enter();
    let word = joined.err().map_or(0, |errno| errno.raw_os_error() as u8);
    write(&pipe, &[word])?;
    joined?;
    until_closed(&pipe)
}

fn enter() -> Result<()> {
    let network = openat(
        CWD,
        NETWORK,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    move_into_link_name_space(
        rustix::fd::AsFd::as_fd(&network),
        Some(LinkNameSpaceType::Network),
    )?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Nobody writes to it but this process, so what happens is that its other end is closed.
fn until_closed(pipe: &OwnedFd) -> Result<()> {
    loop {
        match poll(&mut [PollFd::new(pipe, PollFlags::empty())], None) {
            Err(Errno::INTR) => {}
            done => return done.map(|_| ()),
        }
    }
}
