//! Limits of disk space: project quotas of the file system (ext4, XFS, f2fs).
//!
//! All that lies in an allocation's directory belongs to a *project* of the file system, a number that what is made
//! below it inherits. The file system counts what a project takes, and refuses more than its limit. The number is
//! made of the allocation's id and stands in the directory itself, so nobody else has to remember it. Files and
//! directories are limited with the space, because an empty one takes none and the file system has few.
//!
//! The kernel lets whoever has the capability `sys_resource` write more, such as `raw_exec` tasks of root. And whoever
//! owns a file and is no prisoner of a user namespace may give it to another project: this bounds accidents of
//! `raw_exec` tasks, and not their malice. The filter of `exec` forbids the call.

use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use drover_core::ids::AllocId;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;
use rustix::ioctl;

use super::{AllocDirs, open_dir};

/// The first of our numbers; those of administrators and of container engines are small.
const FIRST: u32 = 0x4000_0000;
/// How many numbers are tried before it is given up to find one that nobody uses.
const TRIES: u32 = 64;
/// How deep directories are gone into that another allocation left.
const MAX_DEPTH: u32 = 64;
/// The unit of limits.
const UNIT: u64 = 1024;

/// `PRJQUOTA`, the kind of quota.
const PROJECT: u32 = 2;
const Q_GETQUOTA: u32 = 0x80_0007;
const Q_SETQUOTA: u32 = 0x80_0008;
const Q_XGETQSTAT: u32 = ((b'X' as u32) << 8) + 5;
/// Of `fs_quota_stat.qs_flags`: projects are counted, and their limits are enforced.
const COUNTED: u16 = 1 << 4;
const ENFORCED: u16 = 1 << 5;
/// Of `if_dqblk.dqb_valid`: the limits of space, and of files.
const SPACE_LIMITS: u32 = 1;
const FILE_LIMITS: u32 = 4;
/// For so many units of space there may be one file; file systems are made with one for 16 KiB.
const UNITS_A_FILE: u64 = 4;
/// So many there may be however small the limit is: the agent makes some itself.
const LEAST_FILES: u64 = 1024;
/// Of `fsxattr.fsx_xflags`: what is made in a directory belongs to its project.
const INHERITS: u32 = 0x200;

/// The kernel's `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    pad: [u8; 8],
}

/// The kernel's `struct if_dqblk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    hard_blocks: u64,
    soft_blocks: u64,
    bytes: u64,
    hard_inodes: u64,
    soft_inodes: u64,
    inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
    pad: u32,
}

/// The kernel's `struct fs_quota_stat`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct State {
    version: i8,
    flags: u16,
    rest: [u64; 10],
}

/// What a file system does about projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotas {
    /// It enforces their limits.
    Enforced,
    /// It counts what they take, and enforces nothing.
    Counted,
    /// It knows none, or not now.
    None,
}

impl AllocDirs {
    /// What the file system of the directories does about projects.
    pub fn quotas(&self) -> Quotas {
        let mut state = State::default();
        match quotactl(self.root.as_fd(), Q_XGETQSTAT, 0, &mut state) {
            Ok(()) if state.flags & ENFORCED != 0 => Quotas::Enforced,
            Ok(()) if state.flags & COUNTED != 0 => Quotas::Counted,
            Ok(()) | Err(_) => Quotas::None,
        }
    }

    /// Lets an allocation's directory take so many bytes at most, and a file for each 4 KiB of them, with all that is
    /// in it now. Doing it again changes the limit.
    ///
    /// # Errors
    /// The file system has no such limits, or the directory is not there.
    pub fn set_quota(&self, alloc: AllocId, bytes: u64) -> io::Result<()> {
        let dir = self.open(alloc, "")?;
        let project = match project_of(dir.as_fd())? {
            own if own >= FIRST => own,
            _ => self.unused_project(alloc)?,
        };
        let device = rustix::fs::fstat(&dir)?.st_dev;
        // The rest first: a directory that has its number is complete.
        assign_contents(&dir, project, device, MAX_DEPTH)?;
        assign(dir.as_fd(), project, true)?;
        self.limit(project, bytes.div_ceil(UNIT))
    }

    /// How many bytes an allocation's directory takes, if the file system counts them.
    pub(super) fn counted(&self, dir: &OwnedFd) -> Option<u64> {
        let project = project_of(dir.as_fd()).ok().filter(|own| *own >= FIRST)?;
        Some(self.limits(project).ok()?.bytes)
    }

