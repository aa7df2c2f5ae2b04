//! A task's log files: `<task>.stdout.0`, `.1` and so on. The highest number is the newest; the
//! oldest vanish. Together they read as one text.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use drover_core::ids::AllocId;
use rustix::fs::{Dir, FileType, fstat};

use crate::safe_open::{Found, Trouble, alloc_dir, open_dir};

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;
/// How often a file may vanish while it is opened before that is an error.
const TRIES: usize = 16;

/// The log files of one task and stream.
#[derive(Debug)]
pub struct LogFiles {
    dir: OwnedFd,
    base: String,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Which file.
    pub file: u64,
    /// The byte there.
    pub offset: u64,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes; empty at the end of what is there.
    pub data: Vec<u8>,
    /// The file's path below the allocation's directory.
    pub file: String,
    /// The place after it.
    pub after: LogPosition,
    /// What is missing before it, if anything is.
    pub gap: Option<Gap>,
}

/// Why a part of the log is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Its file is gone: newer ones took its place.
    Rotated,
    /// Its file was made shorter.
    Truncated,
}

/// From where a reader counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the oldest byte that is there.
    Start,
    /// Backwards from the newest; 0 is the beginning of the newest file.
    End,
    /// From the end of what is there, whatever the number.
    Now,
}

impl LogFiles {
    /// The log of a task. `stream` is `stdout` or `stderr`.
    ///
    /// # Errors
    /// There is no directory of logs.
    pub fn open(
        root: impl AsFd,
        alloc: AllocId,
        task: &str,
        stream: &str,
    ) -> Result<LogFiles, Trouble> {
        let dir = open_dir(alloc_dir(root, alloc)?, "alloc/logs")?;
        Ok(LogFiles {
            dir,
            base: format!("{task}.{stream}"),
        })
    }

