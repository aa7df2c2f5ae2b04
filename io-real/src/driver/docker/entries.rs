//! What an engine sends of a container's output, taken apart: entries, each with the time at which it was written.
//!
//! Without a terminal each entry is a frame: one byte for the stream, three of nothing, four for the length, then the
//! time, a space, and the text. With a terminal there are no frames, and each line begins with the time. Nothing is
//! kept but one entry, and of that no more than [`MOST`].

use crate::session::Output;

/// The most of an entry that is kept until its end comes.
const MOST: usize = 64 * 1024;

/// The longest time, and more.
const LONGEST_TIME: usize = 64;

/// Something that was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) which: Output,
    /// As the engine writes it, nine digits behind the point: earlier ones are less.
    pub(super) time: String,
    pub(super) text: Vec<u8>,
    /// Whether this is its end; more of the same entry follows if not.
    pub(super) is_end: bool,
}

/// What is in hand.
pub(super) struct Decoder {
    framed: bool,
    state: State,
    time: Vec<u8>,
    text: Vec<u8>,
    header: Vec<u8>,
    which: Output,
}

#[derive(Clone, Copy)]
enum State {
    /// The head of a frame.
    Header,
    /// The time, and so many bytes are left of the frame.
    Time(usize),
    /// The text.
    Text(usize),
}

impl Decoder {
    /// For the output of a container with or without a terminal.
    pub(super) fn new(has_terminal: bool) -> Decoder {
        Decoder {
            framed: !has_terminal,
            state: match has_terminal {
                true => State::Time(usize::MAX),
                false => State::Header,
            },
            time: Vec::new(),
            text: Vec::new(),
            header: Vec::new(),
            which: Output::Stdout,
        }
    }

