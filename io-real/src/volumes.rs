//! Directories of host volumes that are made and removed while the agent runs, as Nomad's built-in plugin `mkdir`
//! does it.
//!
//! Each is named by its volume's id, in one directory that belongs to the agent. Tasks write into the volumes, and
//! never beside them: what is removed is opened by handle, no link is followed, no file system is left, as for
//! allocations ([`crate::dirs`]). Making and removing again is doing it once.
//!
//! What is asked for one volume is done in the order in which it was asked for: what hung and was asked for again
//! makes nothing anew that was removed meanwhile. Volumes do not wait for each other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::effect::VolumeWork;
use drover_core::ids::VolumeId;
use drover_core::model::volume::Directory;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, fsync, mkdirat, open};
use rustix::io::Errno;

use crate::dirs::{open_dir, remove_tree};

/// The directory of volumes in an agent's data directory, unless they are made elsewhere.
pub const VOLUMES: &str = "host_volumes";

/// Where the directories of volumes are made.
#[derive(Clone, Debug)]
pub struct VolumeDirs {
    root: PathBuf,
    turns: Arc<Mutex<BTreeMap<VolumeId, Arc<Turn>>>>,
}

/// Who holds it works for a volume. It is given to those that wait in their order.
type Turn = tokio::sync::Mutex<()>;

impl VolumeDirs {
    /// Below `root`, which is made when the first volume is.
    pub fn new(root: PathBuf) -> VolumeDirs {
        VolumeDirs {
            root,
            turns: Arc::default(),
        }
    }

    /// Does what is asked for a volume, after what was asked for it before. Returns the path of its directory.
    ///
    /// # Errors
    /// The disk says no, or the directory that is to be found is none.
    pub async fn carry_out(&self, volume: VolumeId, work: VolumeWork) -> io::Result<String> {
        let turn = self.turns().entry(volume).or_default().clone();
        let held = turn.lock().await;
        let dirs = self.clone();
        let done = tokio::task::spawn_blocking(move || dirs.work(volume, &work)).await;
        drop(held);
        // The map and this one: nobody else waits.
        let mut turns = self.turns();
        if Arc::strong_count(&turn) == 2 {
            turns.remove(&volume);
        }
        done.map_err(|lost| io::Error::other(format!("its work was lost: {lost}")))?
    }

    fn turns(&self) -> MutexGuard<'_, BTreeMap<VolumeId, Arc<Turn>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, volume: VolumeId, work: &VolumeWork) -> io::Result<String> {
        match work {
            VolumeWork::Make(directory) => self.make(volume, *directory),
            VolumeWork::Find { path } => find(path),
            VolumeWork::Leave { path } => Ok(path.clone()),
            VolumeWork::Remove => self.remove(volume),
        }
    }

    fn path(&self, volume: VolumeId) -> io::Result<String> {
        let path = self.root.join(volume.to_string());
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| io::Error::other("the directory of volumes is not named in UTF-8"))
    }

    fn make(&self, volume: VolumeId, directory: Directory) -> io::Result<String> {
        let path = self.path(volume)?;
        // Tasks of other users pass through, and see no names.
        fs::create_dir_all(&self.root)?;
        let root = open_root(&self.root)?;
        fchmod(&root, Mode::from_raw_mode(0o711))?;
        let name = volume.to_string();
        let made = match mkdirat(&root, &name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let given = give(&root, &name, directory);
        if given.is_err() && made {
            // Nobody has seen it yet.
            let _ = remove_tree(root.as_fd(), &name);
        }
        given?;
        fsync(&root)?;
        if made {
            tracing::info!(path, "made the directory of a host volume");
        }
        Ok(path)
    }

    fn remove(&self, volume: VolumeId) -> io::Result<String> {
        let path = self.path(volume)?;
        let root = match open_root(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            root => root?,
        };
        remove_tree(root.as_fd(), &volume.to_string())?;
        fsync(&root)?;
        Ok(path)
    }
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(open(root, flags, Mode::empty())?)
}

fn give(root: &OwnedFd, name: &str, directory: Directory) -> io::Result<()> {
    let dir = open_dir(root.as_fd(), name)?;
    if directory.uid.is_some() || directory.gid.is_some() {
        let (uid, gid) = (directory.uid, directory.gid);
        fchown(&dir, uid.map(Uid::from_raw), gid.map(Gid::from_raw))?;
    }
    fchmod(&dir, Mode::from_raw_mode(directory.mode))?;
    Ok(fsync(&dir)?)
}

/// The directory of a volume that is registered.
fn find(path: &str) -> io::Result<String> {
    let found = fs::metadata(path).map_err(|error| {
        let why = format!("{path:?}: {error}");
        io::Error::new(error.kind(), why)
    })?;
    match found.is_dir() {
        true => Ok(path.to_owned()),
        false => Err(io::Error::other(format!("{path:?} is no directory"))),
    }
}