    /// The directory, to watch it.
    pub fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Whether the directory was removed: nothing can follow.
    pub fn is_removed(&self) -> bool {
        fstat(&self.dir).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// The numbers of the files that are there, oldest first.
    fn numbers(&self) -> Result<Vec<u64>, Trouble> {
        let entries = Dir::read_from(&self.dir).map_err(|errno| Trouble::Io(errno.to_string()))?;
        let mut numbers = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_str().ok();
            let number = name
                .and_then(|name| name.strip_prefix(&self.base)?.strip_prefix('.'))
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
            numbers.extend(number.and_then(|digits| digits.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn name(&self, number: u64) -> String {
        format!("{}.{number}", self.base)
    }

    /// The file of a number, if it is still there and a plain one.
    fn find(&self, number: u64) -> Result<Option<Found>, Trouble> {
        match Found::strictly(&self.dir, &self.name(number)) {
            Ok(found) => Ok(Some(found).filter(|found| found.kind() == FileType::RegularFile)),
            Err(Trouble::Missing(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// The place that is `offset` bytes from an end of the log, or the other end if the log is
    /// shorter.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn position(&self, origin: Origin, mut offset: u64) -> Result<LogPosition, Trouble> {
        let mut sizes = Vec::new();
        for number in self.numbers()? {
            sizes.extend(self.find(number)?.map(|found| (number, found.size())));
        }
        match origin {
            Origin::Start => {
                for (file, size) in &sizes {
                    if offset <= *size {
                        return Ok(LogPosition {
                            file: *file,
                            offset,
                        });
                    }
                    offset -= size;
                }
                let last = sizes.last().copied().unwrap_or_default();
                Ok(LogPosition {
                    file: last.0,
                    offset: last.1,
                })
            }
            Origin::Now => {
                let (file, offset) = sizes.last().copied().unwrap_or_default();
                Ok(LogPosition { file, offset })
            }
            // As Nomad does it: its programs follow with this, and show what is there already.
            Origin::End if offset == 0 => Ok(LogPosition {
                file: sizes.last().map_or(0, |(file, _)| *file),
                offset: 0,
            }),
            Origin::End => {
                for (file, size) in sizes.iter().rev() {
                    if offset <= *size {
                        return Ok(LogPosition {
                            file: *file,
                            offset: size - offset,
                        });
                    }
                    offset -= size;
                }
                Ok(LogPosition {
                    file: sizes.first().map_or(0, |(file, _)| *file),
                    offset: 0,
                })
            }
        }
    }

    /// What follows a place, up to a chunk; nothing at the end of the newest file.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, mut at: LogPosition) -> Result<Chunk, Trouble> {
        let mut gap = None;
        for _ in 0..TRIES {
            // Listed before reading: whatever was written to a file before its successor was made
            // is then read before going on to that.
            let numbers = self.numbers()?;
            if !numbers.contains(&at.file)
                && let Some(next) = numbers.iter().find(|number| **number > at.file)
            {
                // Who begins at the beginning misses nothing that was there.
                let began = at != LogPosition::default();
                gap = gap.or(began.then_some(Gap::Rotated));
                at = LogPosition {
                    file: *next,
                    offset: 0,
                };
            }
            let found = self.find(at.file)?;
            if let Some(found) = &found {
                if found.size() < at.offset {
                    gap = Some(Gap::Truncated);
                    at.offset = 0;
                }
                let data = read_at(found, at.offset)?;
                if !data.is_empty() {
                    at.offset += data.len() as u64;
                    return Ok(self.chunk(data, at, gap));
                }
            }
            match numbers.iter().find(|number| **number > at.file) {
                Some(next) => {
                    at = LogPosition {
                        file: *next,
                        offset: 0,
                    }
                }
                None => return Ok(self.chunk(Vec::new(), at, gap)),
            }
        }
        Ok(self.chunk(Vec::new(), at, gap))
    }

    fn chunk(&self, data: Vec<u8>, after: LogPosition, gap: Option<Gap>) -> Chunk {
        let file = format!("alloc/logs/{}", self.name(after.file));
        Chunk {
            data,
            file,
            after,
            gap,
        }
    }
}

fn read_at(found: &Found, offset: u64) -> Result<Vec<u8>, Trouble> {
    let file = found.open()?;
    let mut data = vec![0; CHUNK];
    let count = file
        .read_at(&mut data, offset)
        .map_err(|error| Trouble::Io(error.to_string()))?;
    data.truncate(count);
    Ok(data)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use rustix::fs::{Mode, OFlags};

    use super::*;

    fn logs(files: &[(u64, &str)]) -> (tempfile::TempDir, LogFiles) {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join(AllocId(1).to_string()).join("alloc/logs");
        std::fs::create_dir_all(&logs).unwrap();
        for (number, text) in files {
            std::fs::write(logs.join(format!("web.stdout.{number}")), text).unwrap();
        }
        for other in [
            "web.stdout.x",
            "web.stdout",
            "web.stderr.9",
            "web2.stdout.7",
        ] {
            std::fs::write(logs.join(other), "not this").unwrap();
        }
        let root = rustix::fs::open(dir.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let files = LogFiles::open(root, AllocId(1), "web", "stdout").unwrap();
        (dir, files)
    }

    fn rest(files: &LogFiles, mut at: LogPosition) -> String {
        let mut text = String::new();
        loop {
            let chunk = files.read(at).unwrap();
            if chunk.data.is_empty() {
                return text;
            }
            text.push_str(core::str::from_utf8(&chunk.data).unwrap());
            at = chunk.after;
        }
    }

    #[test]
    fn rotated_log_files_read_as_one() {
        let (_dir, files) = logs(&[(9, "nine,"), (10, "ten,"), (11, "eleven")]);
        let from = |origin, offset| rest(&files, files.position(origin, offset).unwrap());
        assert_eq!(from(Origin::Start, 0), "nine,ten,eleven");
        assert_eq!(from(Origin::Start, 7), "n,eleven");
        assert_eq!(from(Origin::Start, 99), "");
        assert_eq!(from(Origin::End, 0), "eleven");
        assert_eq!(from(Origin::End, 8), "n,eleven");
        assert_eq!(from(Origin::End, 99), "nine,ten,eleven");
    }

    #[test]
    fn removed_log_file_loses_only_itself() {
        let (_dir, files) = logs(&[(3, "three"), (4, "four")]);
        assert_eq!(
            rest(
                &files,
                LogPosition {
                    file: 1,
                    offset: 77
                }
            ),
            "threefour"
        );
        assert_eq!(
            rest(
                &files,
                LogPosition {
                    file: 3,
                    offset: 77
                }
            ),
            "threefour"
        );
        let gap = |file, offset| files.read(LogPosition { file, offset }).unwrap().gap;
        assert_eq!(gap(1, 77), Some(Gap::Rotated));
        assert_eq!(gap(3, 77), Some(Gap::Truncated));
        assert_eq!((gap(3, 2), gap(3, 5), gap(0, 0)), (None, None, None));
        let (_dir, none) = logs(&[]);
        assert_eq!(
            none.position(Origin::End, 5).unwrap(),
            LogPosition::default()
        );
        assert_eq!(rest(&none, LogPosition::default()), "");
    }
}