    /// The project of an allocation's directory, if it has one of ours.
    pub(super) fn own_project(&self, alloc: AllocId) -> Option<u32> {
        let dir = self.open(alloc, "").ok()?;
        project_of(dir.as_fd()).ok().filter(|own| *own >= FIRST)
    }

    /// Nothing is left of a project: its number may be used by others.
    pub(super) fn drop_quota(&self, project: u32) -> io::Result<()> {
        self.limit(project, 0)
    }

    /// A number of which nothing is known.
    fn unused_project(&self, alloc: AllocId) -> io::Result<u32> {
        let first = u32::try_from(alloc.0 & u128::from(FIRST - 1)).unwrap_or(0);
        for next in 0..TRIES {
            let project = FIRST + (first + next) % FIRST;
            let known = self.limits(project)?;
            if known.hard_blocks == 0 && known.inodes == 0 {
                return Ok(project);
            }
        }
        Err(io::Error::other(
            "no project number is free for its disk quota",
        ))
    }

    fn limits(&self, project: u32) -> io::Result<Limits> {
        let mut limits = Limits::default();
        match quotactl(self.root.as_fd(), Q_GETQUOTA, project, &mut limits) {
            // Nobody ever used it.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Limits::default()),
            Err(error) => Err(explained(error)),
            Ok(()) => Ok(limits),
        }
    }

    fn limit(&self, project: u32, hard_blocks: u64) -> io::Result<()> {
        let hard_inodes = match hard_blocks {
            0 => 0,
            some => (some / UNITS_A_FILE).max(LEAST_FILES),
        };
        let mut limits = Limits {
            hard_blocks,
            hard_inodes,
            valid: SPACE_LIMITS | FILE_LIMITS,
            ..Limits::default()
        };
        quotactl(self.root.as_fd(), Q_SETQUOTA, project, &mut limits).map_err(explained)
    }
}

fn explained(error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("project quotas of its file system: {error}"),
    )
}

fn quotactl<T>(on: BorrowedFd<'_>, command: u32, id: u32, argument: &mut T) -> io::Result<()> {
    let argument: *mut T = argument;
    // SAFETY: the descriptor is open, and the argument is the structure that this command reads or writes, laid out as
    // the kernel's, and lives through the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            on.as_raw_fd(),
            command << 8 | PROJECT,
            id,
            argument.cast::<c_void>(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn attributes(file: BorrowedFd<'_>) -> Result<Attributes, Errno> {
    const GET: ioctl::Opcode = ioctl::opcode::read::<Attributes>(b'X', 31);
    // SAFETY: the kernel writes the structure that the operation is named with.
    unsafe { ioctl::ioctl(file, ioctl::Getter::<GET, Attributes>::new()) }
}

fn project_of(dir: BorrowedFd<'_>) -> io::Result<u32> {
    match attributes(dir) {
        Ok(attributes) => Ok(attributes.project),
        // A file system without such numbers.
        Err(Errno::NOTTY | Errno::OPNOTSUPP) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Gives a file to a project.
fn assign(file: BorrowedFd<'_>, project: u32, directory: bool) -> io::Result<()> {
    const SET: ioctl::Opcode = ioctl::opcode::write::<Attributes>(b'X', 32);
    let mut wanted = attributes(file)?;
    let flags = if directory {
        wanted.flags | INHERITS
    } else {
        wanted.flags
    };
    if (wanted.project, wanted.flags) == (project, flags) {
        return Ok(());
    }
    (wanted.project, wanted.flags) = (project, flags);
    // SAFETY: the kernel reads the structure that the operation is named with.
    unsafe { ioctl::ioctl(file, ioctl::Setter::<SET, Attributes>::new(wanted)) }?;
    Ok(())
}

/// Gives all that is in a directory to a project: files and directories of its own file system. What else there is takes nothing.
fn assign_contents(dir: &OwnedFd, project: u32, device: u64, deeper: u32) -> io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_dev != device {
            continue;
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let below = open_dir(dir.as_fd(), name)?;
                if deeper > 0 {
                    assign_contents(&below, project, device, deeper - 1)?;
                }
                assign(below.as_fd(), project, true)?;
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let resolve =
                    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
                let file = openat2(dir, name, flags, Mode::empty(), resolve)?;
                assign(file.as_fd(), project, false)?;
            }
            _ => {}
        }
    }
    Ok(())
}

const _: () = assert!(size_of::<Attributes>() == 28 && size_of::<Limits>() == 72);
const _: () = assert!(size_of::<State>() >= 80);
