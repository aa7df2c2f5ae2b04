//! The database, guarded: against its own panics, and against losing records unnoticed.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use drover_core::fnv::fnv1a;
use drover_core::store::Batch;

use super::StoreError;
use super::codec;
use super::sealed::{PREFIX, Sealing};
use super::snapshot::Stored;
use super::sync::Syncer;
use crate::keyring::KeyId;

/// Under this name stands how many records there are, and the sum of their hashes. It is written
/// with each batch, so what is missing, or of another time, is noticed: a database that is damaged
/// may well open, as an earlier one or as an empty one.
const SUM: &[u8] = b"sum";

/// Under this name stands the number of the last batch, which rises by one with each. It counts as a
/// record, so that a version that does not know it leaves it alone. Not there: 0.
const NUMBER: &[u8] = b"sum.number";

/// How often, and how far apart, to try to open a database that is still being closed.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(5);

/// A value of this many bytes may come to lie in a file of its own.
const LARGE: usize = 16 * 1024;

/// What has to be free on the disk, besides the batch itself, where such files may be written.
const MIN_FREE_SPACE: u64 = 2 * 1024 * 1024;

/// A database that is open.
pub(super) struct Db {
    db: sled::Db,
    dir: PathBuf,
    /// Whether it ever held a large value.
    large: bool,
    syncer: Syncer,
    sum: Sum,
    number: u64,
}

/// Why a database does not do what it should.
#[derive(Debug)]
pub(super) struct Why {
    /// What it says.
    pub(super) text: String,
    damaged: bool,
}

impl Why {
    /// It holds something else than what was written.
    pub(super) fn damage(text: impl Into<String>) -> Why {
        Why {
            text: text.into(),
            damaged: true,
        }
    }

    /// As an error of the store in `dir`.
    pub(super) fn into_error(self, dir: &Path) -> StoreError {
        if self.damaged {
            StoreError::Damaged(dir.to_owned(), self.text)
        } else {
            StoreError::Io(dir.to_owned(), self.text)
        }
    }
}

impl From<sled::Error> for Why {
    fn from(error: sled::Error) -> Why {
        let damaged = match &error {
            // The file ends before what should be in it.
            sled::Error::Io(error) => error.kind() == std::io::ErrorKind::UnexpectedEof,
            _ => true,
        };
        Why {
            text: error.to_string(),
            damaged,
        }
    }
}

/// What all records amount to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_add(1);
        self.hashes ^= hash(key, value);
    }

    fn take(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_sub(1);
        self.hashes ^= hash(key, value);
    }

    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..].copy_from_slice(&self.hashes.to_le_bytes());
        bytes
    }
}

/// Changes that are written together.
struct Changes {
    writes: sled::Batch,
    /// What all records amount to afterwards.
    sum: Sum,
    bytes: usize,
    any: bool,
    large: bool,
}

impl Changes {
    /// None yet, of records that amount to `sum`.
    fn of(sum: Sum) -> Changes {
        Changes {
            writes: sled::Batch::default(),
            sum,
            bytes: 0,
            any: false,
            large: false,
        }
    }

    /// Puts `new` in the place of `old`, unless it is the same.
    fn put(&mut self, name: &[u8], old: Option<&[u8]>, new: Option<Vec<u8>>) {
        if old == new.as_deref() {
            return;
        }
        self.any = true;
        if let Some(old) = old {
            self.sum.take(name, old);
        }
        match new {
            Some(new) => {
                self.large |= new.len() >= LARGE;
                self.bytes += new.len();
                self.sum.add(name, &new);
                self.writes.insert(name, new);
            }
            None => self.writes.remove(name),
        }
    }
}

/// Guards a record against accidents.
pub(super) fn hash(key: &[u8], value: &[u8]) -> u64 {
    fnv1a(key.iter().chain(&[0]).chain(value))
}

impl Db {
    /// Makes an empty database in an empty directory.
    pub(super) fn create(dir: &Path) -> Result<(), Why> {
        let db = open(dir)?;
        guarded(|| {
            db.insert(SUM, &Sum::default().bytes())?;
            db.flush()?;
            Ok(Syncer::new(dir)?.sync()?)
        })
    }

    /// Opens a database and looks whether all is there.
    pub(super) fn open(dir: &Path) -> Result<Db, Why> {
        Db::read(dir, |_, _| {})
    }

