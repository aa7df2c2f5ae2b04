//! Files of allocations, reached through directory handles only: tasks own what lies there, and may
//! put links, pipes and devices wherever they like.
//!
//! Links are followed only inside of the allocation, nothing is opened that is no plain file, and
//! `secrets` is not shown. Nor is a file of others that got another name there ([`crate::hard_links`]).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use drover_core::ids::AllocId;
use rustix::fs::{Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;

use crate::dirs::{find, users_of};
use crate::hard_links;

/// The place of a file that is to be written: a directory of an allocation, and a name in it.
#[derive(Debug)]
pub struct Place {
    /// The directory.
    pub dir: OwnedFd,
    /// The name.
    pub name: String,
}

impl Place {
    /// A place below an allocation's directory, in `alloc` or a task's directory, to which no link leads.
    ///
    /// # Errors
    /// The directory is not there, is secret, or is not one of those.
    pub fn below(dir: impl AsFd, path: &str) -> Result<Place, Trouble> {
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
                Component::ParentDir | Component::Prefix(_) => return Err(Trouble::Escapes),
            }
        }
        let name = parts.pop().unwrap_or_default();
        if parts.is_empty() || name.is_empty() {
            let words = format!("{path}: a file lies in alloc or in a task's directory");
            return Err(Trouble::Kind(words));
        }
        let is_secret = |part: &String| {
            let part = part.to_ascii_lowercase();
            SECRET_DIRS.iter().any(|secret| part == *secret)
        };
        if parts.get(1).or(Some(&name)).is_some_and(is_secret) {
            return Err(Trouble::Secret(path.to_owned()));
        }
        let dir = open_dir(dir, &parts.join("/"))?;
        Ok(Place { dir, name })
    }
}

/// Why something cannot be had.
#[derive(Debug)]
pub enum Trouble {
    /// There is no such file.
    Missing(String),
    /// The path leads out of the allocation's directory.
    Escapes,
    /// The path leads to what is the task's secret.
    Secret(String),
    /// It is neither a plain file nor a directory, or not the one that is wanted.
    Kind(String),
    /// Anything else.
    Io(String),
}

/// Where links may lead.
const WITHIN: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// Directories of a task that are nobody else's business.
const SECRET_DIRS: [&str; 2] = ["secrets", "private"];

/// Opens a directory below another one, without following any link.
///
/// # Errors
/// It is not there, or a link is on the way.
pub fn open_dir(parent: impl AsFd, path: &str) -> Result<OwnedFd, Trouble> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(parent, path, flags, Mode::empty(), strict).map_err(|errno| trouble(errno, path))
}

/// The directory of an allocation.
///
/// # Errors
/// It is not there (any more).
pub fn alloc_dir(root: impl AsFd, alloc: AllocId) -> Result<OwnedFd, Trouble> {
    open_dir(root, &alloc.to_string())
}

/// Something below an allocation's directory. Opening it had no effect on it yet: it may be a
/// pipe or a device.
#[derive(Debug)]
pub struct Found {
    handle: OwnedFd,
    /// What it is.
    pub stat: Stat,
    /// Its path below the directory.
    pub path: String,
    /// The users of the allocation, looked for only where that matters.
    users: Vec<u32>,
}

impl Found {
    /// Finds something below an allocation's directory. Links may lead anywhere inside it.
    ///
    /// # Errors
    /// It is not there, is secret, or lies elsewhere.
    pub fn below(dir: impl AsFd, path: &str) -> Result<Found, Trouble> {
        let relative = relative(path)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = openat2(&dir, &relative, flags, Mode::empty(), WITHIN)
            .map_err(|errno| trouble(errno, path))?;
        refuse_secrets(&dir, &handle, path)?;
        let found = Found::of(handle, path)?;
        let users = match found.stat.st_nlink {
            0 | 1 => Vec::new(),
            _ => users(dir),
        };
        Ok(Found { users, ..found })
    }

    /// Finds a file in a directory, without following any link.
    ///
    /// # Errors
    /// It is not there, or a link.
    pub fn strictly(dir: impl AsFd, name: &str) -> Result<Found, Trouble> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let handle = openat2(dir, name, flags, Mode::empty(), strict)
            .map_err(|errno| trouble(errno, name))?;
        Found::of(handle, name)
    }

    fn of(handle: OwnedFd, path: &str) -> Result<Found, Trouble> {
        let stat = fstat(&handle).map_err(|errno| trouble(errno, path))?;
        Ok(Found {
            handle,
            stat,
            path: path.to_owned(),
            users: Vec::new(),
        })
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Opens a plain file to read it.
    ///
    /// # Errors
    /// It is none, may not be read, or is a file of others under another name.
    pub fn open(&self) -> Result<File, Trouble> {
        if self.kind() != FileType::RegularFile {
            return Err(Trouble::Kind(format!("{} is no plain file", self.path)));
        }
        if hard_links::is_foreign(&self.stat, || self.users.clone()) {
            let why = hard_links::why(self.stat.st_uid);
            return Err(Trouble::Io(format!("{}: {why}", self.path)));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.again(flags).map(File::from)
    }

    /// Opens a directory to list it.
    ///
    /// # Errors
    /// It is none, or may not be read.
    pub fn open_dir(&self) -> Result<OwnedFd, Trouble> {
        self.again(OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY)
    }

    /// The very thing that was looked at, whatever its name stands for by now.
    fn again(&self, flags: OFlags) -> Result<OwnedFd, Trouble> {
        let own = own_path(&self.handle);
        rustix::fs::open(own, flags, Mode::empty()).map_err(|errno| trouble(errno, &self.path))
    }
}

/// The path under which this process finds a handle of its own.
pub fn own_path(handle: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}

/// A path of a request below the directory: `/a/b` is `a/b`.
fn relative(path: &str) -> Result<PathBuf, Trouble> {
    let mut relative = PathBuf::from(".");
    for part in Path::new(path).components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => relative.push(name),
            Component::ParentDir => relative.push(".."),
            Component::Prefix(_) => return Err(Trouble::Escapes),
        }
    }
    Ok(relative)
}

