//! The agent's directory: what is where in it, and that only one agent uses it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drover_core::ids::NodeId;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::facts;
use crate::migrate::token::NodeSecret;

/// The agent's directory. Held by one agent at a time, for as long as this lives.
///
/// `state/` has the store, `last-commit` the number of its last commit, `alloc/` the allocations' directories, `run/`
/// the shims' records and sockets, `bin/` the shim itself, `networks/` what holds networks of allocations, `recording/`
/// the flight recorder's files, `identity/` the key of tasks' tokens, `keyring/` the keys of variables, `notify/` what
/// operators were told, `api.sock` the API for the agent's own user, `log-forward/` how far logs were sent, `secret-id`
/// what only this node knows.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    allocs: Arc<OwnedFd>,
    _lock: File,
}

/// Why the agent's directory cannot be used.
#[derive(Debug)]
pub enum DataDirError {
    /// Another agent uses it.
    Held(PathBuf),
    /// The disk says no.
    Io(PathBuf, io::Error),
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataDirError::Held(path) => write!(
                f,
                "another agent uses the directory {}; stop it, or choose another with -data-dir",
                path.display()
            ),
            DataDirError::Io(path, error) => write!(
                f,
                "cannot use the directory {}: {error}; choose another with -data-dir",
                path.display()
            ),
        }
    }
}

impl std::error::Error for DataDirError {}

impl DataDir {
    /// Makes the directory, if need be, and takes hold of it.
    ///
    /// # Errors
    /// Somebody holds it, or the disk says no.
    pub fn open(path: &Path) -> Result<DataDir, DataDirError> {
        let failed = |error: io::Error| DataDirError::Io(path.to_owned(), error);
        make(path, 0o711).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DataDirError::Held(path)),
            Err(error) => return Err(failed(error.into())),
        }
        make(&path.join("state"), 0o700).map_err(failed)?;
        make(&path.join("alloc"), 0o711).map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let allocs = open(path.join("alloc"), flags, Mode::empty())
            .map_err(|error| DataDirError::Io(path.clone(), error.into()))?;
        Ok(DataDir {
            path,
            allocs: Arc::new(allocs),
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the allocations' directories, as tasks see it.
    pub fn alloc_root(&self) -> PathBuf {
        self.path.join("alloc")
    }

    /// The directory as a handle.
    ///
    /// # Errors
    /// The disk says no.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(&self.path, flags, Mode::empty())?)
    }

    /// What things of this agent bear that do not lie in its directory: the mount namespace in which
    /// the path is meant, the directory itself, its path.
    ///
    /// # Errors
    /// The disk says no.
    pub fn mark(&self) -> io::Result<Mark> {
        let meta = fs::metadata(&self.path)?;
        Ok(Mark {
            namespace: namespace("self")?,
            dir: (meta.dev(), meta.ino()),
            path: self.path.clone(),
        })
    }

    /// A directory that belongs to the agent alone, made if need be, as a handle: `name` in the
    /// agent's directory unless `elsewhere`.
    ///
    /// # Errors
    /// The disk says no.
    pub fn own(&self, name: &str, elsewhere: Option<&Path>) -> io::Result<OwnedFd> {
        let path = elsewhere.map_or_else(|| self.path.join(name), Path::to_owned);
        make(&path, 0o700)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(path, flags, Mode::empty())?)
    }

    /// What only this node knows, made at its first start. Others who can read it can have the disks
    /// of its allocations.
    ///
    /// # Errors
    /// The disk says no.
    pub fn secret(&self) -> io::Result<NodeSecret> {
        let path = self.path.join("secret-id");
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => {
                return Ok(NodeSecret::new(text.trim().to_owned()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let secret = NodeId(facts::random()).to_string();
        let new = self.path.join("secret-id.new");
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(secret.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok(NodeSecret::new(secret))
    }

    /// The same as a handle, below which every path is opened.
    pub fn allocs(&self) -> Arc<OwnedFd> {
        self.allocs.clone()
    }
}

impl AsFd for DataDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.allocs.as_fd()
    }
}

/// Which agent made something: [`DataDir::mark`]. As text it is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The mount namespace in which the path is meant.
    pub namespace: String,
    /// The data directory: device and inode.
    pub dir: (u64, u64),
    /// Where it is.
    pub path: PathBuf,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((dev, ino), path) = (self.dir, self.path.display());
        write!(f, "{} {dev} {ino} {path}", self.namespace)
    }
}

impl Mark {
    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Mark> {
        let mut parts = text.splitn(4, ' ');
        let namespace = parts.next()?.to_owned();
        let dir = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let path = PathBuf::from(parts.next()?);
        Some(Mark {
            namespace,
            dir,
            path,
        })
    }
}

/// The mount namespace of a process.
///
/// # Errors
/// It is gone, or another user's.
pub(crate) fn namespace(process: &str) -> io::Result<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/mnt"))?;
    Ok(link.to_string_lossy().into_owned())
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
