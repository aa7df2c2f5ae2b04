//! The files: numbered segments in one directory, of which the oldest goes when there is no room.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use drover_recorder::EXTENSION;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat, unlinkat};

/// Into how many segments the room is divided, if their beginnings are small.
const SEGMENTS: u64 = 8;

/// Why nothing can be written.
#[derive(Debug)]
pub(super) enum RingError {
    /// The disk says no.
    Io(io::Error),
    /// There is no room for what has to be written at once.
    TooSmall { needed: u64, size: u64 },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingError::Io(error) => error.fmt(f),
            RingError::TooSmall { needed, size } => write!(
                f,
                "the state alone takes {needed} bytes, and the recording may take {size}; \
                 give it more with -recording-size"
            ),
        }
    }
}

impl From<io::Error> for RingError {
    fn from(error: io::Error) -> Self {
        RingError::Io(error)
    }
}

/// One file.
#[derive(Debug)]
struct Segment {
    number: u64,
    length: u64,
}

/// The files of a directory.
#[derive(Debug)]
pub(super) struct Ring {
    dir: OwnedFd,
    size: u64,
    /// All segments, oldest first; the last is written to if `file` is there.
    segments: VecDeque<Segment>,
    file: Option<File>,
    /// The length at which a new segment is wanted.
    enough: u64,
}

impl Ring {
    /// The ring in this directory, with what is there already.
    pub(super) fn open(dir: OwnedFd, size: u64) -> io::Result<Ring> {
        let mut segments = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let Some(number) = entry.file_name().to_str().ok().and_then(number_of) else {
                continue;
            };
            let stat = statat(&dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let length = u64::try_from(stat.st_size).unwrap_or(0);
            segments.push(Segment { number, length });
        }
        segments.sort_unstable_by_key(|segment| segment.number);
        Ok(Ring {
            dir,
            size,
            segments: segments.into(),
            file: None,
            enough: 0,
        })
    }

    /// Begins a new segment with this.
    pub(super) fn begin(&mut self, bytes: &[u8]) -> Result<(), RingError> {
        let needed = length(bytes);
        if needed > self.size / 2 {
            let size = self.size;
            return Err(RingError::TooSmall { needed, size });
        }
        let number = self.segments.back().map_or(1, |last| last.number + 1);
        self.file = None;
        self.free_space(needed, 0)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&self.dir, name_of(number), flags | OFlags::NOFOLLOW, mode)
            .map_err(io::Error::from)?;
        self.file = Some(file.into());
        self.segments.push_back(Segment { number, length: 0 });
        self.enough = (self.size / SEGMENTS).max(needed * 2).min(self.size / 2);
        self.append(bytes)?;
        Ok(())
    }

    /// Writes more to the segment. `false` if there is none, or if it would become longer than all may
    /// be together: it is left out then, and the segment is over.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if bytes.is_empty() {
            return Ok(true);
        }
        if !self.free_space(length(bytes), 1)? {
            self.file = None;
        }
        let Some(_) = &self.file else {
            return Ok(false);
        };
        if let (Some(file), Some(last)) = (&mut self.file, self.segments.back_mut()) {
            file.write_all(bytes)?;
            last.length += length(bytes);
        }
        Ok(true)
    }

    /// Whether the segment is long enough for a new one to begin.
    pub(super) fn is_enough(&self) -> bool {
        let last = self.segments.back().filter(|_| self.file.is_some());
        last.is_some_and(|last| last.length >= self.enough)
    }

    /// Drops the oldest segments until so many bytes more fit, but not the last `kept`. Whether
    /// they fit now.
    fn free_space(&mut self, needed: u64, kept: usize) -> io::Result<bool> {
        while self.total() + needed > self.size && self.segments.len() > kept {
            if let Some(oldest) = self.segments.pop_front() {
                unlinkat(&self.dir, name_of(oldest.number), AtFlags::empty())
                    .map_err(io::Error::from)?;
            }
        }
        Ok(self.total() + needed <= self.size)
    }

    fn total(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn name_of(number: u64) -> String {
    format!("{number:08}{EXTENSION}")
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(EXTENSION)?;
    let all_digits = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}
