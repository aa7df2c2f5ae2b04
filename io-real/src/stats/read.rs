//! Reading a file of the kernel again and again, into one buffer.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, pread};

/// The most bytes of one file that are looked at.
const MOST: usize = 64 * 1024;

/// What is read is in here until the next is.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer(vec![0; MOST])
    }
}

impl Buffer {
    /// The file from its beginning, or nothing if it cannot be read. Of one that is too long only
    /// whole lines count.
    pub(crate) fn read(&mut self, file: impl AsFd) -> Option<&[u8]> {
        let mut length = 0;
        loop {
            let buffer = self.0.get_mut(length..).filter(|buffer| !buffer.is_empty());
            let Some(buffer) = buffer else {
                let whole = self.0.iter().rposition(|byte| *byte == b'\n')?;
                return self.0.get(..whole);
            };
            match pread(&file, buffer, u64::try_from(length).ok()?) {
                Ok(0) => return self.0.get(..length),
                Ok(more) => length += more,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            // The kernel writes files of a few counters whole; only lists come in parts.
            if length < 1024 {
                return self.0.get(..length);
            }
        }
    }

    /// As [`Buffer::read`]; nothing of a file that there is not.
    pub(crate) fn all(&mut self, file: Option<&File>) -> &[u8] {
        let text = file.and_then(|file| self.read(file));
        text.unwrap_or_default()
    }

    /// As [`Buffer::read`], of a file that is opened for it.
    pub(crate) fn read_at(&mut self, dir: impl AsFd, path: &str) -> Option<&[u8]> {
        let file = openat(dir, path, FLAGS, Mode::empty()).ok()?;
        self.read(file)
    }
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// Opens a file to read it again and again; nothing if there is none.
pub(crate) fn open(path: &Path) -> Option<File> {
    openat(CWD, path, FLAGS, Mode::empty()).ok().map(File::from)
}
