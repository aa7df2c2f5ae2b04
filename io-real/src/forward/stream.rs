//! One stream of a task: what of its log files was read, and what was sent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lines::{Line, Splitter};
use super::source::Source;
use crate::logfile::{Gap, LogFiles, LogPosition};
use crate::safe_open::Trouble;

/// For how long the end of a line is awaited.
const PARTIAL_LINE_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of a stream in cursors and messages.
pub(super) fn name(is_error: bool) -> &'static str {
    match is_error {
        true => "stderr",
        false => "stdout",
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) source: Arc<Source>,
    pub(super) is_error: bool,
    files: LogFiles,
    /// Everything before is read.
    at: LogPosition,
    splitter: Splitter,
    /// Since when the end of a line is awaited.
    since: Option<Instant>,
    /// Whether nothing more comes.
    pub(super) is_over: bool,
    /// Whether there may be something to read.
    pub(super) is_dirty: bool,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) lines: Vec<Line>,
    /// How many bytes of the log are gone, at most.
    pub(super) lost: u64,
}

impl Stream {
    pub(super) fn new(
        source: Arc<Source>,
        is_error: bool,
        files: LogFiles,
        at: LogPosition,
    ) -> Stream {
        Stream {
            source,
            is_error,
            files,
            at,
            splitter: Splitter::default(),
            since: None,
            is_over: false,
            is_dirty: true,
        }
    }

    /// The directory of its files.
    pub(super) fn files(&self) -> &LogFiles {
        &self.files
    }

    /// When the line that has begun is sent though it has no end.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + PARTIAL_LINE_TIMEOUT)
    }

    /// Reads on, up to a chunk. At the end of what is there it is not dirty any more.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(super) fn read(&mut self) -> Result<Piece, Trouble> {
        let before = self.at;
        let chunk = self.files.read(before)?;
        let mut piece = Piece::default();
        // Whose log begins later than at its beginning was too slow for the first of it.
        let is_late = before == LogPosition::default() && chunk.after.file > 0;
        let gap = chunk.gap.or(is_late.then_some(Gap::Rotated));
        if let Some(gap) = gap {
            piece.lines.extend(self.splitter.flush(before));
            piece.lost = match gap {
                Gap::Truncated => 0,
                Gap::Rotated => self.lost(before, chunk.after.file),
            };
            if piece.lost > 0 {
                let text = format!(
                    "[up to {} bytes of log lost: their files were removed before they were sent]",
                    piece.lost
                );
                let end = LogPosition {
                    file: chunk.after.file,
                    offset: 0,
                };
                piece.lines.push(Line { text, end });
            }
        }
        self.at = chunk.after;
        let (lines, after) = (&mut piece.lines, chunk.after);
        self.splitter.feed(&chunk.data, after, lines);
        self.since = match (self.splitter.has_begun(), chunk.data.is_empty()) {
            (false, _) => None,
            (true, true) => self.since.or_else(|| Some(Instant::now())),
            (true, false) => Some(Instant::now()),
        };
        if chunk.data.is_empty() {
            self.is_dirty = false;
            if self.is_over || self.deadline().is_some_and(|at| at <= Instant::now()) {
                piece.lines.extend(self.splitter.flush(self.at));
                self.since = None;
            }
        }
        Ok(piece)
    }

    /// How much was in files that are gone, from a place to the file that is there. The files are no larger
    /// than the task's configuration says.
    fn lost(&self, from: LogPosition, there: u64) -> u64 {
        let size = self.source.max_file_size;
        let files = there.saturating_sub(from.file);
        size.saturating_mul(files).saturating_sub(from.offset)
    }
}
