//! The number of the last commit, outside of the database: a small file in the data directory.
//!
//! It has two slots, each a line of text with a checksum, in different sectors. A commit's number is
//! written into the older one after the commit is on the disk, and is not synced: it survives the
//! agent's death at once, and a power cut some seconds later, when the kernel has written it. So it
//! may lag behind the store and is never ahead of it.
//!
//! For a commit it costs one write of 64 bytes, about 100 bytes more in sled's log, and no sync. It
//! is synced when the agent ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use drover_core::store::freshness;

use super::db::hash;

/// The file's name, in the data directory.
pub(crate) const FILE: &str = "last-commit";
const NEW: &str = "last-commit.new";

/// How far apart the slots are: another sector.
const SLOT: usize = 512;

/// What a slot begins with.
const MAGIC: &str = "drover-last-commit 1";

/// What is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    last: u64,
    lost: bool,
}

impl Content {
    /// As a line of fixed length, so that a shorter number leaves nothing of a longer one.
    fn line(self) -> String {
        let (last, lost) = (self.last, if self.lost { "lost" } else { "kept" });
        let text = format!("{MAGIC} {last:020} {lost}");
        let sum = hash(text.as_bytes(), &[]);
        format!("{text} {sum:016x}\n")
    }

    fn parse(slot: &[u8]) -> Option<Content> {
        let line = slot.split(|byte| *byte == b'\n').next()?;
        let text = std::str::from_utf8(line).ok()?;
        let mut words = text.strip_prefix(MAGIC)?.split_whitespace();
        let last = words.next()?.parse().ok()?;
        let lost = words.next()? == "lost";
        let content = Content { last, lost };
        // What is not written exactly so was damaged.
        (content.line().trim_end() == text).then_some(content)
    }
}

/// The file, open.
pub(super) struct Counter {
    dir: PathBuf,
    /// None while the disk has no space for it.
    file: Option<File>,
    content: Content,
    /// The slot for the next number.
    next: u64,
    /// Whether the disk refuses: said once.
    failing: bool,
}

/// What the file in `dir` says.
///
/// # Errors
/// It cannot be read for another reason than its content.
pub(super) fn read(dir: &Path) -> io::Result<freshness::Counter> {
    match find(dir)? {
        None => Ok(freshness::Counter::Missing),
        Some((_, None)) => Ok(freshness::Counter::Unreadable),
        Some((_, Some((Content { last, lost }, _)))) => Ok(freshness::Counter::Read { last, lost }),
    }
}

/// The file, and its newest slot that can be read.
type Found = (File, Option<(Content, u64)>);

fn find(dir: &Path) -> io::Result<Option<Found>> {
    let file = match File::options().read(true).write(true).open(dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = [0; 2 * SLOT];
    let mut len = 0;
    while let Some(rest) = bytes.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, u64::try_from(len).unwrap_or(0))? {
            0 => break,
            more => len += more,
        }
    }
    let slots = [(&bytes[..SLOT], 0), (&bytes[SLOT..], 1)];
    let read = slots
        .into_iter()
        .filter_map(|(slot, number)| Some((Content::parse(slot)?, number)));
    let newest = read.max_by_key(|(content, _)| content.last);
    Ok(Some((file, newest)))
}

impl Counter {
    /// Opens the file in `dir` as it is; none if it is missing or cannot be read.
    pub(super) fn open(dir: &Path) -> io::Result<Option<Counter>> {
        let Some((file, Some((content, slot)))) = find(dir)? else {
            return Ok(None);
        };
        Ok(Some(Counter {
            dir: dir.to_owned(),
            file: Some(file),
            content,
            next: 1 - slot,
            failing: false,
        }))
    }

