//! Removing a directory that its tasks may have filled with anything.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, fchmod, renameat, unlinkat};
use rustix::io::Errno;

use super::open_dir;

/// How many directories are open at once. What lies deeper is first moved up.
const MAX_DEPTH: u32 = 64;

/// Removes `name` in `at`, and everything below it.
pub(super) fn tree(at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut remover = Remover {
        at,
        moved: 0,
        name,
        first_error: None,
    };
    let name_c = CString::new(name)?;
    remover.entry(at, &name_c, 0);
    // Each round removes what the round before moved up; depth shrinks by MAX_DEPTH each time.
    let mut next = 0;
    while next < remover.moved {
        let moved = CString::new(remover.moved_name(next))?;
        remover.entry(at, &moved, 0);
        next += 1;
    }
    match remover.first_error {
        None => Ok(()),
        Some(error) => {
            let error = io::Error::from(error);
            Err(io::Error::new(
                error.kind(),
                format!("cannot remove {name:?}: {error}"),
            ))
        }
    }
}

struct Remover<'a> {
    at: BorrowedFd<'a>,
    name: &'a str,
    moved: u32,
    first_error: Option<Errno>,
}

impl Remover<'_> {
    fn moved_name(&self, number: u32) -> String {
        format!("{}.removing-{number}", self.name)
    }

    fn note(&mut self, result: Result<(), Errno>) {
        if let Err(error) = result
            && error != Errno::NOENT
        {
            self.first_error.get_or_insert(error);
        }
    }

    /// Removes one entry, whatever it is.
    fn entry(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR | Errno::PERM) => self.directory(parent, name, depth),
            Err(error) => self.note(Err(error)),
        }
    }

    /// Removes one entry that was a directory when it was listed. Most are empty.
    fn directory(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => return,
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            // A file or a link by now.
            Err(Errno::NOTDIR) => {
                let result = unlinkat(parent, name, AtFlags::empty());
                return self.note(result);
            }
            Err(error) => return self.note(Err(error)),
        }
        if depth >= MAX_DEPTH {
            let moved = self.moved_name(self.moved);
            self.moved += 1;
            let result = renameat(parent, name, self.at, moved);
            return self.note(result);
        }
        self.note_dir(parent, name, depth);
        let result = unlinkat(parent, name, AtFlags::REMOVEDIR);
        self.note(result);
    }

    fn note_dir(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
        let result = self.contents(parent, name, depth);
        self.note(result);
    }

    fn contents(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) -> Result<(), Errno> {
        let dir = open_dir(parent, name)?;
        // A task may have taken away its own right to look inside; ignored where it is not ours.
        let _ = fchmod(&dir, Mode::RWXU);
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match entry.file_type() {
                FileType::Directory => self.directory(dir.as_fd(), name, depth + 1),
                FileType::Unknown => self.entry(dir.as_fd(), name, depth + 1),
                _ => {
                    let result = unlinkat(&dir, name, AtFlags::empty());
                    self.note(result);
                }
            }
        }
        Ok(())
    }
}
