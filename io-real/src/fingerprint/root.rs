//! Reading a machine's files, below one directory and within bounds.
//!
//! Links are followed, and lead nowhere outside of the directory: a machine's files that were
//! copied somewhere are read as that machine would read them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::error::ProbeError;
use crate::mounts::{self, Mount};

/// How long a file of one value is at most.
const LINE: usize = 4096;

/// The directory that a machine's `/proc`, `/sys` and `/etc` are in.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// The machine whose files are below `path`; `/` for this one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let dir = openat(CWD, path, flags, Mode::empty())?;
        Ok(Root {
            dir,
            path: path.to_owned(),
        })
    }

    /// Where `path` is for programs of this machine, which know nothing of the handle.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        self.path.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// What a plain file says, or `None` if there is none or it has nothing to say. Bytes that are
    /// no text become replacement characters.
    pub(super) fn text(&self, path: &str, limit: usize) -> Result<Option<String>, ProbeError> {
        let bytes = self.bytes(path, limit)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The mounts of the machine, later ones over earlier ones.
    pub(super) fn mounts(&self) -> Result<Vec<Mount>, ProbeError> {
        let table = self.bytes(mounts::TABLE, mounts::LONGEST)?;
        Ok(mounts::parse(&table.unwrap_or_default()))
    }

    fn bytes(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, ProbeError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let Some(file) = self.at(path, flags)? else {
            return Ok(None);
        };
        let kind = fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind != Ok(FileType::RegularFile) {
            return Err(ProbeError::unreadable(path, "it is no plain file"));
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        match File::from(file).take(most).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) if is_empty_value(&error) => return Ok(None),
            Err(error) => return Err(ProbeError::unreadable(path, error)),
        }
        if bytes.len() > limit {
            let what = path.to_owned();
            return Err(ProbeError::TooLarge { what, limit });
        }
        Ok(Some(bytes))
    }

    /// A file that holds one value, without the blanks around it.
    pub(super) fn value(&self, path: &str) -> Result<Option<String>, ProbeError> {
        let text = self.text(path, LINE)?.unwrap_or_default();
        let value = text.trim();
        Ok((!value.is_empty()).then(|| value.to_owned()))
    }

    /// A file that holds one number. One that holds something else says nothing.
    pub(super) fn number(&self, path: &str) -> Result<Option<u64>, ProbeError> {
        Ok(self.value(path)?.and_then(|value| value.parse().ok()))
    }

    /// The names in a directory, sorted; none if there is no such directory. Names that are no
    /// text are left out.
    pub(super) fn names(&self, path: &str, most: usize) -> Result<Vec<String>, ProbeError> {
        let Some(dir) = self.at(path, OFlags::RDONLY | OFlags::DIRECTORY)? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        let entries = Dir::new(dir).map_err(|error| ProbeError::unreadable(path, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| ProbeError::unreadable(path, error))?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => continue,
                Ok(name) => names.push(name.to_owned()),
            }
            if names.len() > most {
                let what = path.to_owned();
                return Err(ProbeError::TooLarge { what, limit: most });
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether something is at `path`.
    pub(super) fn has(&self, path: &str) -> Result<bool, ProbeError> {
        Ok(self.at(path, OFlags::PATH)?.is_some())
    }

    /// Whether a program is at `path`: a plain file that may be executed.
    pub(super) fn has_program(&self, path: &str) -> Result<bool, ProbeError> {
        let Some(file) = self.at(path, OFlags::PATH)? else {
            return Ok(false);
        };
        let stat = rustix::fs::statat(&file, "", AtFlags::EMPTY_PATH)
            .map_err(|error| ProbeError::unreadable(path, error))?;
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(plain && stat.st_mode & 0o111 != 0)
    }

    fn at(&self, path: &str, flags: OFlags) -> Result<Option<OwnedFd>, ProbeError> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(
                &self.dir,
                path,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            ) {
                Ok(file) => return Ok(Some(file)),
                // Something was renamed meanwhile: the kernel asks to look again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(ProbeError::unreadable(path, error)),
            }
        }
    }
}

/// What the kernel answers for a value that a thing does not have, such as the speed of an
/// interface that is down, or of a thing that went away meanwhile.
fn is_empty_value(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::INVAL | Errno::NODEV | Errno::NXIO | Errno::OPNOTSUPP | Errno::NOENT)
    )
}
