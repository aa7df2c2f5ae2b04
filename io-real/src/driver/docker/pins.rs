//! Places where the engine finds what was opened without following links.
//!
//! The engine is given paths, follows links on them, and does so after they were checked. What lies where tasks may
//! put links is therefore mounted, by its handle, onto a place below the agent's own directory, for as long as its
//! container starts; the container's own mount stays when that one is taken away.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use drover_core::ids::LaunchId;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};

/// The places. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pins(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: OwnedFd,
    path: PathBuf,
}

/// One of them, until it is dropped.
pub(super) struct Pin {
    pins: Pins,
    name: String,
}

impl Pins {
    /// Places in `dir`, which belongs to the agent alone and is at `path`. What earlier agents left there is taken
    /// away.
    ///
    /// # Errors
    /// Something there resists.
    pub fn new(dir: OwnedFd, path: PathBuf) -> io::Result<Pins> {
        let pins = Pins(Arc::new(Inner { dir, path }));
        for entry in Dir::read_from(&pins.0.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !matches!(name.as_str(), "." | "..") {
                pins.remove(&name)?;
            }
        }
        Ok(pins)
    }

    /// A place for what is behind a handle.
    pub(super) fn pin(&self, launch: LaunchId, index: usize, of: &OwnedFd) -> io::Result<Pin> {
        let name = format!("{launch}.{index}");
        let dir = &self.0.dir;
        let mode = Mode::RUSR | Mode::WUSR;
        let is_dir = FileType::from_raw_mode(fstat(of)?.st_mode) == FileType::Directory;
        match is_dir {
            true => mkdirat(dir, &name, mode | Mode::XUSR)?,
            false => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(openat(dir, &name, flags, mode)?);
            }
        }
        let pin = Pin {
            pins: self.clone(),
            name,
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(of, "", flags)?;
        let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&tree, "", dir.as_fd(), &pin.name, empty)?;
        Ok(pin)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}/{name}", self.0.dir.as_raw_fd());
        match unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // Nothing is mounted there.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let removed = match unlinkat(&self.0.dir, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(&self.0.dir, name, AtFlags::REMOVEDIR),
            removed => removed,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Pin {
    /// Its path, for the engine.
    pub(super) fn path(&self) -> PathBuf {
        self.pins.0.path.join(&self.name)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Err(error) = self.pins.remove(&self.name) {
            tracing::warn!(place = self.name, %error, "cannot take away what was mounted for an engine");
        }
    }
}
