//! Cores that a task has for itself, and those that all other tasks share.
//!
//! With version 1 a task with cores of its own has a group in `cpuset`; all others are in one group
//! there, [`SHARED`], which has what is left. With version 2 the cores are written to the task's
//! only group, and what is left to those of all others.
//!
//! What is left is found anew from the groups themselves at each change, so that an agent that dies
//! in the middle, and another one that uses the same parent, leave nothing wrong for longer than
//! until the next change. The kernel accepts each step: what is shared shrinks before a task gets
//! cores of it, and grows after their group is gone; no task ever changes its group. So no change
//! waits for long for whoever else makes one: see [`CoreSets::lock`].
//!
//! A container is in groups of its engine's. Its own cores are those of a group of its name, in which
//! nobody is ([`CoreSets::set_aside`]); changes of what it shares with others are notified ([`CoreSets::changes`]).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use rustix::io::Errno;
use tokio::sync::watch;

use super::end::absent_is_fine;
use super::subdirs;
use crate::flock::lock_within;
use crate::ranges;

/// The group of tasks without cores of their own, with version 1. No task has this name.
pub(super) const SHARED: &str = "shared";

/// With version 2: the cores that a group has for itself, as an attribute of its directory.
const OWN: &str = "user.drover.cores";
/// Longer lists are none of ours.
const LONGEST: usize = 4096;

/// How long a change waits for another program's.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The sets of processors below a parent.
#[derive(Clone, Debug)]
pub(super) struct CoreSets {
    parent: PathBuf,
    kind: Kind,
    /// What tasks may use; all that the parent has if nobody said.
    usable: Option<BTreeSet<u32>>,
    /// What is shared, as far as changes were made here.
    changes: Arc<watch::Sender<Shared>>,
    /// Held during a change of this agent's.
    turn: Arc<Mutex<()>>,
}

/// The cores that are shared by all tasks that have none for themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Such as `0-1,4`; empty if it is not known.
    pub cores: String,
    /// Whether these are all that there are.
    pub is_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    V1,
    V2,
}

impl CoreSets {
    /// Those of a version 1 hierarchy; `None` if we may not use it.
    pub(super) fn v1(mount: &Path, parent: &str) -> Option<CoreSets> {
        let dir = mount.join(parent);
        if !super::make_parent(&dir) {
            return None;
        }
        // No task can enter a set before it has processors and memory, nor can one that is inside.
        let mut above = mount.to_owned();
        for part in Path::new(parent) {
            let inner = above.join(part);
            inherit(&inner, &above, &["cpuset.mems", "cpuset.cpus"]).ok()?;
            above = inner;
        }
        Some(CoreSets {
            parent: dir,
            kind: Kind::V1,
            usable: None,
            changes: Arc::default(),
            turn: Arc::default(),
        })
    }

    /// Those of a parent in the tree of version 2; `None` if the machine has no sets.
    pub(super) fn v2(root: &Path, parent: &str) -> Option<CoreSets> {
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
        let has_sets = controllers.split_whitespace().any(|name| name == "cpuset");
        has_sets.then(|| CoreSets {
            parent: root.join(parent),
            kind: Kind::V2,
            usable: None,
            changes: Arc::default(),
            turn: Arc::default(),
        })
    }

    /// Tasks may use these cores, as far as there are such.
    pub(super) fn use_only(&mut self, cores: BTreeSet<u32>) {
        self.usable = Some(cores);
    }

    /// The parent's directory, if it holds groups of tasks that no other hierarchy names.
    pub(super) fn own_dir(&self) -> Option<&PathBuf> {
        (self.kind == Kind::V1).then_some(&self.parent)
    }

