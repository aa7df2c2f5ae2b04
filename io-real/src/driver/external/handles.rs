//! What is remembered of a plugin's tasks: one small file for each launch, by which the next agent
//! finds the task again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use serde::{Deserialize, Serialize};

use crate::small_files::SmallFiles;

/// A file is never larger: the largest message of a plugin, and something around it.
const MAX_SIZE: u64 = 16 << 20;

/// How far a launch came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// The driver was, or was about to be, asked to start it.
    Asked,
    /// It was started; with these bytes the driver finds it again.
    Started(Vec<u8>),
    /// It ended.
    Ended(ExitResult),
}

/// The files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: SmallFiles,
    /// Held while an end is written, so that what is forgotten stays so.
    ends: Mutex<()>,
}

impl Handles {
    /// Files in `dir`, which belongs to the agent alone: they hold tasks' environments.
    pub fn new(dir: OwnedFd) -> Handles {
        Handles(Arc::new(Inner {
            files: SmallFiles::new(dir, MAX_SIZE),
            ends: Mutex::default(),
        }))
    }

    /// Writes how far a launch came, so that it would survive a crash.
    pub(super) fn write(&self, launch: LaunchId, stage: &Stage) -> io::Result<()> {
        let bytes = rmp_serde::to_vec_named(stage).map_err(io::Error::other)?;
        self.0.files.write(&launch.to_string(), &bytes)
    }

    /// Writes how a launch ended, unless it is forgotten.
    pub(super) fn ended(&self, launch: LaunchId, result: ExitResult) -> io::Result<()> {
        let _alone = self.0.ends.lock().unwrap_or_else(PoisonError::into_inner);
        match self.read(launch)? {
            Some(_) => self.write(launch, &Stage::Ended(result)),
            None => Ok(()),
        }
    }

    /// How far a launch came; `None` if its start was never asked for.
    pub(super) fn read(&self, launch: LaunchId) -> io::Result<Option<Stage>> {
        let bytes = self.0.files.read(&launch.to_string())?;
        let stage = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        stage
            .transpose()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Forgets a launch.
    pub(super) fn remove(&self, launch: LaunchId) -> io::Result<()> {
        let _alone = self.0.ends.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.files.remove(&launch.to_string())
    }
}

/// The launches of which a handle is in `dir`, and that are not known to have ended.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn unfinished(dir: OwnedFd) -> io::Result<Vec<String>> {
    let handles = Handles::new(dir);
    let mut launches = handles.0.files.names()?;
    launches.retain(|name| {
        let launch = name.parse().ok();
        let ended = |launch| matches!(handles.read(launch), Ok(Some(Stage::Ended(_))));
        launch.is_some_and(|launch| !ended(launch))
    });
    Ok(launches)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn launch_handle_is_kept_until_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let handles = Handles::new(File::open(dir.path()).unwrap().into());
        let launch = LaunchId(7);
        assert_eq!(handles.read(launch).unwrap(), None);
        let stages = [
            Stage::Asked,
            Stage::Started(vec![0, 200, 255]),
            Stage::Ended(ExitResult::unknown("why")),
        ];
        for stage in stages {
            handles.write(launch, &stage).unwrap();
            assert_eq!(handles.read(launch).unwrap(), Some(stage));
        }
        std::fs::write(dir.path().join(launch.to_string()), b"\xc1").unwrap();
        assert!(handles.read(launch).is_err());
        handles.remove(launch).unwrap();
        handles.remove(launch).unwrap();
        handles.ended(launch, ExitResult::unknown("late")).unwrap();
        assert_eq!(handles.read(launch).unwrap(), None);
    }
}