    /// The same, and shows every record.
    pub(super) fn read(dir: &Path, mut see: impl FnMut(&[u8], &[u8])) -> Result<Db, Why> {
        let db = open(dir)?;
        let mut sum = Sum::default();
        let mut written = None;
        let mut number = 0;
        let mut large = false;
        let mut entries = db.iter();
        while let Some((key, value)) = guarded(|| entries.next().transpose())? {
            if key == SUM {
                written = Some(value);
            } else if key == NUMBER {
                sum.add(&key, &value);
                number = number_of(&value)?;
            } else {
                sum.add(&key, &value);
                large |= value.len() >= LARGE;
                see(&key, &value);
            }
        }
        match written {
            None => Err(Why::damage("it is empty, which no state ever is")),
            Some(written) if written != sum.bytes() => {
                let found = sum.count;
                Err(Why::damage(format!(
                    "its {found} records are not those that were written"
                )))
            }
            Some(_) => Ok(Db {
                db,
                dir: dir.to_owned(),
                large,
                syncer: Syncer::new(dir).map_err(sled::Error::Io)?,
                sum,
                number,
            }),
        }
    }

    /// The number of the last batch.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Writes all of a batch or nothing, so that it survives a crash. What is there already is not
    /// written again.
    pub(super) fn commit(&mut self, batch: &Batch, sealing: &Sealing) -> Result<(), String> {
        let mut changes = Changes::of(self.sum);
        for (key, record) in batch {
            let name = codec::key_text(key);
            let old = guarded(|| self.db.get(&name)).map_err(|why| why.text)?;
            let encode = |record| sealing.encode(key, record, old.as_deref());
            let new = record.as_ref().map(encode).transpose()?;
            changes.put(name.as_bytes(), old.as_deref(), new);
        }
        self.apply(changes)
    }

    /// Seals with the active key up to `most` variables that are not, and says how many those were.
    pub(super) fn reseal(&mut self, sealing: &Sealing, most: usize) -> Result<usize, String> {
        let mut changes = Changes::of(self.sum);
        let mut found = 0;
        self.each_variable(|name, value| {
            if found < most
                && let Some(new) = sealing.renewed(name, value)?
            {
                found += 1;
                changes.put(name, Some(value), Some(new));
            }
            Ok(())
        })?;
        self.apply(changes)?;
        Ok(found)
    }

    /// How many variables are sealed with this key.
    pub(super) fn sealed_with(&self, key: KeyId) -> Result<usize, String> {
        let mut count = 0;
        self.each_variable(|_, value| {
            count += usize::from(Sealing::is_of(value, key));
            Ok(())
        })?;
        Ok(count)
    }

    fn each_variable(
        &self,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut entries = self.db.scan_prefix(PREFIX);
        while let Some((name, value)) =
            guarded(|| entries.next().transpose()).map_err(|why| why.text)?
        {
            see(&name, &value)?;
        }
        Ok(())
    }

    /// Writes all of it as the next batch, if it is anything.
    fn apply(&mut self, changes: Changes) -> Result<(), String> {
        if !changes.any {
            return Ok(());
        }
        self.large |= changes.large;
        if self.large {
            check_free_space(&self.dir, changes.bytes)?;
        }
        self.write(changes.writes, changes.sum, self.number.saturating_add(1))
    }

    /// Copies everything into an empty database in `dir`, as it is but for variables, which are sealed.
    /// Nothing of what this one held before and holds no more comes along.
    pub(super) fn copy_sealed(&self, dir: &Path, sealing: &Sealing) -> Result<(), Why> {
        let failed = |text| Why {
            text,
            damaged: false,
        };
        Db::create(dir)?;
        let mut copy = Db::open(dir)?;
        let mut changes = Changes::of(copy.sum);
        let mut entries = self.db.iter();
        while let Some((name, value)) = guarded(|| entries.next().transpose())? {
            if name == SUM || name == NUMBER {
                continue;
            }
            let sealed = match Sealing::is_plain(&name, &value) {
                true => sealing.renewed(&name, &value).map_err(failed)?,
                false => None,
            };
            let new = sealed.unwrap_or_else(|| value.to_vec());
            changes.put(&name, None, Some(new));
        }
        copy.write(changes.writes, changes.sum, self.number)
            .map_err(failed)
    }

