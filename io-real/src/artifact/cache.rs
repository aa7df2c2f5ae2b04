//! What was fetched, for whoever wants the same: files by their sums, as far as nobody can make
//! another file with the same sum. Whoever fetched them is not believed: they are summed up again.

use std::fs::{File, FileTimes};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use drover_core::model::artifact::Checksum;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, ioctl_ficlone, openat2, renameat, statat,
    unlinkat,
};

use super::sum::sum_of;

/// What the names of files begin with that are not whole yet.
const NEW: &str = "new-";

/// A file that is kept. Ordered by when it was wanted last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    wanted: (i64, u64),
    size: u64,
    name: String,
}

/// Files that are kept.
#[derive(Debug)]
pub(super) struct Cache {
    dir: OwnedFd,
    /// How many bytes are kept at most.
    limit: u64,
    nth: AtomicU64,
}

impl Cache {
    /// Keeps files in `dir`, which is the agent's alone.
    pub(super) fn new(dir: OwnedFd, limit: u64) -> Cache {
        let cache = Cache {
            dir,
            limit,
            nth: AtomicU64::new(0),
        };
        // A full disk is told by whoever writes to it next.
        let _ = cache.tidy();
        cache
    }

    /// Whether a file with this sum is kept at all.
    pub(super) fn keeps(&self, sum: &Checksum) -> bool {
        self.limit > 0 && sum.kind.is_strong()
    }

    /// Clones the file with this sum to `name` in `into`. Whether there is one.
    ///
    /// # Errors
    /// The disk says no.
    pub(super) fn get(&self, sum: &Checksum, into: &OwnedFd, name: &str) -> io::Result<bool> {
        if !self.keeps(sum) {
            return Ok(false);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match openat2(&self.dir, file_name(sum), flags, Mode::empty(), BENEATH) {
            Ok(found) => File::from(found),
            Err(rustix::io::Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let times = FileTimes::new().set_modified(SystemTime::now());
        // Who was wanted last is only a hint.
        let _ = found.set_times(times);
        clone(&found, &create(into, name)?)?;
        Ok(true)
    }

    /// Keeps the file `name` of `from` under its sum, if it is as it should be and fits.
    ///
    /// # Errors
    /// The disk says no, or the file sums up to something else.
    pub(super) fn put(&self, sum: &Checksum, from: &OwnedFd, name: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = File::from(openat2(from, name, flags, Mode::empty(), BENEATH)?);
        let meta = source.metadata()?;
        if !self.keeps(sum) || !meta.is_file() || meta.len() > self.limit {
            return Ok(());
        }
        let new = format!("{NEW}{}", self.nth.fetch_add(1, Ordering::Relaxed));
        let kept = self.keep(sum, &source, &new);
        if kept.is_err() {
            // It is tidied away at the next start otherwise.
            let _ = unlinkat(&self.dir, &new, AtFlags::empty());
        }
        kept?;
        self.free_space()
    }

    fn keep(&self, sum: &Checksum, source: &File, new: &str) -> io::Result<()> {
        clone(source, &create(&self.dir, new)?)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy = File::from(openat2(&self.dir, new, flags, Mode::empty(), BENEATH)?);
        if sum_of(sum.kind, &mut copy)? != sum.hex {
            return Err(io::Error::other("its checksum does not match"));
        }
        Ok(renameat(&self.dir, new, &self.dir, file_name(sum))?)
    }

    /// Removes what was not wanted for the longest time until the rest fits.
    fn free_space(&self) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort();
        let mut bytes: u64 = files.iter().map(|file| file.size).sum();
        for file in files {
            if bytes <= self.limit {
                break;
            }
            unlinkat(&self.dir, &file.name, AtFlags::empty())?;
            bytes = bytes.saturating_sub(file.size);
        }
        Ok(())
    }

    /// Removes what an earlier agent did not finish.
    fn tidy(&self) -> io::Result<()> {
        for file in self.files()? {
            if file.name.starts_with(NEW) {
                unlinkat(&self.dir, &file.name, AtFlags::empty())?;
            }
        }
        self.free_space()
    }

    fn files(&self) -> io::Result<Vec<Kept>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let stat = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode).is_file() {
                files.push(Kept {
                    wanted: (stat.st_mtime, stat.st_mtime_nsec),
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    name: entry.file_name().to_string_lossy().into_owned(),
                });
            }
        }
        Ok(files)
    }
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

fn file_name(sum: &Checksum) -> String {
    format!("{}-{}", sum.kind.name(), sum.hex)
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(openat2(dir, name, flags, mode, BENEATH)?))
}

/// The same blocks where the disk can do that, else a copy by the kernel.
fn clone(from: &File, to: &File) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let (mut from, mut to) = (from, to);
    io::copy(&mut from, &mut to).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::path::Path;

    use drover_core::model::artifact::SumKind;

    use super::*;

    fn open(dir: &Path) -> OwnedFd {
        fs::create_dir_all(dir).unwrap();
        File::open(dir).unwrap().into()
    }

    fn sum(text: &str) -> Checksum {
        let kind = SumKind::Sha256;
        let hex = sum_of(kind, &mut text.as_bytes()).unwrap();
        Checksum { kind, hex }
    }

    #[test]
    fn artifact_cache_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        let (kept, work) = (at.join("kept"), at.join("work"));
        let cache = Cache::new(open(&kept), 10);
        let own = open(&work);
        for text in ["one", "two", "three", "four"] {
            fs::write(work.join(text), text).unwrap();
            cache.put(&sum(text), &own, text).unwrap();
            let old = SystemTime::UNIX_EPOCH;
            let _ = File::options()
                .write(true)
                .open(kept.join(file_name(&sum(text))))
                .map(|file| file.set_times(FileTimes::new().set_modified(old)));
        }
        let left: u64 = fs::read_dir(&kept)
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        assert!(left <= 10, "{left}");
        let found: Vec<bool> = (["one", "two", "three", "four"].iter())
            .map(|text| {
                cache
                    .get(&sum(text), &own, &format!("copy of {text}"))
                    .unwrap()
            })
            .collect();
        assert!(found.contains(&true) && found.contains(&false), "{found:?}");
        fs::write(work.join("large"), "0123456789a").unwrap();
        cache.put(&sum("0123456789a"), &own, "large").unwrap();
        assert!(!cache.get(&sum("0123456789a"), &own, "copy").unwrap());
    }

    #[test]
    fn artifact_with_wrong_checksum_is_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, work) = (dir.path().join("kept"), dir.path().join("work"));
        let cache = Cache::new(open(&kept), 100);
        let own = open(&work);
        fs::write(work.join("x"), "another").unwrap();
        assert!(cache.put(&sum("the right one"), &own, "x").is_err());
        std::os::unix::fs::symlink("/etc/passwd", work.join("link")).unwrap();
        assert!(cache.put(&sum("x"), &own, "link").is_err());
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
        let weak = Checksum::parse("md5:0123456789abcdef0123456789abcdef").unwrap();
        assert!(!cache.keeps(&weak));
    }
}
