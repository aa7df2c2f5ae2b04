//! The root of an isolated task: built in its mount namespace, then entered, and the old one dropped.
//!
//! The agent made most of the mounts and sent them as descriptors. They are put at places below the new root that
//! are opened without following a link, so nothing that a task left there leads elsewhere.

use crate::kernel;
use crate::spec::{Fault, More, Mounts};
use crate::wire::{self, Step};
use core::ffi::CStr;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::{Errno, Result};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsmount, fsopen, mount_change, move_mount,
    open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};

/// Where `/dev/null` is, below the root.
const NULL: &CStr = c"dev/null";

/// Builds the root and enters it.
pub fn build(mounts: Mounts, more: &More) -> core::result::Result<(), Fault> {
    let all = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change(c"/", all).map_err(Fault::at(Step::Root))?;
    let mut trees = more.iter().flatten();
    let mut root = None;
    for (path, (what, place)) in (0..).zip(mounts) {
        let tree = match what {
            wire::ROOT | wire::TREE => trees.next(),
            _ => None,
        };
        let done = match (what, tree, root) {
            (wire::ROOT, Some(tree), None) => {
                root = Some(tree);
                put_on_root(tree)
            }
            (_, _, Some(root)) => mount(root, what, tree, place),
            _ => Err(Errno::INVAL),
        };
        done.map_err(|errno| Fault {
            step: Step::Mount,
            errno,
            path,
        })?;
    }
    let fault = Fault::at(Step::Root);
    let root = root.ok_or_else(|| fault(Errno::INVAL))?;
    enter(root).map_err(fault)
}

/// Puts the new root over the old one.
fn put_on_root(tree: &OwnedFd) -> Result<()> {
    move_mount(
        tree,
        c"",
        CWD,
        c"/",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
}

/// Makes it the root. The old one lies below it then, and is let go with all that is mounted in it.
fn enter(root: &OwnedFd) -> Result<()> {
    fchdir(root)?;
    pivot_root(c".", c".")?;
    unmount(c".", UnmountFlags::DETACH)?;
    chdir(c"/")
}

fn mount(root: &OwnedFd, what: u32, tree: Option<&OwnedFd>, place: &CStr) -> Result<()> {
    let is_option = matches!(what, wire::READ_ONLY | wire::MASK);
    let place = match open(root, place) {
        // A kernel may lack what is to be hidden.
        Err(Errno::NOENT) if is_option => return Ok(()),
        place => place?,
    };
    let closed = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let read_only = closed | MountAttrFlags::MOUNT_ATTR_RDONLY;
    match (what, tree) {
        (wire::TREE, Some(tree)) => put(tree, &place),
        (wire::PROC, _) => put(&fresh(c"proc", closed)?, &place),
        (wire::MQUEUE, _) => put(&fresh(c"mqueue", closed)?, &place),
        (wire::SYSFS, _) => put(&fresh(c"sysfs", read_only)?, &place),
        (wire::READ_ONLY, _) => {
            let same = copy(&place)?;
            kernel::make_read_only(same.as_fd())?;
            put(&same, &place)
        }
        (wire::MASK, _) => match FileType::from_raw_mode(fstat(&place)?.st_mode) {
            FileType::Directory => put(&fresh(c"tmpfs", read_only)?, &place),
            _ => put(&copy(&open(root, NULL)?)?, &place),
        },
        _ => Err(Errno::INVAL),
    }
}

/// Opens a place below the root, out of which nothing leads.
fn open(root: &OwnedFd, place: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, place, flags, Mode::empty(), resolve)
}

fn put(tree: &OwnedFd, place: &OwnedFd) -> Result<()> {
    let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, c"", place, c"", empty)
}

/// Another mount of what is at a place.
fn copy(place: &OwnedFd) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, c"", flags)
}

/// A new file system.
fn fresh(kind: &CStr, attributes: MountAttrFlags) -> Result<OwnedFd> {
    let fs = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&fs)?;
    fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
