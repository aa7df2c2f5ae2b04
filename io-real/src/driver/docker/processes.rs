//! The processes of a container that a program started, which the engine cannot end.
//!
//! A program of the engine's leads a session of its own. So its processes are those of that session, and those that
//! descend from it or from one of them. They are stopped first, until none is found any more that is not, so that
//! nobody starts another meanwhile; then all are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc_stat::Stat;

/// How often it is looked for more of them.
const ROUNDS: usize = 32;

/// Ends a program of a container by force, and all that it started. `runs` says whether the program itself still
/// does. Blocks.
pub(super) fn end_tree(program: i32, runs: bool, container: &str) {
    if !runs && is_of(container, program) {
        // The program is over, and its number is another's by now.
        return;
    }
    let mut held = BTreeMap::new();
    for _ in 0..ROUNDS {
        let new = descendants(program, &held, container);
        if new.is_empty() {
            break;
        }
        for process in new.values() {
            let _ = pidfd_send_signal(process, Signal::STOP);
        }
        held.extend(new);
    }
    for process in held.values() {
        // One that ended meanwhile is what was wanted.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// The program and its descendants that are not held yet.
fn descendants(
    program: i32,
    held: &BTreeMap<i32, OwnedFd>,
    container: &str,
) -> BTreeMap<i32, OwnedFd> {
    let found = family(program, held.keys().copied(), &all());
    let new = found.into_iter().filter(|pid| !held.contains_key(pid));
    new.filter_map(|pid| Some((pid, open(pid, container)?)))
        .collect()
}

/// Who leads the session `program` or belongs to it, who is `known`, and who descends from one of them.
fn family(
    program: i32,
    known: impl Iterator<Item = i32>,
    all: &BTreeMap<i32, Stat>,
) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let of_session = all.iter().filter(|(_, stat)| stat.session == program);
    let mut next: Vec<i32> = of_session.map(|(pid, _)| *pid).chain(known).collect();
    next.extend(Some(program).filter(|pid| all.contains_key(pid)));
    let mut found = BTreeSet::new();
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// All processes that have not ended.
fn all() -> BTreeMap<i32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = |pid| Some((pid, Stat::of(pid).ok().filter(|stat| !stat.is_zombie)?));
    pids.filter_map(living).collect()
}

/// A handle of a process, if it is one of the container's.
fn open(pid: i32, container: &str) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // The number may have been given to another meanwhile: the handle is its who is looked at here.
    is_of(container, pid).then_some(process)
}

/// Whether a process is in the control group of a container, or below.
fn is_of(container: &str, pid: i32) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
    groups.is_ok_and(|groups| groups.contains(container))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: i32, session: i32) -> Stat {
        Stat {
            is_zombie: false,
            is_stopped: false,
            parent,
            session,
            start_time: 0,
        }
    }

    #[test]
    fn family_is_session_and_descendants() {
        let all = [
            // The container's first process, and what else it has.
            (1, process(0, 1)),
            (2, process(1, 1)),
            // A program, its child, and a grandchild with a session of its own.
            (10, process(0, 10)),
            (11, process(10, 10)),
            (12, process(11, 12)),
            // One whose parent ended, and its child.
            (13, process(1, 10)),
            (14, process(13, 14)),
            // Another program.
            (20, process(0, 20)),
        ]
        .into();
        let of = |program, known: &[i32]| family(program, known.iter().copied(), &all);
        assert_eq!(of(10, &[]), [10, 11, 12, 13, 14].into());
        assert_eq!(of(20, &[]), [20].into());
        // What was found stays found, and leads on, when its own parent is gone.
        assert_eq!(of(99, &[12]), [12].into());
        assert_eq!(of(99, &[]), [].into());
    }
}