    /// Gives a group these cores for itself, or those that are shared if there are none. With version 2 it must be
    /// there.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub(super) fn assign(&self, name: &str, cores: &BTreeSet<u32>) -> io::Result<()> {
        let _lock = self.lock()?;
        let group = self.parent.join(name);
        if cores.is_empty() {
            let shared = self.shared(&self.own()?).cores;
            return match self.kind {
                Kind::V1 => self.share(&self.parent.join(SHARED), &shared),
                Kind::V2 => write(&group.join("cpuset.cpus"), &shared),
            };
        }
        let mut own = self.own()?;
        own.extend(cores);
        self.settle(&own)?;
        if self.kind == Kind::V1 {
            fs::create_dir_all(&group).map_err(|error| named(&group, &error))?;
            inherit(&group, &self.parent, &["cpuset.mems"])?;
        }
        let list = ranges::print(cores.iter().copied());
        write(&group.join("cpuset.cpus"), &list)?;
        if self.kind == Kind::V2 {
            lsetxattr(&group, OWN, list.as_bytes(), XattrFlags::empty())?;
        }
        Ok(())
    }

    /// Keeps these cores for a container: tasks of ours share the others. No task enters the group.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub(super) fn set_aside(&self, name: &str, cores: &BTreeSet<u32>) -> io::Result<()> {
        if self.kind == Kind::V1 {
            return self.assign(name, cores);
        }
        let _lock = self.lock()?;
        let own = self.own()?;
        let group = self.parent.join(name);
        let kept = self.keep(&group, &own, cores);
        if kept.is_err() {
            // All is as it was. What is left of that is found at the next change.
            let _ = fs::remove_dir(&group);
            let _ = self.settle(&own);
        }
        kept
    }

    /// With version 2: makes the group of cores that are set aside.
    fn keep(&self, group: &Path, own: &BTreeSet<u32>, cores: &BTreeSet<u32>) -> io::Result<()> {
        self.settle(&own.union(cores).copied().collect())?;
        fs::create_dir_all(group).map_err(|error| named(group, &error))?;
        let list = ranges::print(cores.iter().copied());
        let kept = lsetxattr(group, OWN, list.as_bytes(), XattrFlags::empty());
        kept.map_err(|errno| named(group, &errno.into()))
    }

    /// What is shared now.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub(super) fn shared_now(&self) -> io::Result<Shared> {
        let _lock = self.lock()?;
        Ok(self.shared(&self.own()?))
    }

    /// What is shared, whenever that was changed by this process.
    pub(super) fn changes(&self) -> watch::Receiver<Shared> {
        self.changes.subscribe()
    }

    /// Where a task of that group enters: its own set or the shared one. With version 2 it is the group itself.
    pub(super) fn entrance(&self, name: &str) -> Option<PathBuf> {
        let parent = self.own_dir()?;
        let own = parent.join(name);
        Some(if own.is_dir() {
            own
        } else {
            parent.join(SHARED)
        })
    }

    /// Whether a group has cores for itself.
    pub(super) fn has_own(&self, name: &str) -> bool {
        !self.cores_of(&self.parent.join(name)).is_empty()
    }

    /// Groups are gone, and their cores can be shared.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub(super) fn share_the_rest(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        self.settle(&self.own()?)
    }

    /// The cores of all groups that have some for themselves.
    fn own(&self) -> io::Result<BTreeSet<u32>> {
        let groups = subdirs(&self.parent)?;
        Ok(groups.iter().flat_map(|dir| self.cores_of(dir)).collect())
    }

    fn cores_of(&self, group: &Path) -> BTreeSet<u32> {
        match self.kind {
            Kind::V1 if group.ends_with(SHARED) => BTreeSet::new(),
            Kind::V1 => ranges::parse(&read(&group.join("cpuset.cpus"))),
            Kind::V2 => {
                let mut bytes = vec![0; LONGEST];
                let len = lgetxattr(group, OWN, bytes.as_mut_slice()).unwrap_or(0);
                ranges::parse(&String::from_utf8_lossy(&bytes[..len]))
            }
        }
    }

    /// What is shared while these cores have owners. If nothing is left it is everything: a task must run somewhere.
    fn shared(&self, own: &BTreeSet<u32>) -> Shared {
        let file = match self.kind {
            Kind::V1 => "cpuset.cpus",
            Kind::V2 => "cpuset.cpus.effective",
        };
        // A parent below which there was no set yet does not say it, but the one above does.
        let parsed = self.parent.ancestors().map(|dir| read(&dir.join(file)));
        let parsed = parsed.map(|text| ranges::parse(&text));
        let all = parsed.filter(|all| !all.is_empty()).take(1).flatten();
        let all: BTreeSet<u32> = all.collect();
        let is_usable = |core: &u32| self.usable.as_ref().is_none_or(|all| all.contains(core));
        let usable: BTreeSet<u32> = all.iter().copied().filter(is_usable).collect();
        let usable = if usable.is_empty() {
            all.clone()
        } else {
            usable
        };
        let left: BTreeSet<u32> = usable.difference(own).copied().collect();
        let shared = if left.is_empty() { usable } else { left };
        Shared {
            is_all: shared == all,
            cores: ranges::print(shared),
        }
    }

    fn settle(&self, own: &BTreeSet<u32>) -> io::Result<()> {
        let shared = self.shared(own);
        match self.kind {
            Kind::V1 => self.share(&self.parent.join(SHARED), &shared.cores)?,
            Kind::V2 => {
                for group in subdirs(&self.parent)? {
                    if self.cores_of(&group).is_empty() {
                        write_if_there(&group.join("cpuset.cpus"), &shared.cores)?;
                    }
                }
            }
        }
        self.changes.send_if_modified(|sent| {
            let is_new = *sent != shared;
            *sent = shared;
            is_new
        });
        Ok(())
    }

    /// The shared group of version 1 has these cores.
    fn share(&self, dir: &Path, cores: &str) -> io::Result<()> {
        fs::create_dir_all(dir).map_err(|error| named(dir, &error))?;
        inherit(dir, &self.parent, &["cpuset.mems"])?;
        if read(&dir.join("cpuset.cpus")).trim() == cores {
            return Ok(());
        }
        write(&dir.join("cpuset.cpus"), cores)
    }

    /// One change at a time, also of several agents. Given back when it is dropped.
    ///
    /// Another program may keep the directory's lock for ever, and no task would start. So that is waited for
    /// only for a while, and then the change is made without it: each step finds things anew, and two changes
    /// at once leave nothing wrong for longer than until the next one.
    fn lock(&self) -> io::Result<Turn<'_>> {
        let ours = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = File::open(&self.parent).map_err(|error| named(&self.parent, &error))?;
        let refused = match lock_within(&dir, LOCK_TIMEOUT) {
            Ok(true) => None,
            Ok(false) => Some(Errno::WOULDBLOCK.into()),
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            let dir = self.parent.display();
            tracing::warn!(%dir, %error, "cores are changed without the lock of their control groups");
        }
        Ok(Turn {
            _ours: ours,
            _others: dir,
        })
    }
}

