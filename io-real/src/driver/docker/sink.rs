//! The log files of a task whose output the agent writes itself: `<base>.0`, `<base>.1`, … as shims write them
//! (`io-real/shim/src/logs.rs`).
//!
//! The directory is shared with the task, which may put anything there under any name. So a file is made anew, or
//! it is a plain one of our own user with one name, which no task of another user can have made.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use drover_core::ids::TaskKey;
use drover_core::model::task::LogConfig;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::dirs::AllocDirs;
use crate::session::Output;

/// How many names in a row may be taken before an attempt is given up.
const TRIES: u64 = 4096;

/// Where a stream stands: in which file, after so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) size: u64,
}

/// The log files of both streams.
pub(super) struct Sink {
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    dir: OwnedFd,
    base: String,
    keep: usize,
    most: u64,
    file: Option<File>,
    place: Place,
    /// So many bytes of what comes are written already.
    skip: u64,
}

impl Sink {
    /// The files of a task, to be gone on with. `known` is where an earlier agent stood: what is behind that
    /// comes a second time, and is not written again.
    ///
    /// # Errors
    /// The directory is not there.
    pub(super) fn open(
        dirs: &AllocDirs,
        task: &TaskKey,
        logs: LogConfig,
        known: Option<[Place; 2]>,
    ) -> io::Result<Sink> {
        let open = |name: &str, known: Option<Place>| {
            let dir = dirs.open(task.alloc, "alloc/logs")?;
            Stream::open(dir, format!("{}.{name}", task.task), logs, known)
        };
        Ok(Sink {
            stdout: open("stdout", known.map(|[place, _]| place))?,
            stderr: open("stderr", known.map(|[_, place]| place))?,
        })
    }

    /// Writes what a stream says.
    ///
    /// # Errors
    /// The disk says no.
    pub(super) fn write(&mut self, which: Output, bytes: &[u8]) -> io::Result<()> {
        match which {
            Output::Stdout => self.stdout.write(bytes),
            Output::Stderr => self.stderr.write(bytes),
        }
    }

    /// Where both stand.
    pub(super) fn places(&self) -> [Place; 2] {
        [self.stdout.place, self.stderr.place]
    }
}

