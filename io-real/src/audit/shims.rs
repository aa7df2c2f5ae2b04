//! The processes of this host, and which of them are shims or descend from one.
//!
//! A shim is known by the record that it holds open: the record names the process, with the time of
//! its start. No other process holds such a record, whatever its name is.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use drover_core::host::{Home, NamedAfter};
use drover_core::ids::LaunchId;
use rustix::fs::{AtFlags, statat};

use super::homes::{DELETED, Homes, namespace_of};
use super::{Kind, Thing};
use crate::proc_stat::Stat;
use crate::shim::record::{self, Record};
use crate::shim::{Process, ShimHome};

/// More open files of one process are not looked at: shims have a dozen.
const MOST_FILES: usize = 64;

/// Every process, as it was at one look.
pub(super) struct Processes(BTreeMap<i32, Stat>);

impl Processes {
    pub(super) fn read() -> io::Result<Processes> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // One that ended meanwhile is none.
            if let Ok(stat) = Stat::of(pid) {
                all.insert(pid, stat);
            }
        }
        Ok(Processes(all))
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        self.0.keys().copied()
    }

    /// Which process has this number, unless it ended and only waits to be reaped.
    pub(super) fn find(&self, pid: i32) -> Option<Process> {
        let stat = self.0.get(&pid).filter(|stat| !stat.is_zombie)?;
        let start_time = stat.start_time;
        Some(Process { pid, start_time })
    }

    /// A thing for a process, if it is there.
    pub(super) fn thing(&self, pid: i32, home: Home, named_after: NamedAfter) -> Option<Thing> {
        let process = self.find(pid)?;
        Some(Thing {
            process: Some(process),
            program: program(pid),
            ..Thing::new(Kind::Process, pid.to_string(), home, named_after)
        })
    }

    /// Those of whom each one's parent, or its parent's, and so on, is one of `roots`, each with
    /// what that root stands for; the roots themselves, too.
    pub(super) fn descendants<T: Copy>(&self, roots: &BTreeMap<i32, T>) -> BTreeMap<i32, T> {
        let mut found = roots.clone();
        // Parents may have higher numbers than their children.
        loop {
            let before = found.len();
            for (pid, stat) in &self.0 {
                if let Some(root) = found.get(&stat.parent).copied() {
                    found.entry(*pid).or_insert(root);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }
}

/// A shim that lives.
pub(super) struct Shim {
    pub(super) launch: LaunchId,
    pub(super) home: Home,
    process: Process,
    task: Process,
}

/// Finds every shim of this host that we may look at.
pub(super) fn find(processes: &Processes, own: &ShimHome, homes: &Homes<'_>) -> Vec<Shim> {
    let shim = |pid| {
        let process = processes.find(pid)?;
        let (record, held) = proved(process)?;
        let launch = std::str::from_utf8(&record.launch).ok()?.parse().ok()?;
        Some(Shim {
            launch,
            home: home(&held, launch, pid, own, homes),
            process,
            task: record.task,
        })
    };
    processes.pids().filter_map(shim).collect()
}

/// The processes of these shims: they themselves, and what descends from them. `owner` says of a launch
/// whose it is: those of scripts are the tasks'.
pub(super) fn things(
    processes: &Processes,
    shims: &[Shim],
    owner: impl Fn(LaunchId) -> LaunchId,
) -> Vec<Thing> {
    let roots: BTreeMap<i32, &Shim> = (shims.iter())
        .map(|shim| (shim.process.pid, shim))
        .collect();
    let all = processes.descendants(&roots);
    let thing = |(pid, shim): (&i32, &&Shim)| {
        let named_after = NamedAfter::Launch(owner(shim.launch));
        let thing = processes.thing(*pid, shim.home.clone(), named_after)?;
        let shim_of = roots.contains_key(pid).then_some(shim.task);
        Some(Thing { shim_of, ..thing })
    };
    all.iter().filter_map(thing).collect()
}

/// A record that a process holds open.
struct Held {
    path: PathBuf,
    deleted: bool,
    file: (u64, u64),
}

/// Whether this process is a shim: its record, if so.
fn proved(process: Process) -> Option<(Record, Held)> {
    let pid = process.pid;
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // Only what may be one is looked at closely.
    exe.file_name()?.to_str()?.strip_prefix("shim-")?;
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .take(MOST_FILES)
    {
        let entry = entry.ok()?.path();
        let link = fs::read_link(&entry).ok()?;
        let text = link.to_str().unwrap_or_default();
        let path = Path::new(text.strip_suffix(DELETED).unwrap_or(text));
        if path.extension().is_none_or(|last| last != "r") {
            continue;
        }
        let file = File::open(&entry).ok()?;
        let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
        let held = Held {
            path: path.to_owned(),
            deleted: meta.nlink() == 0,
            file: (meta.dev(), meta.ino()),
        };
        let record = read(&file).filter(|record| record.shim == process);
        if let Some(record) = record {
            // Whose files these were is sure only if it still is the same process.
            let still = Stat::of(pid).ok()?.start_time == process.start_time;
            return still.then_some((record, held));
        }
    }
    None
}

/// Whether a process still is the shim of this launch.
pub(super) fn is_shim_of(process: Process, launch: LaunchId) -> bool {
    let text = launch.to_string();
    proved(process).is_some_and(|(record, _)| record.launch == *text.as_bytes())
}

fn read(file: &File) -> Option<Record> {
    let mut bytes = [0; record::FILE];
    let mut len = 0;
    while let Some(rest) = bytes.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, u64::try_from(len).ok()?) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(_) => return None,
        }
    }
    Record::newest(bytes.get(..len)?)
}

/// Whose a shim is: whose directory has its record.
fn home(held: &Held, launch: LaunchId, pid: i32, own: &ShimHome, homes: &Homes<'_>) -> Home {
    let name = format!("{launch}.r");
    let ours = statat(own.run_dir(), &name, AtFlags::SYMLINK_NOFOLLOW);
    if ours.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == held.file) {
        return Home::Ours;
    }
    let Some(data) = held.path.parent().and_then(Path::parent) else {
        return Home::Unknown;
    };
    let same = |meta: fs::Metadata| (meta.dev(), meta.ino()) == held.file;
    if held.deleted || fs::symlink_metadata(&held.path).is_ok_and(same) {
        return homes.at(data, &namespace_of(pid));
    }
    Home::Unknown
}

/// What a process calls itself.
fn program(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
