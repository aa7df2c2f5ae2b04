//! Putting a snapshot in the place of the state.
//!
//! It is *staged* first: checked, and written whole to `restore/snapshot` in the data directory, by the agent
//! that is asked to or, where none runs, by whoever holds the directory. The next agent makes a database of it
//! beside the present one and swaps them before it reads any. Until it moves the present one away nothing is
//! changed; from then on each start goes on where the one before was interrupted:
//!
//! | in `restore/` | what is done next |
//! |---|---|
//! | `snapshot` | check it, take its keys in, make `records` of it, move the present records to `before` |
//! | `before`, `records` | move `records` to their place |
//! | `before` | keep `before` as `state.before-restore/`, in the place of an earlier one |
//!
//! Host volumes that were made are not in a snapshot: their records are changed so that the next agent makes their
//! directories anew, below its own.
//!
//! A restored state is an earlier one than what tasks were started from. So it goes on with numbers beyond all
//! that were acknowledged, and tasks that it does not know are left running: see
//! [`Opened::lossy`](super::Opened::lossy).

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use drover_core::store::{Key, Record, freshness};

use super::codec;
use super::counter::{self, Counter};
use super::db::Db;
use super::probe::{RECORDS, sync};
use super::snapshot::{Snapshot, SnapshotError, load};
use super::{STATE, StoreError};
use crate::data_dir::DataDir;
use crate::keyring::root::RootKey;
use crate::keyring::{self, KeyId, Keys};

/// Where a snapshot lies that is to replace the state, in the data directory.
pub(crate) const DIR: &str = "restore";
pub(crate) const NEW: &str = "restore.new";
const SNAPSHOT: &str = "snapshot";
const BEFORE: &str = "before";
/// Where the state lies that was replaced, in the data directory.
const ASIDE: &str = "state.before-restore";

/// Stages a snapshot for the next agent in a data directory in which none runs.
///
/// # Errors
/// See [`SnapshotError`]: the snapshot is none, or there is a state and it is not to be replaced. Nothing is
/// changed then.
pub fn stage(data_dir: &DataDir, bytes: &[u8], force: bool) -> Result<(), SnapshotError> {
    let path = data_dir.path();
    Snapshot::read(bytes)?;
    if !force && path.join(STATE).join(RECORDS).try_exists()? {
        return Err(SnapshotError::NotEmpty);
    }
    put(path, bytes)
}

/// Writes a snapshot that was checked to where the next agent finds it.
pub(super) fn put(data_dir: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let (dir, new) = (data_dir.join(DIR), data_dir.join(NEW));
    remove(&new)?;
    DirBuilder::new().mode(0o700).create(&new)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new.join(SNAPSHOT))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync(&new)?;
    if dir.join(BEFORE).try_exists()? {
        let why = "an earlier snapshot is being restored: start the agent first";
        return Err(io::Error::other(why).into());
    }
    // One that was staged before and not used.
    remove(&dir)?;
    fs::rename(&new, &dir)?;
    Ok(sync(data_dir)?)
}

/// Puts a snapshot that was staged in the place of the state, or goes on with that. Says whether it did.
pub(super) fn apply(data_dir: &Path, root: Option<&RootKey>) -> Result<bool, StoreError> {
    let applied = apply_staged(data_dir, root);
    applied.map_err(|why| StoreError::Restore(data_dir.join(DIR), why))
}

fn apply_staged(data_dir: &Path, root: Option<&RootKey>) -> Result<bool, SnapshotError> {
    let (dir, state) = (data_dir.join(DIR), data_dir.join(STATE));
    remove(&data_dir.join(NEW))?;
    let there = |name: &str| dir.join(name).try_exists();
    if !there(BEFORE)? {
        if !there(SNAPSHOT)? {
            return Ok(false);
        }
        make_records(data_dir, root)?;
        if state.join(RECORDS).try_exists()? {
            fs::rename(state.join(RECORDS), dir.join(BEFORE))?;
        } else {
            DirBuilder::new().mode(0o700).create(dir.join(BEFORE))?;
        }
        sync(&dir)?;
        sync(&state)?;
    }
    if there(RECORDS)? {
        fs::rename(dir.join(RECORDS), state.join(RECORDS))?;
        sync(&state)?;
        sync(&dir)?;
    }
    match fs::remove_file(dir.join(SNAPSHOT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let aside = data_dir.join(ASIDE);
    remove(&aside)?;
    fs::rename(&dir, &aside)?;
    sync(data_dir)?;
    Ok(true)
}

/// Makes a database of the snapshot beside the present one.
fn make_records(data_dir: &Path, root: Option<&RootKey>) -> Result<(), SnapshotError> {
    let dir = data_dir.join(DIR);
    let bytes = load(&dir.join(SNAPSHOT))?;
    let snapshot = Snapshot::read(&bytes)?;
    let active: KeyId =
        (snapshot.about.key.parse()).map_err(|_| SnapshotError::Damaged("its key has no name"))?;
    let keys = keyring::open_sealed(data_dir, root, &snapshot.keys)?;
    let mut records = snapshot.records(&keys)?;
    for (name, stored) in &mut records {
        brought_along(name, stored)?;
    }
    keyring::adopt(data_dir, &snapshot.keys, active)?;
    let last = match counter::read(data_dir)? {
        freshness::Counter::Read { last, .. } => last,
        freshness::Counter::Missing | freshness::Counter::Unreadable => 0,
    };
    // Beyond all that was acknowledged, here and where it was made.
    let number = last.max(snapshot.about.commit).saturating_add(1);
    let new = dir.join(RECORDS);
    remove(&new)?;
    DirBuilder::new().mode(0o700).create(&new)?;
    let filled = Db::fill(&new, &records, number);
    filled.map_err(|why| io::Error::other(why.text))?;
    sync(&new)?;
    Counter::create(data_dir, number.saturating_sub(1), true)?;
    Ok(())
}

/// Changes a record that says where something lies in the data directory of the agent that made the snapshot.
fn brought_along(name: &[u8], stored: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let unreadable = |_| SnapshotError::Damaged("a record cannot be read");
    let key = codec::key(name).map_err(unreadable)?;
    if !matches!(key, Key::Volume(_)) {
        return Ok(());
    }
    if let Record::Volume(mut volume) = codec::decode(&key, stored).map_err(unreadable)? {
        Arc::make_mut(&mut volume).brought_along();
        *stored = codec::encode(&Record::Volume(volume)).map_err(unreadable)?;
    }
    Ok(())
}

/// Whether all of a snapshot can be read with these keys.
pub(super) fn check(snapshot: &Snapshot<'_>, keys: &Keys) -> Result<(), SnapshotError> {
    snapshot.records(keys).map(drop)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
