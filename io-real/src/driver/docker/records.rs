//! What is remembered of containers: one small file for each launch.
//!
//! It is written before the container is made, with a word that nobody can guess, which the container bears as a
//! label. So what a start that was interrupted left behind is found, and nothing else is ever taken for it: names
//! and labels can be copied from images and by people, that word cannot.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use rustix::fs::{Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::facts;
use crate::small_files::SmallFiles;

/// A file is never larger.
const MAX_SIZE: u64 = 64 << 10;

/// What names of images begin with.
const IMAGE: &str = "image-";

/// What is remembered of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record {
    /// Its container was, or was about to be, made.
    Asked(Ours),
    /// It ended, and its container is gone or will be.
    Ended(ExitResult, Ours),
}

/// What a container of ours bears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ours {
    /// Its name.
    pub(super) name: String,
    /// The value of its label.
    pub(super) token: String,
}

impl Record {
    pub(super) fn ours(&self) -> &Ours {
        match self {
            Record::Asked(ours) | Record::Ended(_, ours) => ours,
        }
    }
}

/// The files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Records(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: SmallFiles,
    dir: OwnedFd,
}

impl Records {
    /// Files in `dir`, which belongs to the agent alone.
    ///
    /// # Errors
    /// The directory cannot be opened a second time.
    pub fn new(dir: OwnedFd) -> io::Result<Records> {
        let second = dir.try_clone()?;
        Ok(Records(Arc::new(Inner {
            files: SmallFiles::new(dir, MAX_SIZE),
            dir: second,
        })))
    }

    /// Begins to remember a launch, so that it would survive a crash.
    pub(super) fn begin(&self, launch: LaunchId, name: String) -> io::Result<Ours> {
        let token = format!("{:032x}", facts::random());
        let ours = Ours { name, token };
        self.write(launch, &Record::Asked(ours.clone()))?;
        Ok(ours)
    }

    /// Remembers how a launch ended.
    pub(super) fn ended(&self, launch: LaunchId, result: ExitResult) -> io::Result<()> {
        match self.read(launch)? {
            Some(record) => self.write(launch, &Record::Ended(result, record.ours().clone())),
            None => Ok(()),
        }
    }

    fn write(&self, launch: LaunchId, record: &Record) -> io::Result<()> {
        let bytes = rmp_serde::to_vec_named(record).map_err(io::Error::other)?;
        self.0.files.write(&launch.to_string(), &bytes)
    }

    /// What is remembered; `None` if it was never asked for.
    pub(super) fn read(&self, launch: LaunchId) -> io::Result<Option<Record>> {
        let bytes = self.0.files.read(&launch.to_string())?;
        let record = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        record
            .transpose()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// All launches that are remembered.
    pub(super) fn launches(&self) -> io::Result<Vec<LaunchId>> {
        let names = self.0.files.names()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Forgets a launch.
    pub(super) fn remove(&self, launch: LaunchId) -> io::Result<()> {
        let cursor = unlinkat(&self.0.dir, cursor(launch), rustix::fs::AtFlags::empty());
        match cursor {
            Ok(()) | Err(Errno::NOENT) => self.0.files.remove(&launch.to_string()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Remembers that the agent fetched an image.
    pub(super) fn add_image(&self, id: &str) -> io::Result<()> {
        self.0.files.write(&image(id)?, id.as_bytes())
    }

    /// Whether the agent fetched an image.
    pub(super) fn has_image(&self, id: &str) -> io::Result<bool> {
        Ok(self.0.files.read(&image(id)?)?.is_some())
    }

    /// Forgets an image.
    pub(super) fn remove_image(&self, id: &str) -> io::Result<()> {
        self.0.files.remove(&image(id)?)
    }

    /// The images that the agent fetched.
    pub(super) fn images(&self) -> io::Result<Vec<String>> {
        let names = self.0.files.names()?;
        let digest = |name: &String| Some(format!("sha256:{}", name.strip_prefix(IMAGE)?));
        Ok(names
            .iter()
            .filter(|name| !name.ends_with(".new"))
            .filter_map(digest)
            .collect())
    }

    /// The file that says how far the output of a launch was read; an empty one if nothing was.
    pub(super) fn cursor(&self, launch: LaunchId) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0.dir, cursor(launch), flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }
}

/// The launches of which there is a record in `dir`, and that are not known to have ended.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn unfinished(dir: OwnedFd) -> io::Result<Vec<String>> {
    let records = Records::new(dir)?;
    let mut launches = records.launches()?;
    launches.retain(|launch| !matches!(records.read(*launch), Ok(Some(Record::Ended(..)))));
    Ok(launches.iter().map(ToString::to_string).collect())
}

/// The file of an image.
fn image(id: &str) -> io::Result<String> {
    let digest = id.strip_prefix("sha256:").unwrap_or(id);
    match digest.len() == 64 && digest.chars().all(|it| it.is_ascii_hexdigit()) {
        true => Ok(format!("{IMAGE}{digest}")),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "that is no id of an image",
        )),
    }
}

fn cursor(launch: LaunchId) -> String {
    format!("{launch}.read")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn launch_is_remembered_until_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(dir.path()).unwrap().into()).unwrap();
        let launch = LaunchId(7);
        assert_eq!(records.read(launch).unwrap(), None);
        let ours = records.begin(launch, "web-1".to_owned()).unwrap();
        assert_eq!(
            records.read(launch).unwrap(),
            Some(Record::Asked(ours.clone()))
        );
        drop(records.cursor(launch).unwrap());
        let image = format!("sha256:{}", "0f".repeat(32));
        records.add_image(&image).unwrap();
        assert!(records.has_image(&image).unwrap() && records.add_image("../x").is_err());
        assert_eq!(records.images().unwrap(), [image.as_str()]);
        records.remove_image(&image).unwrap();
        assert_eq!(records.launches().unwrap(), [launch]);
        let result = ExitResult::code(3);
        records.ended(launch, result.clone()).unwrap();
        assert_eq!(
            records.read(launch).unwrap(),
            Some(Record::Ended(result, ours))
        );
        records.remove(launch).unwrap();
        records.remove(launch).unwrap();
        assert_eq!(records.read(launch).unwrap(), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