/// The right to make a change.
struct Turn<'a> {
    _ours: MutexGuard<'a, ()>,
    _others: File,
}

/// A set of version 1 that has none of these yet gets those of the one above.
fn inherit(dir: &Path, above: &Path, files: &[&str]) -> io::Result<()> {
    for file in files {
        if read(&dir.join(file)).trim().is_empty() {
            write(&dir.join(file), read(&above.join(file)).trim())?;
        }
    }
    Ok(())
}

/// What a file says; nothing if it cannot be read, such as that of a group that just went.
fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text).map_err(|error| {
        let message = format!("{}: cannot write {text:?}: {error}", file.display());
        io::Error::new(error.kind(), message)
    })
}

/// Writes to a group's file, unless the group just went, or has no such file: only the kernel makes those.
fn write_if_there(file: &Path, text: &str) -> io::Result<()> {
    let opened = fs::OpenOptions::new().write(true).truncate(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => Ok(()),
        written => absent_is_fine(written).map_err(|error| named(file, &error)),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn parent_of(dir: &Path, files: &[(&str, &str)]) -> PathBuf {
        let parent = dir.join("ours");
        for group in ["", "one", "two", "three"] {
            fs::create_dir(parent.join(group)).unwrap();
        }
        for (file, text) in files {
            fs::write(dir.join(file), text).unwrap();
        }
        parent
    }

    #[test]
    fn cgroup_v2_gives_others_what_is_left() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let files = [
            ("cgroup.controllers", "cpuset cpu memory\n"),
            ("ours/cpuset.cpus.effective", "0-3\n"),
        ];
        let parent = parent_of(dir.path(), &files);
        for group in ["two", "three"] {
            fs::write(parent.join(group).join("cpuset.cpus"), "").unwrap();
        }
        let mut sets = CoreSets::v2(dir.path(), "ours").unwrap();
        if sets.assign("one", &[1].into()).is_err() {
            eprintln!("skipped: a file system without attributes");
            return;
        }
        sets.assign("two", &BTreeSet::new()).unwrap();
        let cores =
            || ["one", "two", "three"].map(|name| read(&parent.join(name).join("cpuset.cpus")));
        assert_eq!(cores(), ["1", "0,2-3", "0,2-3"]);
        assert!(sets.has_own("one") && !sets.has_own("two"));
        sets.assign("three", &[0, 2].into()).unwrap();
        assert_eq!(cores(), ["1", "3", "0,2"]);
        fs::remove_dir_all(parent.join("one")).unwrap();
        sets.share_the_rest().unwrap();
        assert_eq!(cores(), ["", "1,3", "0,2"]);
        sets.use_only([3].into());
        sets.share_the_rest().unwrap();
        assert_eq!(cores(), ["", "3", "0,2"]);
        assert_eq!(sets.entrance("two"), None);
    }

    #[test]
    fn reserved_cores_are_not_shared() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let files = [
            ("cgroup.controllers", "cpuset cpu memory\n"),
            ("ours/cpuset.cpus.effective", "0-3\n"),
        ];
        let parent = parent_of(dir.path(), &files);
        fs::write(parent.join("one/cpuset.cpus"), "").unwrap();
        let sets = CoreSets::v2(dir.path(), "ours").unwrap();
        let mut changes = sets.changes();
        let all = Shared {
            cores: "0-3".to_owned(),
            is_all: true,
        };
        assert_eq!(sets.shared_now().unwrap(), all);
        if sets.set_aside("container", &[1, 2].into()).is_err() {
            eprintln!("skipped: a file system without attributes");
            return;
        }
        let left = Shared {
            cores: "0,3".to_owned(),
            is_all: false,
        };
        assert!(changes.has_changed().unwrap());
        assert_eq!(*changes.borrow_and_update(), left);
        assert_eq!(sets.shared_now().unwrap(), left);
        assert_eq!(read(&parent.join("one/cpuset.cpus")), "0,3");
        // The container itself is in groups of its engine's.
        assert!(!parent.join("container/cpuset.cpus").exists());
        // Nobody but the kernel makes files of a group that has no sets.
        assert!(!parent.join("two/cpuset.cpus").exists());
        fs::remove_dir(parent.join("container")).unwrap();
        sets.share_the_rest().unwrap();
        assert_eq!(*changes.borrow_and_update(), all);
    }

    #[test]
    fn cores_that_cannot_be_set_aside_stay_shared() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let files = [
            ("cgroup.controllers", "cpuset cpu memory\n"),
            ("ours/cpuset.cpus.effective", "0-3\n"),
            ("ours/one/cpuset.cpus", ""),
        ];
        let parent = parent_of(dir.path(), &files);
        // Links have no attributes.
        std::os::unix::fs::symlink(dir.path(), parent.join("container")).unwrap();
        let sets = CoreSets::v2(dir.path(), "ours").unwrap();
        let error = sets.set_aside("container", &[1].into()).unwrap_err();
        assert!(error.to_string().contains("ours/container: "), "{error}");
        assert_eq!(read(&parent.join("one/cpuset.cpus")), "0-3");
        assert_eq!(sets.shared_now().unwrap().cores, "0-3");
    }

    #[test]
    fn machine_without_sets_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("cgroup.controllers", "cpu memory\n")];
        parent_of(dir.path(), &files);
        assert!(CoreSets::v2(dir.path(), "ours").is_none());
    }

    #[test]
    fn everything_is_shared_if_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("cpuset.cpus", "0-1\n"), ("cpuset.mems", "0\n")];
        for (file, text) in files {
            fs::write(dir.path().join(file), text).unwrap();
        }
        let sets = CoreSets::v1(dir.path(), "ours").unwrap();
        let shared = || read(&dir.path().join("ours/shared/cpuset.cpus"));
        sets.assign("one", &[0].into()).unwrap();
        assert_eq!(shared(), "1");
        sets.assign("two", &[1].into()).unwrap();
        assert_eq!(shared(), "0-1");
        assert_eq!(sets.entrance("two"), Some(dir.path().join("ours/two")));
        assert_eq!(sets.entrance("six"), Some(dir.path().join("ours/shared")));
    }
}
