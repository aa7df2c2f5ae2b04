//! Making sure that what sled wrote is on the disk.
//!
//! sled ends a flush with `sync_file_range`, which neither writes the file's new length nor empties
//! the disk's cache, and it does not sync the files that it keeps large values in at all. Killing
//! the agent does not show it; a power cut does.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What has to be synced.
pub(super) struct Syncer {
    file: File,
    blobs: PathBuf,
    known: BTreeSet<OsString>,
}

impl Syncer {
    /// Of the database in `dir`, which is open already.
    pub(super) fn new(dir: &Path) -> io::Result<Syncer> {
        let blobs = dir.join("blobs");
        let mut syncer = Syncer {
            file: File::open(dir.join("db"))?,
            blobs,
            known: BTreeSet::new(),
        };
        syncer.known = syncer.list()?;
        Ok(syncer)
    }

    /// Syncs what was written since the last time.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let found = self.list()?;
        if found != self.known {
            for name in found.difference(&self.known) {
                match File::open(self.blobs.join(name)) {
                    Ok(blob) => blob.sync_data()?,
                    // Not needed any more.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            File::open(&self.blobs)?.sync_all()?;
            self.known = found;
        }
        self.file.sync_data()
    }

    /// The files of large values; most often there are none.
    fn list(&self) -> io::Result<BTreeSet<OsString>> {
        let entries = fs::read_dir(&self.blobs)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }
}