impl Stream {
    fn open(
        dir: OwnedFd,
        base: String,
        logs: LogConfig,
        known: Option<Place>,
    ) -> io::Result<Stream> {
        let mut stream = Stream {
            dir,
            base,
            keep: usize::try_from(logs.max_files.max(1)).unwrap_or(usize::MAX),
            most: u64::try_from(logs.max_file_size_mb.max(1))
                .unwrap_or(1)
                .saturating_mul(1 << 20),
            file: None,
            place: Place::default(),
            skip: 0,
        };
        let indices = stream.indices()?;
        let newest = indices.last().copied();
        if let Some(index) = newest {
            stream.place = Place { index, size: 0 };
            if let Some((file, size)) = stream.trusted(index) {
                stream.place.size = size;
                stream.file = Some(file);
            }
        }
        if let Some(known) = known {
            let since = indices.iter().filter(|index| **index >= known.index);
            let sizes = since.filter_map(|index| Some(stream.trusted(*index)?.1));
            stream.skip = sizes.sum::<u64>().saturating_sub(known.size);
        }
        Ok(stream)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let again = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.skip = self
            .skip
            .saturating_sub(u64::try_from(again).unwrap_or(u64::MAX));
        let mut rest = bytes.get(again..).unwrap_or_default();
        while !rest.is_empty() {
            let remaining = self.most.saturating_sub(self.place.size);
            if self.file.is_none() || remaining == 0 {
                self.rotate()?;
                continue;
            }
            let part = self.part(rest, remaining);
            if part.is_empty() {
                self.rotate()?;
                continue;
            }
            if let Some(file) = &mut self.file {
                file.write_all(part)?;
            }
            let written = part.len();
            self.place.size += u64::try_from(written).unwrap_or(u64::MAX);
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// As much as has room, with whole lines as far as possible.
    fn part<'a>(&self, bytes: &'a [u8], remaining: u64) -> &'a [u8] {
        let remaining = usize::try_from(remaining).unwrap_or(usize::MAX);
        if bytes.len() <= remaining {
            return bytes;
        }
        let fits = bytes.get(..remaining).unwrap_or_default();
        match fits.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => fits.get(..=end).unwrap_or_default(),
            // A line that is longer than a file.
            None if self.place.size == 0 => fits,
            None => &[],
        }
    }

    /// Goes on in a new file, and removes the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        let first = match (&self.file, self.place.index) {
            (None, 0) => 0,
            (_, index) => index + 1,
        };
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        for index in first..first.saturating_add(TRIES) {
            match openat(&self.dir, self.name(index), flags | OFlags::CLOEXEC, mode) {
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
                Ok(file) => {
                    self.file = Some(file.into());
                    self.place = Place { index, size: 0 };
                    return self.prune();
                }
            }
        }
        Err(Errno::EXIST.into())
    }

    fn prune(&self) -> io::Result<()> {
        let indices = self.indices()?;
        let many = indices.len().saturating_sub(self.keep);
        for index in indices.iter().take(many) {
            unlinkat(&self.dir, self.name(*index), AtFlags::empty())?;
        }
        Ok(())
    }

    fn name(&self, index: u64) -> String {
        format!("{}.{index}", self.base)
    }

    /// The numbers of our files, in order.
    fn indices(&self) -> io::Result<Vec<u64>> {
        let mut indices = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let digits = name
                .strip_prefix(&self.base)
                .and_then(|it| it.strip_prefix('.'));
            let Some(index) = digits.and_then(|it| it.parse::<u64>().ok()) else {
                continue;
            };
            let stat = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            if self.name(index) == name && stat.is_ok_and(|stat| is_ours(&stat)) {
                indices.push(index);
            }
        }
        indices.sort_unstable();
        Ok(indices)
    }

    /// A file that no task can have made, and its size.
    fn trusted(&self, index: u64) -> Option<(File, u64)> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = openat(
            self.dir.as_fd(),
            self.name(index),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let file = file.ok()?;
        let stat = fstat(&file).ok()?;
        let plain = stat.st_nlink == 1 && stat.st_mode & 0o7111 == 0;
        let size = u64::try_from(stat.st_size).ok()?;
        (is_ours(&stat) && plain).then(|| (file.into(), size))
    }
}

fn is_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == geteuid().as_raw()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn stream(dir: &std::path::Path, known: Option<Place>) -> Stream {
        let logs = LogConfig {
            max_files: 2,
            max_file_size_mb: 1,
            ..LogConfig::default()
        };
        let opened = File::open(dir).unwrap().into();
        let mut stream = Stream::open(opened, "web.stdout".to_owned(), logs, known).unwrap();
        stream.most = 10;
        stream
    }

    #[test]
    fn files_are_rotated_at_lines_and_the_oldest_removed() {
        let dir = tempfile::tempdir().unwrap();
        stream(dir.path(), None)
            .write(b"one\ntwo\nthree\nfour\n")
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).ok();
        assert_eq!(read("web.stdout.0"), None);
        assert_eq!(read("web.stdout.1").as_deref(), Some("three\n"));
        assert_eq!(read("web.stdout.2").as_deref(), Some("four\n"));
        stream(dir.path(), None)
            .write(b"a line that is longer\n")
            .unwrap();
        assert_eq!(read("web.stdout.5").as_deref(), Some("r\n"));
    }

    #[test]
    fn output_already_written_is_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = stream(dir.path(), None);
        first.write(b"one\n").unwrap();
        let known = first.place;
        first.write(b"two\nsix\n").unwrap();
        stream(dir.path(), Some(known))
            .write(b"two\nsix\nten\n")
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            read("web.stdout.0") + &read("web.stdout.1"),
            "one\ntwo\nsix\nten\n"
        );
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("web.stdout.0")).unwrap();
        std::fs::create_dir(dir.path().join("web.stdout.1")).unwrap();
        stream(dir.path(), None).write(b"one\n").unwrap();
        let text = std::fs::read_to_string(dir.path().join("web.stdout.2")).unwrap();
        assert_eq!(text, "one\n");
    }
}
