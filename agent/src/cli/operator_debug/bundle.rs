//! Where what was captured is written: a directory, or an archive of one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cli::exit_code::Failure;

/// A directory, or an archive, that only its owner reads.
pub(super) struct Bundle {
    path: PathBuf,
    name: String,
    archive: Option<tar::Builder<GzEncoder<File>>>,
}

impl Bundle {
    /// A new directory of this name in `parent`, or an archive in the current directory.
    ///
    /// # Errors
    /// It is there already, or cannot be made.
    pub(super) fn create(parent: Option<&Path>, name: &str) -> Result<Bundle, Failure> {
        let path = match parent {
            Some(parent) => parent.join(name),
            None => PathBuf::from(format!("{name}.tar.gz")),
        };
        let failed =
            |error: io::Error| Failure::new(format!("cannot make {}: {error}", path.display()));
        let archive = match parent {
            Some(parent) => {
                fs::create_dir_all(parent).map_err(failed)?;
                DirBuilder::new()
                    .mode(0o700)
                    .create(&path)
                    .map_err(failed)?;
                None
            }
            None => {
                let file = create(&path).map_err(failed)?;
                let gzip = GzEncoder::new(file, Compression::default());
                Some(tar::Builder::new(gzip))
            }
        };
        Ok(Bundle {
            path,
            name: name.to_owned(),
            archive,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Adds a file of a relative name.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let added = match &mut self.archive {
            Some(archive) => append(archive, &format!("{}/{name}", self.name), bytes),
            None => write(&self.path.join(name), bytes),
        };
        added.map_err(|error| {
            let path = self.path.display();
            Failure::new(format!("cannot write {name} to {path}: {error}"))
        })
    }

    /// Writes what is left to write.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Some(archive) = self.archive else {
            return Ok(());
        };
        let finished = archive
            .into_inner()
            .and_then(GzEncoder::finish)
            .and_then(|file| file.sync_all());
        finished
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", self.path.display())))
    }
}

/// Removes what is of no use.
pub(super) fn remove(path: &Path) {
    // There is nothing more to do about it.
    let _ = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}

fn append(to: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    header.set_mode(0o600);
    header.set_cksum();
    to.append_data(&mut header, name, bytes)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    create(path)?.write_all(bytes)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