    /// Shows every record, as it lies here.
    pub(super) fn each(
        &self,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut entries = self.db.iter();
        while let Some((name, value)) =
            guarded(|| entries.next().transpose()).map_err(|why| why.text)?
        {
            if name != SUM && name != NUMBER {
                see(&name, &value)?;
            }
        }
        Ok(())
    }

    /// Makes a database of these records in an empty directory, which ends with the batch `number`.
    pub(super) fn fill(dir: &Path, records: &[Stored<'_>], number: u64) -> Result<(), Why> {
        Db::create(dir)?;
        let mut db = Db::open(dir)?;
        let mut changes = Changes::of(db.sum);
        for (name, value) in records {
            changes.put(name, None, Some(value.clone()));
        }
        db.large |= changes.large;
        let failed = |text| Why {
            text,
            damaged: false,
        };
        check_free_space(dir, changes.bytes).map_err(failed)?;
        db.write(changes.writes, changes.sum, number)
            .map_err(failed)
    }

    /// Goes on from this number.
    pub(super) fn resume_at(&mut self, number: u64) -> Result<(), String> {
        self.write(sled::Batch::default(), self.sum, number)
    }

    /// Writes these changes, after which the records amount to `sum`, as the batch `number`.
    fn write(&mut self, mut writes: sled::Batch, mut sum: Sum, number: u64) -> Result<(), String> {
        if self.number > 0 {
            sum.take(NUMBER, &self.number.to_le_bytes());
        }
        sum.add(NUMBER, &number.to_le_bytes());
        writes.insert(NUMBER, &number.to_le_bytes());
        writes.insert(SUM, &sum.bytes());
        let written = guarded(|| {
            self.db.apply_batch(writes)?;
            self.db.flush()?;
            Ok(self.syncer.sync()?)
        });
        written.map_err(|why| why.text)?;
        self.sum = sum;
        self.number = number;
        Ok(())
    }
}

fn number_of(value: &[u8]) -> Result<u64, Why> {
    let bytes = value.try_into();
    let bytes = bytes.map_err(|_| Why::damage("the number of its last batch is none"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Fails if the disk has no room for a batch of so many bytes. sled waits for ever for a large value
/// that it could not write, also when it is closed: so it must not come to that.
fn check_free_space(dir: &Path, bytes: usize) -> Result<(), String> {
    let disk = rustix::fs::statvfs(dir)
        .map_err(|errno| format!("cannot query free disk space: {}", io::Error::from(errno)))?;
    let blocks = if rustix::process::geteuid().is_root() {
        disk.f_bfree
    } else {
        disk.f_bavail
    };
    let free = blocks.saturating_mul(disk.f_frsize);
    let wanted =
        MIN_FREE_SPACE.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(2));
    // File systems without an end say that they have no blocks at all.
    if disk.f_blocks > 0 && free < wanted {
        return Err(format!(
            "no space left on the disk: {free} bytes are free, and {wanted} are needed"
        ));
    }
    Ok(())
}

fn open(dir: &Path) -> Result<sled::Db, Why> {
    clear(dir).map_err(sled::Error::Io)?;
    let mut tries = 0;
    loop {
        match open_once(dir) {
            // One that we have just closed: its threads keep it for a moment. Nobody else is
            // here, or the store's directory would not be ours.
            Err(why) if why.text.contains("could not acquire lock") && tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

fn open_once(dir: &Path) -> Result<sled::Db, Why> {
    let config = sled::Config::new()
        .path(dir)
        .cache_capacity(1 << 20)
        .flush_every_ms(None)
        .mode(sled::Mode::LowSpace);
    guarded(|| config.open())
}

/// Removes snapshots that were not finished, as by an agent that was killed or a disk that was full.
/// They are of no use, and yet sled would not open a database that has one.
fn clear(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether this is the name of a snapshot that was not finished.
pub(super) fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".generating")
}

/// sled panics where data is missing from the end of its file: that is an error like any other.
fn guarded<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, Why> {
    match quietly(|| panic::catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => result.map_err(Why::from),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Why::damage(text.unwrap_or("the database gave up")))
        }
    }
}

/// A panic in `work` becomes an error with words of our own, and its own words would only confuse.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let result = work();
    QUIET.set(false);
    result
}

static HOOK: Once = Once::new();

thread_local! {
    /// Whether this thread's panics are expected, and caught.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}
