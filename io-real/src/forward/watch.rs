//! Changes in many directories of logs, notified by the kernel through one descriptor. Where tasks of the same user took
//! all that there are, nothing is notified.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;

use drover_core::ids::AllocId;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe;

use crate::safe_open::own_path;

/// The kernel had more to tell than it kept.
const OVERFLOW: u32 = 0x4000;
/// The watch is gone, with its directory.
const IGNORED: u32 = 0x8000;
/// How long what stands before a name is.
const HEAD: usize = 16;

#[derive(Debug)]
pub(super) struct Watch {
    /// None if the kernel tells nothing.
    events: Option<pipe::Receiver>,
    allocs: BTreeMap<i32, AllocId>,
    numbers: BTreeMap<AllocId, i32>,
}

/// Where something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// In these allocations' logs.
    In(BTreeSet<AllocId>),
    /// Nobody knows.
    Anywhere,
}

impl Watch {
    pub(super) fn new() -> Watch {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        // Reading is all that is done to it, and in that it is as good as a pipe.
        let events = events
            .map_err(io::Error::from)
            .and_then(|events| pipe::Receiver::from_file_unchecked(events.into()));
        Watch {
            events: events.ok(),
            allocs: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Watches the directory of an allocation's logs, if it is not watched yet.
    pub(super) fn add(&mut self, alloc: AllocId, dir: impl AsFd) -> io::Result<()> {
        if self.numbers.contains_key(&alloc) {
            return Ok(());
        }
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let none = || io::Error::other("the kernel watches no more files for this user");
        let events = self.events.as_ref().ok_or_else(none)?;
        let number = inotify::add_watch(events, own_path(dir), changes)?;
        self.allocs.insert(number, alloc);
        self.numbers.insert(alloc, number);
        Ok(())
    }

    pub(super) fn remove(&mut self, alloc: AllocId) {
        if let Some(number) = self.numbers.remove(&alloc) {
            self.allocs.remove(&number);
            // Gone already, if the directory is.
            let events = self.events.as_ref();
            let _ = events.map(|events| inotify::remove_watch(events, number));
        }
    }

    /// Waits for changes.
    pub(super) async fn changed(&mut self) -> io::Result<Changed> {
        let Some(events) = &self.events else {
            return std::future::pending().await;
        };
        events.readable().await?;
        let mut found = BTreeSet::new();
        let mut buffer = [0; 8192];
        // Not for ever: who writes without pause keeps telling.
        for _ in 0..16 {
            let count = match events.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let mut left = buffer.get(..count).unwrap_or_default();
            while let Some((number, mask, rest)) = next(left) {
                left = rest;
                if mask & OVERFLOW != 0 {
                    return Ok(Changed::Anywhere);
                }
                if mask & IGNORED != 0 {
                    continue;
                }
                found.extend(self.allocs.get(&number));
            }
        }
        Ok(Changed::In(found))
    }
}

/// The first event: the number of its watch, and what happened.
fn next(bytes: &[u8]) -> Option<(i32, u32, &[u8])> {
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok();
    let number = i32::from_ne_bytes(word(0)?);
    let mask = u32::from_ne_bytes(word(4)?);
    let length = usize::try_from(u32::from_ne_bytes(word(12)?)).ok()?;
    Some((number, mask, bytes.get(HEAD + length..)?))
}