    /// Takes what comes; `take` hears of what became whole.
    ///
    /// # Errors
    /// That is no output of a container.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(Entry),
    ) -> Result<(), String> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.state {
                State::Header => self.header(rest)?,
                State::Time(left) => self.time(rest, left, take)?,
                State::Text(left) => self.text(rest, left, take),
            };
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    fn header(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let wanted = (8 - self.header.len()).min(bytes.len());
        self.header
            .extend_from_slice(bytes.get(..wanted).unwrap_or_default());
        let Ok([which, _, _, _, length @ ..]) = <[u8; 8]>::try_from(self.header.as_slice()) else {
            return Ok(wanted);
        };
        self.header.clear();
        self.which = match which {
            0 | 1 => Output::Stdout,
            2 => Output::Stderr,
            _ => return Err("what the engine sends is no output".to_owned()),
        };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > 0 {
            self.state = State::Time(length);
        }
        Ok(wanted)
    }

    fn time(
        &mut self,
        bytes: &[u8],
        left: usize,
        take: &mut impl FnMut(Entry),
    ) -> Result<usize, String> {
        let end = bytes.iter().take(left).position(|byte| *byte == b' ');
        let read = end.unwrap_or_else(|| bytes.len().min(left));
        self.time
            .extend_from_slice(bytes.get(..read).unwrap_or_default());
        if self.time.len() > LONGEST_TIME {
            return Err("the engine does not say when output was written".to_owned());
        }
        match end {
            Some(_) => {
                self.state = State::Text(left.saturating_sub(read + 1));
                if left == read + 1 {
                    self.end(take);
                }
                Ok(read + 1)
            }
            None if read == left => {
                Err("the engine does not say when output was written".to_owned())
            }
            None => {
                self.state = State::Time(self.less(left, read));
                Ok(read)
            }
        }
    }

    fn text(&mut self, bytes: &[u8], left: usize, take: &mut impl FnMut(Entry)) -> usize {
        let line = || {
            bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| at + 1)
        };
        let end = match self.framed {
            true => (left <= bytes.len()).then_some(left),
            false => line(),
        };
        let read = end.unwrap_or(bytes.len());
        self.text
            .extend_from_slice(bytes.get(..read).unwrap_or_default());
        match end {
            Some(_) => self.end(take),
            None => {
                self.state = State::Text(self.less(left, read));
                if self.text.len() >= MOST {
                    self.give(take, false);
                }
            }
        }
        read
    }

    fn less(&self, left: usize, read: usize) -> usize {
        match self.framed {
            true => left.saturating_sub(read),
            false => usize::MAX,
        }
    }

    fn end(&mut self, take: &mut impl FnMut(Entry)) {
        self.give(take, true);
        self.time.clear();
        self.state = match self.framed {
            true => State::Header,
            false => State::Time(usize::MAX),
        };
    }

    fn give(&mut self, take: &mut impl FnMut(Entry), is_end: bool) {
        take(Entry {
            which: self.which,
            time: String::from_utf8_lossy(&self.time).into_owned(),
            text: std::mem::take(&mut self.text),
            is_end,
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn frame(which: u8, text: &str) -> Vec<u8> {
        let mut frame = vec![which, 0, 0, 0];
        frame.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(text.as_bytes());
        frame
    }

    fn entries(
        decoder: &mut Decoder,
        bytes: &[u8],
        at_a_time: usize,
    ) -> Vec<(Output, String, String)> {
        let mut all = Vec::new();
        for part in bytes.chunks(at_a_time) {
            let mut take = |entry: Entry| {
                all.push((
                    entry.which,
                    entry.time,
                    String::from_utf8(entry.text).unwrap(),
                ));
            };
            decoder.feed(part, &mut take).unwrap();
        }
        all
    }

    #[test]
    fn entries_are_the_same_however_they_arrive() {
        let mut bytes = frame(1, "2026-01-01T00:00:00.000000001Z hello\n");
        bytes.extend(frame(2, "2026-01-01T00:00:00.000000002Z "));
        bytes.extend(frame(1, "2026-01-01T00:00:00.000000003Z a b"));
        for at_a_time in 1..bytes.len() {
            let found = entries(&mut Decoder::new(false), &bytes, at_a_time);
            let texts: Vec<_> = found
                .iter()
                .map(|(which, _, text)| (*which, text.as_str()))
                .collect();
            let expected = [
                (Output::Stdout, "hello\n"),
                (Output::Stderr, ""),
                (Output::Stdout, "a b"),
            ];
            assert_eq!(texts, expected, "{at_a_time}");
            assert!(found.iter().all(|(_, time, _)| time.ends_with('Z')));
        }
    }

    #[test]
    fn lines_of_a_terminal_have_no_frames() {
        let bytes =
            b"2026-01-01T00:00:00.000000001Z \x01one\r\n2026-01-01T00:00:00.000000002Z two\r\n";
        for at_a_time in 1..bytes.len() {
            let found = entries(&mut Decoder::new(true), bytes, at_a_time);
            let texts: Vec<_> = found.iter().map(|(_, _, text)| text.as_str()).collect();
            assert_eq!(texts, ["\u{1}one\r\n", "two\r\n"], "{at_a_time}");
        }
    }

    #[test]
    fn invalid_log_entry_is_refused() {
        let mut take = |_| {};
        assert!(Decoder::new(false).feed(&frame(7, "x"), &mut take).is_err());
        assert!(
            Decoder::new(false)
                .feed(&frame(1, "no-time"), &mut take)
                .is_err()
        );
        assert!(Decoder::new(true).feed(&[b'x'; 100], &mut take).is_err());
        let mut kept = 0;
        let long = frame(1, &format!("t {}", "x".repeat(MOST * 3)));
        let mut take = |entry: Entry| kept = kept.max(entry.text.len());
        let mut decoder = Decoder::new(false);
        for part in long.chunks(1000) {
            decoder.feed(part, &mut take).unwrap();
        }
        assert!((MOST..MOST + 1000).contains(&kept), "{kept}");
    }
}
