//! The shim program in memory that nobody can write, from which shims run.
//!
//! A task can execute `/proc/self/exe` as its program, which is then the image of its shim. Were that a file
//! of the host, a task of root could change the file by it. So the agent puts the program into memory that
//! is sealed; shims share its pages, and the kernel frees it when agent and shims are gone.
//!
//! The memory is named after the program's file, so that `/proc/PID/exe` of a shim still says whose it is:
//! `/memfd:DATA/bin/shim-HASH (deleted)`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// The longest name that the kernel takes, in bytes.
const LONGEST_NAME: usize = 249;

/// The program in sealed memory.
#[derive(Debug)]
pub(super) struct Sealed(OwnedFd);

impl Sealed {
    /// Puts `program`, whose file is `path`, into sealed memory.
    ///
    /// # Errors
    /// EACCES: no memory may be executed on this host (`vm.memfd_noexec`). Others: what the kernel says.
    pub(super) fn new(program: &[u8], path: &Path) -> io::Result<Self> {
        let mut file = File::from(allocate(&name(path))?);
        file.write_all(program)?;
        let sealed = Self(file.into());
        sealed.make_executable()?;
        let content = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
        fcntl_add_seals(&sealed.0, content)?;
        // Nobody takes away that it can be executed, either. Before Linux 6.3 there is no such seal.
        match fcntl_add_seals(&sealed.0, SealFlags::EXEC) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
        fcntl_add_seals(&sealed.0, SealFlags::SEAL)?;
        Ok(sealed)
    }

    /// Lets the agent's user execute it, and nobody else.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn make_executable(&self) -> io::Result<()> {
        Ok(fchmod(&self.0, Mode::RUSR | Mode::XUSR)?)
    }

    /// A path by which this process, and a child that is about to execute it, reach it.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Memory that may be executed. Before Linux 6.3 there was no other, and no word for it.
fn allocate(name: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => Ok(memfd_create(name, flags)?),
        memory => Ok(memory?),
    }
}

/// The path, or where that is too long for a name, its end.
fn name(path: &Path) -> Vec<u8> {
    let whole = path.as_os_str().as_bytes();
    if whole.len() <= LONGEST_NAME {
        return whole.to_owned();
    }
    let last = path.file_name().unwrap_or_default().as_bytes();
    [b"/", last].concat()
}
