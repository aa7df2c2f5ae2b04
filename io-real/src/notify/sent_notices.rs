//! Which notices a target was sent, so that the next agent does not send them again: a small file.

use std::collections::VecDeque;

use drover_core::model::notice::Notice;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::small_files::SmallFiles;

/// How many notices are known one by one.
const MOST: usize = 256;

#[derive(Debug)]
pub(super) struct SentNotices {
    files: SmallFiles,
    name: String,
    memory: Memory,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    /// What happened until then counts as sent, in nanoseconds since 1970.
    since: i64,
    /// What was sent last, oldest first: when it happened, and its id.
    #[serde(rename = "told")]
    sent: VecDeque<(i64, String)>,
}

impl SentNotices {
    /// As the file says; if there is none, everything until now counts as sent.
    pub(super) fn open(files: SmallFiles, target: &str, now: Timestamp) -> SentNotices {
        let name = format!("{target}.json");
        let read = files.read(&name).unwrap_or_else(|error| {
            tracing::warn!(%error, notify = target, "cannot read which notices were sent");
            None
        });
        let memory = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_new = memory.is_none();
        let mut sent = SentNotices {
            files,
            name,
            memory: memory.unwrap_or_default(),
        };
        if is_new {
            sent.memory.since = now.0;
            sent.save();
        }
        sent
    }

    /// Whether it was sent. Notices are sent in the order of their times, so what happened before the last one that was
    /// sent was sent too, though the records may say it with another id by now.
    pub(super) fn knows(&self, notice: &Notice) -> bool {
        let memory = &self.memory;
        let (time, mut sent) = (notice.time.0, memory.sent.iter());
        let is_older = memory.sent.back().is_some_and(|(last, _)| time < *last);
        time <= memory.since || is_older || sent.any(|(_, id)| *id == notice.id)
    }

    /// It was sent, or given up.
    pub(super) fn note(&mut self, notice: &Notice) {
        let memory = &mut self.memory;
        memory.sent.push_back((notice.time.0, notice.id.clone()));
        while memory.sent.len() > MOST {
            let oldest = memory.sent.pop_front();
            let until = oldest.map_or(0, |(time, _)| time);
            memory.since = memory.since.max(until);
        }
        self.save();
    }

    fn save(&self) {
        let bytes = serde_json::to_vec(&self.memory).unwrap_or_default();
        if let Err(error) = self.files.write(&self.name, &bytes) {
            tracing::warn!(%error, "cannot save which notices were sent; the next agent may send them again");
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

    fn open(dir: &tempfile::TempDir, now: i64) -> SentNotices {
        let handle: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        SentNotices::open(SmallFiles::new(handle, 1 << 20), "ops", Timestamp(now))
    }

    #[test]
    fn next_agent_knows_sent_notices_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut sent = open(&dir, 100);
        assert!(
            sent.knows(&notice(100)),
            "it happened before anybody listened"
        );
        assert!(!sent.knows(&notice(101)));
        sent.note(&notice(103));
        let sent = open(&dir, 200);
        assert!(sent.knows(&notice(102)) && sent.knows(&notice(103)));
        assert!(!sent.knows(&notice(104)));
        let other = Notice::disk(false, (1, 1), Timestamp(103));
        assert!(!sent.knows(&other), "it happened at the same time");
    }

    #[test]
    fn sent_notice_memory_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let mut sent = open(&dir, 0);
        for time in 1..=1_000 {
            sent.note(&notice(time));
        }
        let sent = open(&dir, 0);
        assert_eq!(sent.memory.sent.len(), MOST);
        assert!((1..=1_000).all(|time| sent.knows(&notice(time))));
        assert!(!sent.knows(&notice(1_001)));
    }

    #[test]
    fn file_that_cannot_be_read_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ops.json"), "no JSON").unwrap();
        let sent = open(&dir, 100);
        assert!(sent.knows(&notice(100)) && !sent.knows(&notice(101)));
    }
}
