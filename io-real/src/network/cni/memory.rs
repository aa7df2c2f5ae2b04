//! What is remembered of a network that plugins make, from before the first of them runs until all of it is taken back.
//! By that it is taken back by an agent that knows nothing else of it, though the operator's files say something else
//! by now.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::list::List;

/// The file that it stands in, in the directory of the network.
const FILE: &str = "cni";

/// The file that plugins read their input from.
const INPUT: &str = "cni-input";

/// The longest memory, in bytes: a list and an answer, with all that is written of them.
const LONGEST: u64 = 4 << 20;

/// The pause before somebody looks again whether a plugin still has its input.
const PAUSE: Duration = Duration::from_millis(20);

/// A network that plugins make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The plugins, as they were configured then.
    pub(super) list: List,
    /// Where their programs are.
    pub(super) path: Vec<PathBuf>,
    /// The text of arguments.
    pub(super) args: String,
    /// What they can be told of the allocation, by the names of the capabilities.
    pub(super) runtime: Map<String, Value>,
    /// The last plugin's answer, once all of them are added.
    pub(super) result: Option<Value>,
}

impl Memory {
    /// That of a network's directory, if there is one.
    pub(super) fn read(dir: BorrowedFd<'_>) -> io::Result<Option<Memory>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(dir, FILE, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => File::from(file?),
        };
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text)?;
        let memory = serde_json::from_slice(&text);
        let unreadable =
            |error| io::Error::other(format!("what plugins made is unreadable: {error}"));
        memory.map(Some).map_err(unreadable)
    }

    /// Remembers it, also if the machine fails at once. Configuration may have secrets, so nobody else reads it.
    pub(super) fn write(&self, dir: BorrowedFd<'_>) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        if u64::try_from(text.len()).is_ok_and(|length| length >= LONGEST) {
            return Err(io::Error::other("the plugins' configuration is too long"));
        }
        let new = format!("{FILE}.new");
        let flags =
            OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(dir, new.as_str(), flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        file.write_all(&text)?;
        file.sync_all()?;
        renameat(dir, new.as_str(), dir, FILE)?;
        Ok(fsync(dir)?)
    }

    /// Forgets it: nothing is left of what plugins made.
    pub(super) fn forget(dir: BorrowedFd<'_>) -> io::Result<()> {
        match unlinkat(dir, FILE, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The file that plugins of a network read, locked: only one at a time runs for it. A plugin has the lock too, so that
/// one which outlives its agent is waited for by the next.
pub(super) struct Input(File);

impl Input {
    /// Takes it, when nobody else has it, or when `patience` is over: a plugin runs no longer than that, and what it
    /// started may have the lock for ever.
    pub(super) fn take(dir: BorrowedFd<'_>, patience: Duration) -> io::Result<Input> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(dir, INPUT, flags, Mode::from_raw_mode(0o600))?);
        let until = Instant::now() + patience;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Input(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    thread::sleep(PAUSE);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(Input(file)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What the next plugin reads.
    pub(super) fn with(&mut self, text: &[u8]) -> io::Result<File> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(text)?;
        self.0.rewind()?;
        self.0.try_clone()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        // Not only our handle: what a plugin left running may have one.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn memory_is_what_was_written() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        assert_eq!(Memory::read(dir.as_fd()).unwrap(), None);
        let text = r#"{"name": "mine", "type": "x", "secret": "s"}"#;
        let memory = Memory {
            list: List::parse(text).unwrap(),
            path: vec!["/opt/cni/bin".into()],
            args: "A=b".to_owned(),
            runtime: Map::new(),
            result: None,
        };
        memory.write(dir.as_fd()).unwrap();
        assert_eq!(Memory::read(dir.as_fd()).unwrap(), Some(memory));
        let mode = std::os::unix::fs::MetadataExt::mode;
        let file = std::fs::metadata(home.path().join(FILE)).unwrap();
        assert_eq!(mode(&file) & 0o777, 0o600);
        std::fs::write(home.path().join(FILE), "nonsense").unwrap();
        assert!(Memory::read(dir.as_fd()).is_err());
        Memory::forget(dir.as_fd()).unwrap();
        assert_eq!(Memory::read(dir.as_fd()).unwrap(), None);
    }

    #[test]
    fn input_has_one_holder_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        let mut input = Input::take(dir.as_fd(), Duration::ZERO).unwrap();
        let mut seen = String::new();
        input.with(b"long text").unwrap();
        input
            .with(b"short")
            .unwrap()
            .read_to_string(&mut seen)
            .unwrap();
        assert_eq!(seen, "short");
        let file = File::options()
            .read(true)
            .write(true)
            .open(home.path().join(INPUT));
        let other = file.unwrap();
        let try_it = || flock(&other, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(try_it(), Err(Errno::WOULDBLOCK));
        // Somebody who has a handle for ever keeps nobody off.
        let _kept = input.with(b"").unwrap();
        drop(input);
        assert_eq!(try_it(), Ok(()));
        drop(Input::take(dir.as_fd(), Duration::ZERO).unwrap());
    }
}
