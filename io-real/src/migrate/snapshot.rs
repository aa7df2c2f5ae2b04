//! What an allocation left, as a tar stream: the shared data, and what each task kept in `local`.
//!
//! Tasks wrote all of it, and may still write. Each step goes through a handle and through no link;
//! a file gets exactly as many bytes as were announced, whatever becomes of it meanwhile. Devices,
//! pipes and sockets stay. A file of others under another name stays too, and the log says which. What cannot be read
//! ends the stream with an entry that says why.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use drover_core::ids::{AllocId, TaskName};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use crate::dirs::{AllocDirs, find, is_filled, open_dir, retried, users_of};
use crate::hard_links::{is_foreign, why};

/// How deep a directory may be.
const MAX_DEPTH: usize = 120;

/// Writes the disk of an allocation with these tasks. What it did not take over from those before it is
/// still there, and looked for as [`AllocDirs::inherit`] does it. `into` gets a whole archive also where
/// something cannot be read. Returns whether everything could be: `is_there` is asked last, since what is
/// removed meanwhile looks like what never was.
///
/// # Errors
/// `into` takes no more.
pub fn write(
    dirs: &AllocDirs,
    alloc: AllocId,
    before: &[AllocId],
    tasks: &[TaskName],
    is_there: impl FnOnce() -> io::Result<()>,
    into: impl Write,
) -> io::Result<bool> {
    let mut out = Out {
        tar: Builder::new(into),
        users: Vec::new(),
        is_foreign: |stat, users| is_foreign(stat, || users.to_vec()),
        refused: false,
        broke: false,
    };
    let sources = dirs.open_all(&[&[alloc], before].concat());
    let written = all(sources, tasks, &mut out).and_then(|()| is_there());
    // What was left out is there for longer.
    let whole = written.is_ok() && !out.refused;
    match written {
        Err(error) if !out.broke => out.write_error(alloc, &error)?,
        written => written?,
    }
    out.tar.into_inner()?.flush()?;
    Ok(whole)
}

fn all(
    sources: io::Result<Vec<OwnedFd>>,
    tasks: &[TaskName],
    out: &mut Out<impl Write>,
) -> io::Result<()> {
    let sources = sources?;
    if sources.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it has no directory",
        ));
    }
    out.users = users(&sources, tasks)?;
    let names = tasks.iter().map(|task| (task.as_str(), "local"));
    for (holder, name) in std::iter::once(("alloc", "data")).chain(names) {
        let mut path = format!("{holder}/{name}").into_bytes();
        if let Some(dir) = find_filled(&sources, holder, name)? {
            out.dir(dir.as_fd(), &mut path, 0)?;
        }
    }
    Ok(())
}

/// Who runs these tasks.
fn users(sources: &[OwnedFd], tasks: &[TaskName]) -> io::Result<Vec<u32>> {
    let mut users = Vec::new();
    for source in sources {
        for task in tasks {
            if let Some(dir) = find(source.as_fd(), task.as_str())? {
                users.extend(users_of(dir));
            }
        }
    }
    Ok(users)
}

/// Opens `holder/name` of the first of these directories where anything is in it; if there is none, of
/// the first that has it at all.
fn find_filled(sources: &[OwnedFd], holder: &str, name: &str) -> io::Result<Option<OwnedFd>> {
    let mut empty = None;
    // All of them twice: what is looked for may be moved meanwhile.
    for source in sources.iter().chain(sources) {
        let Some(holder) = find(source.as_fd(), holder)? else {
            continue;
        };
        match find(holder.as_fd(), name)? {
            Some(dir) if is_filled(&dir)? => return Ok(Some(dir)),
            found => empty = empty.or(found),
        }
    }
    Ok(empty)
}

struct Out<W: Write> {
    tar: Builder<W>,
    /// Whose files with several names go along.
    users: Vec<u32>,
    is_foreign: fn(&Stat, &[u32]) -> bool,
    /// Whether any file was left out, because it is another name of a file of others.
    refused: bool,
    /// Whether nobody takes what is written.
    broke: bool,
}

