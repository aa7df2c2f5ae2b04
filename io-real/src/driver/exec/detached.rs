//! Mounts that are nowhere yet: copies of parts of the host, and new file systems.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, open_tree,
};

/// What a task may do through a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// It may not write.
    pub(super) read_only: bool,
    /// Programs there may give who executes them the rights of their owner.
    pub(super) suid: bool,
    /// Device nodes there are devices.
    pub(super) devices: bool,
    /// Programs there cannot be executed.
    pub(super) no_exec: bool,
    /// What is mounted below it is part of it.
    pub(super) recursive: bool,
    /// What the host mounts below it later, too.
    pub(super) follows: bool,
}

impl Access {
    /// A directory of the task's own.
    pub(super) const OWN: Access = Access {
        read_only: false,
        suid: false,
        devices: false,
        no_exec: false,
        recursive: false,
        follows: false,
    };

    /// A part of the host.
    pub(super) const HOST: Access = Access {
        read_only: true,
        recursive: true,
        ..Access::OWN
    };

    /// A file that the agent wrote for the task.
    pub(super) const HOST_FILE: Access = Access {
        read_only: true,
        no_exec: true,
        ..Access::OWN
    };

    /// A volume.
    pub(super) const VOLUME: Access = Access {
        recursive: true,
        ..Access::OWN
    };

    /// A device node.
    pub(super) const NODE: Access = Access {
        devices: true,
        no_exec: true,
        ..Access::OWN
    };

    /// Memory in which nothing is executed.
    pub(super) const DATA: Access = Access {
        no_exec: true,
        ..Access::OWN
    };

    fn attributes(self) -> MountAttrFlags {
        let flag = |wanted: bool, flag| {
            if wanted {
                flag
            } else {
                MountAttrFlags::empty()
            }
        };
        flag(self.read_only, MountAttrFlags::MOUNT_ATTR_RDONLY)
            | flag(!self.suid, MountAttrFlags::MOUNT_ATTR_NOSUID)
            | flag(!self.devices, MountAttrFlags::MOUNT_ATTR_NODEV)
            | flag(self.no_exec, MountAttrFlags::MOUNT_ATTR_NOEXEC)
    }
}

/// A copy of the mount of what a path leads to, links followed: for paths of the operator.
pub(super) fn copy_path(path: &Path, access: Access) -> io::Result<OwnedFd> {
    let named = |errno: Errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let there = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(named)?;
    copy(there.as_fd(), "", access)
}

/// A copy of the mount of what is at a path below a directory; of the directory itself if that is empty.
pub(super) fn copy(at: BorrowedFd<'_>, path: &str, access: Access) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if access.recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = open_tree(at, path, flags)?;
    let propagation = match access.follows {
        true => libc::MS_SLAVE,
        false => libc::MS_PRIVATE,
    };
    set(
        tree.as_fd(),
        access.attributes(),
        propagation,
        access.recursive,
    )?;
    Ok(tree)
}

/// A new file system with these options; those without a value are flags.
pub(super) fn fresh(kind: &str, options: &[(&str, &str)], access: Access) -> io::Result<OwnedFd> {
    let fs = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        match value.is_empty() {
            true => fsconfig_set_flag(&fs, *name)?,
            false => fsconfig_set_string(&fs, *name, *value)?,
        }
    }
    fsconfig_create(&fs)?;
    Ok(fsmount(
        &fs,
        FsMountFlags::FSMOUNT_CLOEXEC,
        access.attributes(),
    )?)
}

/// Lets nobody write through a mount any more.
pub(super) fn make_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
    set(tree, MountAttrFlags::MOUNT_ATTR_RDONLY, 0, false)
}

/// As the kernel wants it.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes to a mount. rustix has no such call.
fn set(
    tree: BorrowedFd<'_>,
    attributes: MountAttrFlags,
    propagation: u64,
    recursive: bool,
) -> io::Result<()> {
    let attr = MountAttr {
        set: u64::from(attributes.bits()),
        clear: 0,
        propagation,
        user_namespace: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends with NUL, and the attributes live through the call, which only reads them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