    /// Writes a new file in `dir` that survives a crash, in the place of what is there.
    pub(super) fn create(dir: &Path, last: u64, lost: bool) -> io::Result<Counter> {
        let content = Content { last, lost };
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(dir.join(NEW))?;
        // Blanks behind it: the file has its space on the disk, and can be read with `cat`.
        let line = content.line();
        file.write_all(format!("{line:<width$}", width = 2 * SLOT).as_bytes())?;
        file.sync_all()?;
        fs::rename(dir.join(NEW), dir.join(FILE))?;
        File::open(dir)?.sync_all()?;
        Ok(Counter {
            dir: dir.to_owned(),
            file: Some(file),
            content,
            next: 1,
            failing: false,
        })
    }

    /// As [`Counter::create`] where nothing is lost: a disk that refuses is tried again with the next
    /// commit.
    pub(super) fn begin(dir: &Path, last: u64) -> Counter {
        Counter::create(dir, last, false).unwrap_or_else(|error| {
            let mut counter = Counter {
                dir: dir.to_owned(),
                file: None,
                content: Content { last, lost: false },
                next: 0,
                failing: false,
            };
            counter.warn(&error);
            counter
        })
    }

    /// The number of the last commit that is known to be saved.
    pub(super) fn last(&self) -> u64 {
        self.content.last
    }

    /// The commit of this number is on the disk. A disk that refuses costs only that an earlier
    /// state may not be noticed.
    pub(super) fn saved(&mut self, number: u64) {
        if number <= self.content.last {
            return;
        }
        let content = Content {
            last: number,
            ..self.content
        };
        let Some(file) = &self.file else {
            return self.replace(content);
        };
        let at = self.next.saturating_mul(u64::try_from(SLOT).unwrap_or(0));
        match file.write_all_at(content.line().as_bytes(), at) {
            Ok(()) => {
                self.content = content;
                self.next = 1 - self.next;
                self.failing = false;
            }
            Err(error) => self.warn(&error),
        }
    }

    /// Writes a new file.
    fn replace(&mut self, Content { last, lost }: Content) {
        match Counter::create(&self.dir, last, lost) {
            Ok(new) => *self = new,
            Err(error) => self.warn(&error),
        }
    }

    /// Tasks of a lost state do not run any more.
    pub(super) fn end_loss(&mut self) {
        self.replace(Content {
            lost: false,
            ..self.content
        });
    }

    /// Makes sure that the number survives a power cut.
    pub(super) fn sync(&mut self) {
        if let Some(Err(error)) = self.file.as_ref().map(File::sync_data) {
            self.warn(&error);
        }
    }

    fn warn(&mut self, error: &io::Error) {
        if !self.failing {
            let path = self.dir.join(FILE);
            tracing::warn!(path = %path.display(), %error, "cannot note the last commit");
        }
        self.failing = true;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn at(last: u64, lost: bool) -> freshness::Counter {
        freshness::Counter::Read { last, lost }
    }

    #[test]
    fn counter_survives_reopening_and_a_torn_slot() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), freshness::Counter::Missing);
        let mut counter = Counter::create(dir.path(), 998, true).unwrap();
        for number in 999..1003 {
            counter.saved(number);
            assert_eq!(read(dir.path()).unwrap(), at(number, true));
            counter = Counter::open(dir.path()).unwrap().unwrap();
        }
        counter.end_loss();
        counter.saved(1003);
        assert_eq!(read(dir.path()).unwrap(), at(1003, false));
        let path = dir.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        // A bit of each byte of either slot: the other one is older by one at most.
        for bit in (0..whole.len()).filter(|at| whole[*at] != b' ') {
            let mut bytes = whole.clone();
            bytes[bit] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let found = read(dir.path()).unwrap();
            let older = found == at(1002, false);
            assert!(older || found == at(1003, false), "bit {bit}: {found:?}");
        }
        for bytes in [&b""[..], &[0; 2 * SLOT], b"drover-last-commit 1 12"] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(dir.path()).unwrap(), freshness::Counter::Unreadable);
            assert!(Counter::open(dir.path()).unwrap().is_none());
        }
    }
}