/// Fails for what lies in a directory of a task's secrets, however the path came there.
fn refuse_secrets(dir: impl AsFd, handle: &OwnedFd, path: &str) -> Result<(), Trouble> {
    let real = |handle: &dyn Fn() -> PathBuf| std::fs::read_link(handle());
    let top = real(&|| own_path(&dir)).map_err(|error| Trouble::Io(error.to_string()))?;
    let real = real(&|| own_path(handle)).map_err(|error| Trouble::Io(error.to_string()))?;
    let below = real.strip_prefix(&top).map_err(|_| Trouble::Escapes)?;
    let mut parts = below
        .components()
        .skip(1)
        .map(|part| part.as_os_str().to_ascii_lowercase());
    match parts.next() {
        Some(name) if SECRET_DIRS.iter().any(|secret| name == *secret) => {
            Err(Trouble::Secret(path.to_owned()))
        }
        Some(_) | None => Ok(()),
    }
}

/// The users of an allocation's tasks, whose directories lie in its own, where only the agent writes.
fn users(dir: impl AsFd) -> Vec<u32> {
    let Ok(entries) = Dir::read_from(&dir) else {
        return Vec::new();
    };
    let is_above = |entry: &DirEntry| matches!(entry.file_name().to_bytes(), b"." | b"..");
    let entries = entries.flatten().filter(|entry| !is_above(entry));
    let users = |entry: DirEntry| {
        let name = entry.file_name().to_str().ok()?;
        find(dir.as_fd(), name).ok()?.map(users_of)
    };
    entries.filter_map(users).flatten().collect()
}

fn trouble(errno: Errno, path: &str) -> Trouble {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Trouble::Missing(path.to_owned()),
        Errno::XDEV | Errno::LOOP => Trouble::Escapes,
        other => Trouble::Io(format!("{path}: {}", io::Error::from(other))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let alloc = dir.path().join(AllocId(1).to_string());
        std::fs::create_dir_all(alloc.join("web/secrets")).unwrap();
        std::fs::create_dir_all(alloc.join("alloc/data")).unwrap();
        std::fs::write(alloc.join("web/secrets/token"), "s3cret").unwrap();
        std::fs::write(alloc.join("alloc/data/file"), "hello").unwrap();
        std::fs::write(dir.path().join("outside"), "host").unwrap();
        symlink("../../web/secrets/token", alloc.join("alloc/data/sly")).unwrap();
        symlink("../../../outside", alloc.join("alloc/data/up")).unwrap();
        symlink("/etc/passwd", alloc.join("alloc/data/abs")).unwrap();
        symlink("file", alloc.join("alloc/data/link")).unwrap();
        let root = rustix::fs::open(dir.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let handle = alloc_dir(&root, AllocId(1)).unwrap();
        (dir, handle)
    }

    #[test]
    fn symlink_out_of_directory_is_refused() {
        let (_dir, alloc) = tree();
        let read = |path: &str| {
            let found = Found::below(&alloc, path)?;
            let file = found.open()?;
            io::read_to_string(file).map_err(|error| Trouble::Io(error.to_string()))
        };
        assert_eq!(read("/alloc/data/file").unwrap(), "hello");
        assert_eq!(read("alloc/data/link").unwrap(), "hello");
        for escape in [
            "alloc/data/up",
            "alloc/data/abs",
            "../outside",
            "/../outside",
        ] {
            assert!(matches!(read(escape), Err(Trouble::Escapes)), "{escape}");
        }
        for secret in [
            "web/secrets/token",
            "alloc/data/sly",
            "web/secrets",
            "web/./secrets/token",
        ] {
            assert!(matches!(read(secret), Err(Trouble::Secret(_))), "{secret}");
        }
        assert!(matches!(read("nope"), Err(Trouble::Missing(_))));
        assert!(matches!(read("alloc"), Err(Trouble::Kind(_))));
    }

    #[test]
    fn fifo_is_not_opened() {
        let (dir, alloc) = tree();
        let path = dir.path().join(AllocId(1).to_string()).join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let found = Found::below(&alloc, "pipe").unwrap();
        assert!(matches!(found.open(), Err(Trouble::Kind(_))));
    }
}
