//! How far each stream is sent, in a small file that the next agent reads.

use std::collections::BTreeMap;

use drover_core::ids::AllocId;
use serde::{Deserialize, Serialize};

use super::source::Source;
use super::stream::name;
use crate::logfile::LogPosition;
use crate::small_files::SmallFiles;

#[derive(Debug)]
pub(super) struct Cursors {
    files: SmallFiles,
    name: String,
    /// For each allocation: for each of its streams the file's number, and the byte there.
    places: BTreeMap<AllocId, BTreeMap<String, (u64, u64)>>,
    is_changed: bool,
}

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    places: BTreeMap<AllocId, BTreeMap<String, (u64, u64)>>,
}

impl Cursors {
    /// As the file says; and whether there was none.
    pub(super) fn open(files: SmallFiles, forwarder: &str) -> (Cursors, bool) {
        let file = format!("{forwarder}.json");
        let read = files.read(&file).unwrap_or_else(|error| {
            tracing::warn!(%error, log_forward = forwarder, "cannot read how far logs were sent");
            None
        });
        let saved = read.and_then(|bytes| serde_json::from_slice::<Saved>(&bytes).ok());
        let is_new = saved.is_none();
        let cursors = Cursors {
            files,
            name: file,
            places: saved.map(|saved| saved.places).unwrap_or_default(),
            is_changed: is_new,
        };
        (cursors, is_new)
    }

    fn key(source: &Source, is_error: bool) -> String {
        format!("{}.{}", source.task, name(is_error))
    }

    /// How far it is sent, if any of it is.
    pub(super) fn get(&self, source: &Source, is_error: bool) -> Option<LogPosition> {
        let places = self.places.get(&source.alloc)?;
        let (file, offset) = *places.get(&Cursors::key(source, is_error))?;
        Some(LogPosition { file, offset })
    }

    pub(super) fn set(&mut self, source: &Source, is_error: bool, at: LogPosition) {
        let places = self.places.entry(source.alloc).or_default();
        let key = Cursors::key(source, is_error);
        if places.insert(key, (at.file, at.offset)) != Some((at.file, at.offset)) {
            self.is_changed = true;
        }
    }

    /// Forgets the allocations that are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(&AllocId) -> bool) {
        let before = self.places.len();
        self.places.retain(|alloc, _| is_there(alloc));
        self.is_changed |= self.places.len() != before;
    }

    /// Whether the file says something else.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Writes the file, if it says something else.
    pub(super) fn save(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let saved = Saved {
            places: std::mem::take(&mut self.places),
        };
        let bytes = serde_json::to_vec(&saved).unwrap_or_default();
        self.places = saved.places;
        if let Err(error) = self.files.write(&self.name, &bytes) {
            tracing::warn!(%error, "cannot save how far logs were sent; the next agent may send some again");
        }
    }
}
