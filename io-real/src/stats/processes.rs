//! What single processes use.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use drover_core::stats::sample::{Counters, ProcessId};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::counters::{pids, process_memory, process_stat};
use super::read::Buffer;

/// How many processes of a task are looked at.
pub(crate) const MOST: usize = 256;

/// The kernel's directory of processes.
#[derive(Debug)]
pub(crate) struct Proc(OwnedFd);

impl Proc {
    /// `None`: there is none here.
    pub(crate) fn open() -> Option<Proc> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, "/proc", flags, Mode::empty()).ok().map(Proc)
    }

    /// The counters of a process. `None`: it is gone.
    pub(crate) fn sample(&self, pid: u32, buffer: &mut Buffer) -> Option<(ProcessId, Counters)> {
        let text = buffer.read_at(&self.0, &format!("{pid}/stat"))?;
        let (start, spent) = process_stat(text)?;
        let text = buffer.read_at(&self.0, &format!("{pid}/status"))?;
        let memory = process_memory(text);
        Some(((pid, start), Counters { memory, spent }))
    }

    /// A process and what descends from it: the processes of a task without a group, as far as none
    /// of them ended before its children. Empty if another process has that number now.
    pub(crate) fn tree(&self, root: (i32, u64), buffer: &mut Buffer) -> Vec<u32> {
        let Ok(first) = u32::try_from(root.0) else {
            return Vec::new();
        };
        match self.sample(first, buffer) {
            Some((id, _)) if id.1 == root.1 => {}
            _ => return Vec::new(),
        }
        let mut found = BTreeSet::from([first]);
        let mut next = vec![first];
        while let Some(pid) = next.pop() {
            for child in self.children(pid, buffer) {
                if found.len() < MOST && found.insert(child) {
                    next.push(child);
                }
            }
        }
        found.into_iter().collect()
    }

    /// The children of a process, of all its threads.
    fn children(&self, pid: u32, buffer: &mut Buffer) -> Vec<u32> {
        let path = format!("{pid}/task");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(dir) = openat(&self.0, path.as_str(), flags, Mode::empty()) else {
            return Vec::new();
        };
        let Ok(threads) = rustix::fs::Dir::read_from(&dir) else {
            return Vec::new();
        };
        let mut children = Vec::new();
        for thread in threads.flatten().take(MOST) {
            let Ok(name) = thread.file_name().to_str() else {
                continue;
            };
            let text = buffer.read_at(&dir, &format!("{name}/children"));
            children.extend(pids(text.unwrap_or_default(), MOST));
        }
        children
    }
}
