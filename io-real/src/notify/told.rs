//! What a target was told, so that the next agent does not tell it again: a small file.

use std::collections::VecDeque;

use drover_core::model::notice::Notice;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::small_files::SmallFiles;

/// How many notices are known one by one.
const MOST: usize = 256;

#[derive(Debug)]
pub(super) struct Told {
    files: SmallFiles,
    name: String,
    memory: Memory,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    /// What happened until then counts as told, in nanoseconds since 1970.
    since: i64,
    /// What was told last, oldest first: when it happened, and its id.
    told: VecDeque<(i64, String)>,
}

impl Told {
    /// As the file says; if there is none, everything until now counts as told.
    pub(super) fn open(files: SmallFiles, target: &str, now: Timestamp) -> Told {
        let name = format!("{target}.json");
        let read = files.read(&name).unwrap_or_else(|error| {
            tracing::warn!(%error, notify = target, "cannot read what was told");
            None
        });
        let memory = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_new = memory.is_none();
        let mut told = Told {
            files,
            name,
            memory: memory.unwrap_or_default(),
        };
        if is_new {
            told.memory.since = now.0;
            told.save();
        }
        told
    }

    /// Whether it was told. Notices are told in the order of their times, so what happened before the last one that was
    /// told was told too, though the records may say it with another id by now.
    pub(super) fn knows(&self, notice: &Notice) -> bool {
        let memory = &self.memory;
        let (time, mut told) = (notice.time.0, memory.told.iter());
        let is_older = memory.told.back().is_some_and(|(last, _)| time < *last);
        time <= memory.since || is_older || told.any(|(_, id)| *id == notice.id)
    }

    /// It was told, or given up.
    pub(super) fn note(&mut self, notice: &Notice) {
        let memory = &mut self.memory;
        memory.told.push_back((notice.time.0, notice.id.clone()));
        while memory.told.len() > MOST {
            let oldest = memory.told.pop_front();
            let until = oldest.map_or(0, |(time, _)| time);
            memory.since = memory.since.max(until);
        }
        self.save();
    }

    fn save(&self) {
        let bytes = serde_json::to_vec(&self.memory).unwrap_or_default();
        if let Err(error) = self.files.write(&self.name, &bytes) {
            tracing::warn!(%error, "cannot save what was told; the next agent may tell it again");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn notice(time: i64) -> Notice {
        Notice::disk(true, (90, 1), Timestamp(time))
    }

    fn open(dir: &tempfile::TempDir, now: i64) -> Told {
        let handle: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        Told::open(SmallFiles::new(handle, 1 << 20), "ops", Timestamp(now))
    }

    #[test]
    fn next_agent_knows_what_was_told_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut told = open(&dir, 100);
        assert!(
            told.knows(&notice(100)),
            "it happened before anybody listened"
        );
        assert!(!told.knows(&notice(101)));
        told.note(&notice(103));
        let told = open(&dir, 200);
        assert!(told.knows(&notice(102)) && told.knows(&notice(103)));
        assert!(!told.knows(&notice(104)));
        let other = Notice::disk(false, (1, 1), Timestamp(103));
        assert!(!told.knows(&other), "it happened at the same time");
    }

    #[test]
    fn memory_of_what_was_told_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let mut told = open(&dir, 0);
        for time in 1..=1_000 {
            told.note(&notice(time));
        }
        let told = open(&dir, 0);
        assert_eq!(told.memory.told.len(), MOST);
        assert!((1..=1_000).all(|time| told.knows(&notice(time))));
        assert!(!told.knows(&notice(1_001)));
    }

    #[test]
    fn file_that_cannot_be_read_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ops.json"), "no JSON").unwrap();
        let told = open(&dir, 100);
        assert!(told.knows(&notice(100)) && !told.knows(&notice(101)));
    }
}