impl<W: Write> Out<W> {
    /// A directory with everything in it.
    fn dir(&mut self, dir: BorrowedFd<'_>, path: &mut Vec<u8>, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(about(path, "is too deep"));
        }
        let mut header = header(EntryType::Directory, &fstat(dir)?);
        path.push(b'/');
        self.append(&mut header, path, &mut io::empty())?;
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let length = path.len();
            path.extend_from_slice(name.to_bytes());
            match self.entry(dir, name, path, depth) {
                // It went while we looked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
            path.truncate(length);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> io::Result<()> {
        let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let dir = open_dir(at, name);
                self.dir(
                    dir.map_err(|error| unread(path, error))?.as_fd(),
                    path,
                    depth + 1,
                )
            }
            FileType::RegularFile => {
                // A pipe in its place must not make anybody wait.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let resolve =
                    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
                let file = retried(|| openat2(at, name, flags, Mode::empty(), resolve));
                let file = File::from(file.map_err(|error| unread(path, error))?);
                self.file(file, path)
            }
            FileType::Symlink => {
                let target = readlinkat(at, name, Vec::new())?;
                let mut header = header(EntryType::Symlink, &stat);
                let target = OsStr::from_bytes(target.to_bytes());
                let path = OsStr::from_bytes(path);
                let written = self.tar.append_link(&mut header, path, target);
                self.wrote(written)
            }
            // Nobody can take these over.
            _ => Ok(()),
        }
    }

    fn file(&mut self, file: File, path: &[u8]) -> io::Result<()> {
        let stat = fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(());
        }
        if (self.is_foreign)(&stat, &self.users) {
            let (file, why) = (String::from_utf8_lossy(path), why(stat.st_uid));
            tracing::warn!(%file, %why, "a file is not sent to another node");
            self.refused = true;
            return Ok(());
        }
        let mut header = header(EntryType::Regular, &stat);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        header.set_size(size);
        // It may shrink or grow while it is read.
        let mut bytes = file.chain(io::repeat(0)).take(size);
        self.append(&mut header, path, &mut bytes)
    }

    fn append(&mut self, header: &mut Header, path: &[u8], bytes: &mut dyn Read) -> io::Result<()> {
        let written = self.tar.append_data(header, OsStr::from_bytes(path), bytes);
        self.wrote(written)
    }

    fn wrote(&mut self, written: io::Result<()>) -> io::Result<()> {
        self.broke |= written.is_err();
        written
    }

    /// The last entry: why there is no more, as Nomad says it.
    fn write_error(&mut self, alloc: AllocId, error: &io::Error) -> io::Result<()> {
        let why = format!("Error snapshotting: {error}");
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o666);
        header.set_size(u64::try_from(why.len()).unwrap_or(0));
        let name = format!("NOMAD-{alloc}-ERROR.log");
        self.tar.append_data(&mut header, name, why.as_bytes())
    }
}

fn header(kind: EntryType, stat: &Stat) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    // What changes its user is nobody's to pass on.
    header.set_mode(stat.st_mode & 0o1777);
    header.set_uid(stat.st_uid.into());
    header.set_gid(stat.st_gid.into());
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
    header.set_size(0);
    header
}

fn unread(path: &[u8], error: Errno) -> io::Error {
    let error = io::Error::from(error);
    let path = String::from_utf8_lossy(path);
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

fn about(path: &[u8], why: &str) -> io::Error {
    io::Error::other(format!("{}: {why}", String::from_utf8_lossy(path)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn file_of_others_is_left_out_and_the_rest_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = AllocDirs::new(Arc::new(File::open(dir.path()).unwrap().into()));
        let alloc = AllocId(7);
        let data = dir.path().join(alloc.to_string()).join("alloc/data");
        fs::create_dir_all(&data).unwrap();
        for name in ["a", "m", "z"] {
            fs::write(data.join(name), name).unwrap();
        }
        fs::hard_link(data.join("m"), dir.path().join("of others")).unwrap();
        let mut out = Out {
            tar: Builder::new(Vec::new()),
            users: Vec::new(),
            is_foreign: |stat, _| stat.st_nlink > 1,
            refused: false,
            broke: false,
        };
        all(dirs.open_all(&[alloc]), &[], &mut out).unwrap();
        assert!(out.refused);
        let bytes = out.tar.into_inner().unwrap();
        let mut sent = tar::Archive::new(bytes.as_slice());
        let path =
            |entry: io::Result<tar::Entry<'_, _>>| entry.unwrap().path().unwrap().into_owned();
        let mut sent: Vec<_> = sent.entries().unwrap().map(path).collect();
        sent.sort_unstable();
        let sent: Vec<_> = sent.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(sent, ["alloc/data/", "alloc/data/a", "alloc/data/z"]);
    }
}
