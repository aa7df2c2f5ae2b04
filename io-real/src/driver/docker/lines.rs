//! The lines of an answer that flows, none of which is kept beyond a bound.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::trouble::Trouble;

/// The most bytes of a line. What an image or a job may say of a container is less.
const MOST: usize = 4 << 20;

/// A line of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end.
    Whole(Bytes),
    /// It was too long, and was passed over.
    TooLong,
}

/// Finds the lines of what comes piece by piece.
#[derive(Default)]
pub(super) struct Splitter {
    rest: BytesMut,
    is_too_long: bool,
}

impl Splitter {
    /// The next line of what came so far.
    pub(super) fn next(&mut self) -> Option<Line> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            if self.rest.len() > MOST {
                self.rest.clear();
                self.is_too_long = true;
            }
            return None;
        };
        let mut line = self.rest.split_to(end + 1);
        line.truncate(end);
        let is_too_long = std::mem::take(&mut self.is_too_long) || line.len() > MOST;
        Some(match is_too_long {
            true => Line::TooLong,
            false => Line::Whole(line.freeze()),
        })
    }

    /// Takes what came.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }
}

/// The lines of an answer.
pub(super) struct Lines {
    body: Incoming,
    splitter: Splitter,
}

impl Lines {
    /// Those of this answer.
    pub(super) fn of(body: Incoming) -> Lines {
        Lines {
            body,
            splitter: Splitter::default(),
        }
    }

    /// The next line; none at the end of the answer.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, Trouble> {
        loop {
            if let Some(line) = self.splitter.next() {
                return Ok(Some(line));
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let frame = frame.map_err(bollard::errors::Error::from)?;
            if let Ok(data) = frame.into_data() {
                self.splitter.take(&data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &'static str) -> Option<Line> {
        Some(Line::Whole(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn lines_come_in_pieces() {
        let mut splitter = Splitter::default();
        splitter.take(b"one\ntw");
        assert_eq!(splitter.next(), whole("one"));
        assert_eq!(splitter.next(), None);
        splitter.take(b"o\n\n");
        assert_eq!(splitter.next(), whole("two"));
        assert_eq!(splitter.next(), whole(""));
        assert_eq!(splitter.next(), None);
    }

    #[test]
    fn line_without_end_is_not_kept() {
        let mut splitter = Splitter::default();
        for _ in 0..4 {
            splitter.take(&vec![b'x'; MOST]);
            assert_eq!(splitter.next(), None);
            assert!(splitter.rest.len() <= MOST);
        }
        splitter.take(b"x\nnext\n");
        assert_eq!(splitter.next(), Some(Line::TooLong));
        assert_eq!(splitter.next(), whole("next"));
    }
}
