//! What is remembered of a network that plugins make, from before the first of them runs until all of it is taken back.
//! By that it is taken back by an agent that knows nothing else of it, though the operator's files say something else
//! by now.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::list::List;

/// The file that it stands in, in the directory of the network.
const FILE: &str = "cni";

/// The longest memory, in bytes: a list and an answer, with all that is written of them.
const LONGEST: u64 = 4 << 20;

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
        // It is nested deeper than what it was made of, and too deep is not read. Nobody could take back what it says.
        if let Err(error) = serde_json::from_slice::<Memory>(&text) {
            let why =
                format!("what plugins are asked, or answered, could not be read again: {error}");
            return Err(io::Error::other(why));
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
    fn unreadable_network_memory_is_not_saved() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let memory = |of_file, of_answer| Memory {
            list: List::parse(&format!(
                r#"{{"name": "mine", "type": "x", "deep": {}}}"#,
                nested(of_file)
            ))
            .unwrap(),
            path: Vec::new(),
            args: String::new(),
            runtime: Map::new(),
            result: Some(serde_json::from_str(&nested(of_answer)).unwrap()),
        };
        let good = memory(100, 100);
        good.write(dir.as_fd()).unwrap();
        // As deep as can be read by itself.
        for bad in [memory(126, 1), memory(1, 127)] {
            let why = bad.write(dir.as_fd()).unwrap_err().to_string();
            assert!(why.contains("recursion limit"), "{why}");
            assert_eq!(Memory::read(dir.as_fd()).unwrap().as_ref(), Some(&good));
        }
    }
}
