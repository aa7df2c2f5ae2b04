//! Bytes of a log, cut into lines: what is too long is split, what is not UTF-8 is replaced.

use crate::logfile::LogPosition;

/// A line is never longer, in bytes; a longer one becomes several.
pub(super) const MAX_LINE: usize = 16 * 1024;

/// A line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// The place after it: nothing before it need be read again.
    pub(super) end: LogPosition,
}

/// What makes lines of pieces.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The beginning of a line whose end was not read yet.
    partial: Vec<u8>,
}

impl Splitter {
    /// Takes the piece that ends at `after`.
    pub(super) fn feed(&mut self, piece: &[u8], after: LogPosition, lines: &mut Vec<Line>) {
        let mut left = piece;
        let place = |left: &[u8]| LogPosition {
            file: after.file,
            offset: after.offset.saturating_sub(left.len() as u64),
        };
        while !left.is_empty() {
            if self.partial.len() >= MAX_LINE {
                // The end of a line that fits exactly belongs to it.
                left = left.strip_prefix(b"\n").unwrap_or(left);
                lines.push(self.cut(place(left)));
                continue;
            }
            let remaining = MAX_LINE - self.partial.len();
            let window = left.get(..remaining.min(left.len())).unwrap_or(left);
            let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
                let (taken, rest) = left.split_at(window.len());
                self.partial.extend_from_slice(taken);
                left = rest;
                continue;
            };
            let (taken, rest) = left.split_at(end);
            left = rest.get(1..).unwrap_or_default();
            lines.push(match self.partial.is_empty() {
                true => line(taken, place(left)),
                false => {
                    self.partial.extend_from_slice(taken);
                    self.cut(place(left))
                }
            });
        }
    }

    /// Whether a line has begun.
    pub(super) fn has_begun(&self) -> bool {
        !self.partial.is_empty()
    }

    /// What has begun, as if it was over. `at` is the place after it.
    pub(super) fn flush(&mut self, at: LogPosition) -> Option<Line> {
        self.has_begun().then(|| self.cut(at))
    }

    fn cut(&mut self, end: LogPosition) -> Line {
        // Gives the memory back: most logs have whole lines.
        line(&std::mem::take(&mut self.partial), end)
    }
}

fn line(bytes: &[u8], end: LogPosition) -> Line {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes).into_owned();
    Line { text, end }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// The lines of a log that is read in pieces of this size, and what is left.
    fn split(text: &[u8], size: usize) -> (Vec<Line>, Option<Line>) {
        let (mut splitter, mut lines, mut offset) = (Splitter::default(), Vec::new(), 0);
        for piece in text.chunks(size) {
            offset += piece.len() as u64;
            splitter.feed(piece, LogPosition { file: 3, offset }, &mut lines);
        }
        let left = splitter.flush(LogPosition { file: 3, offset });
        (lines, left)
    }

    #[test]
    fn lines_are_the_same_whatever_the_pieces() {
        let mut text = b"one\ntwo\r\n\nfo\xffur\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', MAX_LINE));
        text.extend(b"\n");
        text.extend(std::iter::repeat_n(b'y', MAX_LINE * 2 + 5));
        text.extend(b"\nrest");
        let whole = split(&text, text.len());
        for size in [1, 2, 7, 1000, MAX_LINE] {
            assert_eq!(split(&text, size), whole, "{size}");
        }
        let (lines, left) = whole;
        let lengths: Vec<usize> = lines.iter().map(|line| line.text.len()).collect();
        assert_eq!(lengths, [3, 3, 0, 7, MAX_LINE, MAX_LINE, MAX_LINE, 5]);
        assert_eq!(lines[1].text, "two");
        assert_eq!(lines[3].text, "fo\u{fffd}ur");
        assert_eq!(left.unwrap().text, "rest");
    }

    #[test]
    fn each_line_ends_where_the_next_begins() {
        let text = b"one\ntwo\nthree";
        let (lines, left) = split(text, 5);
        let ends: Vec<u64> = lines.iter().map(|line| line.end.offset).collect();
        assert_eq!(ends, [4, 8]);
        assert_eq!(left.unwrap().end.offset, text.len() as u64);
    }
}
