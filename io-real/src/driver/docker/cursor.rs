//! How far the output of a container was read: the time of the last entry, how many entries of that time, and where
//! the log files stood then. It survives the agent, which goes on exactly there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jiff::Timestamp;

use super::sink::Place;

/// The size of the file; shorter texts are filled up.
const SIZE: usize = 192;

/// How far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The time of the last entry, as the engine writes it; empty before the first.
    pub(super) time: String,
    /// How many entries of this time were read.
    pub(super) same: u64,
    /// Where the files of both streams stood then.
    pub(super) places: [Place; 2],
}

impl Cursor {
    /// What a file says; none if nothing was written yet.
    ///
    /// # Errors
    /// It cannot be read, or somebody else wrote it.
    pub(super) fn read(file: &File) -> io::Result<Option<Cursor>> {
        let mut bytes = [0; SIZE];
        let size = file.metadata()?.len();
        if size == 0 {
            return Ok(None);
        }
        file.read_exact_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let cursor = Cursor::of(&text);
        let strange = || io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
        cursor.map(Some).ok_or_else(strange)
    }

    fn of(text: &str) -> Option<Cursor> {
        let mut words = text.split_ascii_whitespace();
        let time = words.next()?;
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let [same, out_index, out_size, err_index, err_size] = numbers?.try_into().ok()?;
        let place = |index, size| Place { index, size };
        Some(Cursor {
            time: time.trim_start_matches('-').to_owned(),
            same,
            places: [place(out_index, out_size), place(err_index, err_size)],
        })
    }

    /// Writes it in one piece.
    ///
    /// # Errors
    /// The disk says no.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let time = if self.time.is_empty() {
            "-"
        } else {
            &self.time
        };
        let [out, err] = self.places;
        let text = format!(
            "{time} {} {} {} {} {}\n",
            self.same, out.index, out.size, err.index, err.size
        );
        file.write_all_at(format!("{text:SIZE$}").as_bytes(), 0)
    }

    /// From when on the engine is asked, as its API wants it: nothing before the first entry.
    pub(super) fn since(&self) -> String {
        match self.time.parse::<Timestamp>() {
            Ok(time) => format!(
                "&since={}.{:09}",
                time.as_second(),
                time.subsec_nanosecond()
            ),
            Err(_) => String::new(),
        }
    }

    /// Notes that an entry of this time was read.
    pub(super) fn pass(&mut self, time: &str) {
        match self.time == time {
            true => self.same += 1,
            false => (self.time, self.same) = (time.to_owned(), 1),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_read_as_it_was_written() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Cursor::read(&file).unwrap(), None);
        let mut cursor = Cursor::default();
        cursor.write(&file).unwrap();
        assert_eq!(Cursor::read(&file).unwrap(), Some(cursor.clone()));
        assert_eq!(cursor.since(), "");
        for (time, same) in [
            ("2026-01-01T00:00:01.000000009Z", 1),
            ("2026-01-01T00:00:01.000000009Z", 2),
        ] {
            cursor.pass(time);
            assert_eq!(cursor.same, same);
        }
        cursor.places = [
            Place { index: 3, size: 4 },
            Place {
                index: 5,
                size: u64::MAX,
            },
        ];
        cursor.write(&file).unwrap();
        assert_eq!(Cursor::read(&file).unwrap(), Some(cursor.clone()));
        assert_eq!(cursor.since(), "&since=1767225601.000000009");
        file.write_all_at(b"x y", 0).unwrap();
        assert!(Cursor::read(&file).is_err());
    }
}
