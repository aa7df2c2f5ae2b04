//! Looking at a database without touching it.
//!
//! The database repairs what it opens, by cutting off what it cannot read. So a copy is opened
//! first: if that is whole, so is the database; if not, the database is as it was, for whoever can
//! make more of it. The copy lies in memory where that is allowed: whatever is opened is written to
//! and synced, which disks need time for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use drover_core::store::Saved;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use super::StoreError;
use super::codec;
use super::db::{Db, Why, is_unfinished};
use super::sealed::{self, Sealing};
use crate::keyring::Keys;

/// The database, in the store's directory.
pub(super) const RECORDS: &str = "records";
const NEW: &str = "records.new";
const CHECK: &str = "check";

/// The largest database that is copied to memory, in bytes.
const MOST_IN_MEMORY: u64 = 16 << 20;
/// What a database that is opened may take besides its copy, in bytes.
const MORE_IN_MEMORY: u64 = 16 << 20;

/// What a database holds.
#[derive(Default)]
pub(super) struct Found {
    /// Its records.
    pub(super) saved: Saved,
    /// Records that cannot be read.
    pub(super) damaged: Vec<String>,
    /// The number of the last batch.
    pub(super) number: u64,
    /// Whether it has variables that were written before they were encrypted.
    pub(super) plain: bool,
}

/// Reads the database in the store's directory `dir`; none if there is none.
pub(super) fn find(dir: &Path, keys: &Keys) -> Result<Option<Found>, StoreError> {
    let failed = |error: io::Error| StoreError::Io(dir.to_owned(), error.to_string());
    let records = dir.join(RECORDS);
    for left in [NEW, CHECK] {
        remove(&dir.join(left)).map_err(failed)?;
    }
    if !records.try_exists().map_err(failed)? {
        return Ok(None);
    }
    let check = Check::of(&records, dir);
    let copied = copy(&records, &check.path);
    let found = match &copied {
        Ok(()) => read(&check.path, keys),
        // No room for a copy: better to look at the thing itself than not to start.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => read(&records, keys),
        Err(error) => Err(Why::from(sled::Error::Io(io::Error::from(error.kind())))),
    };
    // What stays is removed next time.
    let _ = remove(&check.path);
    found.map(Some).map_err(|why| why.into_error(dir))
}

/// Where a copy is looked at.
struct Check {
    path: PathBuf,
    /// A file system of its own, which is gone with this.
    _memory: Option<OwnedFd>,
}

impl Check {
    /// In memory; in the store's directory if that is not allowed, or the database is large.
    fn of(records: &Path, dir: &Path) -> Check {
        let bytes = size(records).ok().filter(|bytes| *bytes <= MOST_IN_MEMORY);
        match bytes.and_then(|bytes| memory(2 * bytes + MORE_IN_MEMORY).ok()) {
            Some(memory) => Check {
                path: PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd())).join(CHECK),
                _memory: Some(memory),
            },
            None => Check {
                path: dir.join(CHECK),
                _memory: None,
            },
        }
    }
}

/// A file system in memory that is mounted nowhere.
fn memory(bytes: u64) -> io::Result<OwnedFd> {
    let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&fs, "size", bytes.to_string())?;
    fsconfig_set_string(&fs, "mode", "700")?;
    // Before Linux 6.4 this is no option, and what is in memory may be swapped out.
    let _ = fsconfig_set_flag(&fs, "noswap");
    fsconfig_create(&fs)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The bytes of the files of a directory and those below it.
fn size(dir: &Path) -> io::Result<u64> {
    let mut all = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        all += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(all)
}

fn read(records: &Path, keys: &Keys) -> Result<Found, Why> {
    let mut plain = false;
    let mut decoded = Vec::new();
    let mut damaged = Vec::new();
    let mut unreadable = BTreeSet::new();
    let db = Db::read(records, |name, value| {
        plain |= Sealing::is_plain(name, value);
        let read = codec::key(name).and_then(|key| match sealed::decode(keys, &key, value) {
            Ok(record) => Ok((key, record)),
            Err(why) => {
                unreadable.insert(key);
                Err(why)
            }
        });
        match read {
            Ok(record) => decoded.push(record),
            Err(why) => damaged.push(format!("{}: {why}", String::from_utf8_lossy(name))),
        }
    })?;
    let saved = Saved {
        unreadable,
        ..Saved::from_records(decoded)
    };
    Ok(Found {
        saved,
        damaged,
        number: db.number(),
        plain,
    })
}

/// Puts a copy of the database in its place in which all variables are encrypted. Neither is the old one
/// lost if the agent dies meanwhile, nor does it lie beside the new one longer than until the next start.
pub(super) fn seal(dir: &Path, sealing: &Sealing) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io(dir.to_owned(), error.to_string());
    let (records, new) = (dir.join(RECORDS), dir.join(NEW));
    fs::create_dir(&new).map_err(failed)?;
    let copied = Db::open(&records).and_then(|db| db.copy_sealed(&new, sealing));
    copied.map_err(|why| why.into_error(dir))?;
    sync(&new).map_err(failed)?;
    match renameat_with(CWD, &new, CWD, &records, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        // A file system that cannot do that: the variables are sealed where they are.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let resealed = Db::open(&records).and_then(|mut db| {
                let sealed = db.reseal(sealing, usize::MAX);
                sealed.map_err(|text| Why::from(sled::Error::Io(io::Error::other(text))))
            });
            resealed.map_err(|why| why.into_error(dir))?;
        }
        Err(errno) => return Err(failed(errno.into())),
    }
    sync(dir).map_err(failed)?;
    remove(&new).map_err(failed)
}

/// A database appears whole or not at all: one that is empty was damaged, then.
pub(super) fn create(dir: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io(dir.to_owned(), error.to_string());
    let new = dir.join(NEW);
    fs::create_dir(&new).map_err(failed)?;
    Db::create(&new).map_err(|why| why.into_error(dir))?;
    sync(&new).map_err(failed)?;
    fs::rename(&new, dir.join(RECORDS)).map_err(failed)?;
    sync(dir).map_err(failed)
}

pub(super) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a directory of files and directories of files.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name()) {
            continue;
        }
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
