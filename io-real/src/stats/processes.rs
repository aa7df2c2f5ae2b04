//! What single processes use.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use drover_core::stats::cpu::Spent;
use drover_core::stats::usage::{Memory, Usage};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::counters::{pids, process_memory, process_stat};
use super::read::Buffer;

/// How many processes of a task are looked at.
pub(super) const MOST: usize = 256;

/// A process: its number and when it started, so that another one of that number is another one.
type Id = (u32, u64);

/// Processes, and what each had worked.
pub(super) type Worked = BTreeMap<Id, Spent>;

/// The kernel's directory of processes.
#[derive(Debug)]
pub(super) struct Proc(OwnedFd);

impl Proc {
    /// `None`: there is none here.
    pub(super) fn open() -> Option<Proc> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, "/proc", flags, Mode::empty()).ok().map(Proc)
    }

    /// What a process worked, and what memory it has. `None`: it is gone.
    pub(super) fn look(&self, pid: u32, buffer: &mut Buffer) -> Option<(Id, Spent, Memory)> {
        let text = buffer.read_at(&self.0, &format!("{pid}/stat"))?;
        let (start, spent) = process_stat(text)?;
        let text = buffer.read_at(&self.0, &format!("{pid}/status"))?;
        Some(((pid, start), spent, process_memory(text)))
    }

    /// A process and what descends from it: the processes of a task without a group, as far as none
    /// of them ended before its children. Empty if another process has that number now.
    pub(super) fn tree(&self, root: (i32, u64), buffer: &mut Buffer) -> Vec<u32> {
        let Ok(first) = u32::try_from(root.0) else {
            return Vec::new();
        };
        match self.look(first, buffer) {
            Some((id, ..)) if id.1 == root.1 => {}
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

/// What processes use: what they worked since `before`, which was so many nanoseconds ago.
pub(super) fn usages(
    seen: &BTreeMap<Id, (Spent, Memory)>,
    before: &Worked,
    elapsed: u64,
    mhz: Option<f64>,
) -> BTreeMap<u32, Usage> {
    let usage = |(id, (spent, memory)): (&Id, &(Spent, Memory))| {
        // One that was not there before began since then.
        let zero = Spent {
            user: Some(0),
            system: Some(0),
            total: Some(0),
            ..Spent::default()
        };
        let cpu = spent.since(before.get(id).unwrap_or(&zero), elapsed, mhz);
        let memory = *memory;
        (id.0, Usage { memory, cpu })
    };
    seen.iter().map(usage).collect()
}
