//! Removing a directory that its tasks may have filled with anything.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, chmod, fchmod, openat2,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::open_dir;

/// How many directories are open at once. What lies deeper is first moved up.
const MAX_DEPTH: u32 = 64;

/// Removes `name` in `at`, and everything below it.
pub(crate) fn tree(at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let name_c = CString::new(name)?;
    match unlinkat(at, &name_c, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(failed(name, error)),
    }
    let top = match open(at, &name_c) {
        Err(Errno::NOENT) => return Ok(()),
        top => top.map_err(|error| failed(name, error))?,
    };
    // Each round removes what the round before moved up, and what a directory that changed while
    // it was read did not show. Only a round that got nowhere is the last.
    loop {
        let mut remover = Remover {
            top: top.as_fd(),
            moved: 0,
            removed: 0,
            path: vec![name.to_owned()],
            first_error: None,
        };
        remover.contents(&top, 0);
        let removed = unlinkat(at, &name_c, AtFlags::REMOVEDIR);
        match (removed, remover.first_error) {
            (Ok(()) | Err(Errno::NOENT), _) => return Ok(()),
            (Err(_), _) if remover.removed > 0 || remover.moved > 0 => {}
            (Err(_), Some((path, error))) => return Err(failed(&path, error)),
            (Err(error), None) => return Err(failed(name, error)),
        }
    }
}

fn failed(path: &str, error: Errno) -> io::Error {
    let why = match error {
        Errno::XDEV => "another file system is mounted there; unmount it first".to_owned(),
        error => io::Error::from(error).to_string(),
    };
    let kind = io::Error::from(error).kind();
    io::Error::new(kind, format!("cannot remove {path:?}: {why}"))
}

struct Remover<'a> {
    /// The directory that is removed.
    top: BorrowedFd<'a>,
    moved: u32,
    removed: u64,
    /// Where it is, for people.
    path: Vec<String>,
    first_error: Option<(String, Errno)>,
}

impl Remover<'_> {
    fn note(&mut self, result: Result<(), Errno>) {
        match result {
            Ok(()) => self.removed += 1,
            Err(Errno::NOENT) => {}
            Err(error) => {
                let path = self.path.join("/");
                self.first_error.get_or_insert((path, error));
            }
        }
    }

    /// Removes what is in a directory.
    fn contents(&mut self, dir: &OwnedFd, depth: u32) {
        // A task may have taken away its own right to change it; ignored where it is not ours.
        let _ = fchmod(dir, Mode::RWXU);
        let entries = match Dir::read_from(dir) {
            Ok(entries) => entries,
            Err(error) => return self.note(Err(error)),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.note(Err(error)),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.path.push(name.to_string_lossy().into_owned());
            match entry.file_type() {
                FileType::Directory => self.directory(dir.as_fd(), name, depth + 1),
                _ => self.entry(dir.as_fd(), name, depth + 1),
            }
            self.path.pop();
        }
    }

    /// Removes an entry that is no directory, as far as we know.
    fn entry(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
        match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => self.directory(parent, name, depth),
            result => self.note(result),
        }
    }

    fn directory(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
        // An empty one, as most of the deepest are, needs no look inside.
        if unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok() {
            return self.note(Ok(()));
        }
        match open(parent, name) {
            // What was a directory is none any more.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let result = unlinkat(parent, name, AtFlags::empty());
                self.note(result);
            }
            Err(error) => self.note(Err(error)),
            Ok(_) if depth >= MAX_DEPTH => self.move_up(parent, name),
            Ok(dir) => {
                self.contents(&dir, depth);
                drop(dir);
                // If something is left in it, that was noted, or the next round finds it.
                match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                    result => self.note(result),
                }
            }
        }
    }

    /// Moves a deep directory to the top, inside of what is removed: an agent that dies now leaves
    /// nothing elsewhere.
    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &CStr) {
        loop {
            let to = format!(".removing-{}", self.moved);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(parent, name, self.top, to, flags) {
                // Left by an agent that died, or made by a task.
                Err(Errno::EXIST) => self.moved += 1,
                Ok(()) => {
                    self.moved += 1;
                    return;
                }
                Err(error) => return self.note(Err(error)),
            }
        }
    }
}

/// Opens a directory to look inside, also one whose owner, if that is us, may not.
fn open(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match open_dir(parent, name) {
        Err(Errno::ACCESS) => {}
        result => return result,
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let handle = openat2(parent, name, flags, Mode::empty(), resolve)?;
    // By the handle: it is a directory here, whatever the name leads to by now.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmod(path, Mode::RWXU)?;
    open_dir(parent, name)
}
