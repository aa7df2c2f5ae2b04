//! Looking at a database without touching it.
//!
//! The database repairs what it opens, by cutting off what it cannot read. So a copy is opened
//! first: if that is whole, so is the database; if not, the database is as it was, for whoever can
//! make more of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use drover_core::store::Saved;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::StoreError;
use super::codec;
use super::db::{Db, Why, is_unfinished};
use super::sealed::{self, Sealing};
use crate::keyring::Keys;

/// The database, in the store's directory.
pub(super) const RECORDS: &str = "records";
const NEW: &str = "records.new";
const CHECK: &str = "check";

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
    let (records, check) = (dir.join(RECORDS), dir.join(CHECK));
    for left in [NEW, CHECK] {
        remove(&dir.join(left)).map_err(failed)?;
    }
    if !records.try_exists().map_err(failed)? {
        return Ok(None);
    }
    let copied = copy(&records, &check);
    let found = match &copied {
        Ok(()) => read(&check, keys),
        // No room for a copy: better to look at the thing itself than not to start.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => read(&records, keys),
        Err(error) => Err(Why::from(sled::Error::Io(io::Error::from(error.kind())))),
    };
    // What stays is removed next time.
    let _ = remove(&check);
    found.map(Some).map_err(|why| why.into_error(dir))
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
