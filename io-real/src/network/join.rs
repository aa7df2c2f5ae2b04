//! How a program of somebody else's making joins a network: by the file that holds it, and a pipe by which it says
//! that it did.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use drover_core::ids::{AllocId, LaunchId};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, mknodat, openat, unlinkat};
use rustix::io::Errno;

use super::{NAMESPACE, Networks};

/// A pipe with a name in the directory of a network, until it is dropped.
#[derive(Debug)]
pub struct JoinPipe {
    dir: OwnedFd,
    name: String,
    path: PathBuf,
    network: PathBuf,
}

impl Networks {
    /// A pipe for a launch, and its end to read from. One of an earlier try is replaced.
    ///
    /// # Errors
    /// The network is not there, or the machine says no.
    pub fn join_pipe(&self, alloc: AllocId, launch: LaunchId) -> io::Result<(JoinPipe, OwnedFd)> {
        let dir = self.open(alloc)?;
        let at = self.path(alloc);
        let name = format!("join-{launch}");
        match unlinkat(&dir, name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(dir.as_fd(), name.as_str(), FileType::Fifo, mode, 0)?;
        let pipe = JoinPipe {
            path: at.join(&name),
            network: at.join(NAMESPACE),
            dir,
            name,
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let reader = openat(&pipe.dir, pipe.name.as_str(), flags, Mode::empty())?;
        Ok((pipe, reader))
    }
}

impl JoinPipe {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file that holds the network.
    pub fn network(&self) -> &Path {
        &self.network
    }
}

impl Drop for JoinPipe {
    fn drop(&mut self) {
        // What is left is removed with the network.
        let _ = unlinkat(&self.dir, self.name.as_str(), AtFlags::empty());
    }
}
