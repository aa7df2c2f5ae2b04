//! Network namespaces: made, held by a file onto which they are mounted, entered, and let go.
//!
//! A namespace belongs to a thread. So whoever is to do something in one does it in a thread of its own, which ends
//! with that; no other thread of the agent is ever in another namespace than the agent.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::system::sethostname;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The file system of namespaces.
const NSFS: u64 = 0x6e73_6673;
/// More layers than this nobody mounts over each other by mistake.
const MOST_LAYERS: u32 = 16;

/// Where a program starts: in a namespace, and with a name for its machine.
#[derive(Debug)]
pub struct Entrance {
    pub(super) namespace: OwnedFd,
    pub(super) hostname: String,
}

impl Entrance {
    /// The namespace.
    pub fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Does something in a thread that is in there. What it starts is in there too.
    ///
    /// # Errors
    /// The thread cannot get there; else what the work says.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            enter(self.namespace.as_fd())?;
            if !self.hostname.is_empty() {
                // SAFETY: it is this thread's name for its machine alone; no descriptors are involved.
                unsafe { unshare_unsafe(UnshareFlags::NEWUTS) }?;
                sethostname(self.hostname.as_bytes())?;
            }
            work()
        })
    }
}

/// Puts the calling thread into a namespace.
pub(super) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// Puts the calling thread into a new namespace.
pub(super) fn enter_new() -> io::Result<()> {
    // SAFETY: it is this thread's network alone; no descriptors become unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Does something on a thread of its own and waits for it.
pub(super) fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("network".to_owned());
        let lost = |_| io::Error::other("a thread for a network was lost");
        thread.spawn_scoped(scope, work)?.join().map_err(lost)?
    })
}

/// The namespace that the calling thread is in.
pub(super) fn own() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(
        CWD,
        "/proc/thread-self/ns/net",
        flags,
        Mode::empty(),
    )?)
}

/// Mounts the namespace of the calling thread onto a file of a directory, which is made.
pub(super) fn hold(dir: BorrowedFd<'_>, file: &str) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(dir, file, flags, Mode::from_raw_mode(0o400))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, "/proc/thread-self/ns/net", flags)?;
    let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree, "", &place, "", empty)?;
    Ok(())
}

/// The namespace that is mounted onto a file; none if there is no file, or nothing is mounted there, as after a
/// restart of the machine.
pub(super) fn held(dir: BorrowedFd<'_>, file: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let found = match openat(dir, file, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        found => found?,
    };
    let system = fstatfs(&found)?.f_type;
    let is_one = u64::try_from(system).is_ok_and(|system| system == NSFS);
    Ok(is_one.then_some(found))
}

/// Lets go of the namespace that is mounted onto a file. It ends when nobody is in it.
pub(super) fn let_go(dir: BorrowedFd<'_>, file: &str) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}/{file}", dir.as_raw_fd());
    for _ in 0..MOST_LAYERS {
        if held(dir, file)?.is_none() {
            return Ok(());
        }
        unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Err(io::Error::other("too much is mounted onto it"))
}
