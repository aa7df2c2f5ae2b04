//! Control groups: what limits a task, counts it, and lets all of it be killed.
//!
//! Each task has a group `<parent>/<name>`. Where the kernel has version 1 hierarchies, that is one
//! directory under `cpu`, one under `memory` and one under `pids` (and one under `cpuset`, see [`cores`], and of some under `blkio`, see [`throttle`]); on a *hybrid* system also one in the controller-less
//! version 2 tree, for its `cgroup.kill` and `cgroup.events`. With version 2 alone it is one
//! directory.
//!
//! cgroups-rs makes the groups and writes their limits: it knows the mounts, the controllers and
//! the files of both versions. The rest is plain files, because there it does not serve: its `kill`
//! fails on version 1, its `delete` does not see groups that a task made inside its own, and it
//! does not know hybrid systems.
//!
//! Each group bears a mark that says who made it ([`mark`]): many agents may use one parent.
//!
//! Nothing outside the parent is ever written to, except that version 2 wants the controllers
//! switched on from the root down, and that drivers of Nomad want groups of their own
//! ([`field`]).

mod cores;
mod create;
mod end;
mod limits;
mod mark;
mod moves;
pub mod nomad;
mod swap;
mod throttle;

pub use cores::Shared;
pub use limits::{Limits, weight};
pub use moves::Moves;
pub use throttle::Disk;

use cores::{CoreSets, SHARED};
use throttle::IoSettings;

use cgroups_rs::fs::Controllers;
use cgroups_rs::fs::hierarchies::{self, V1};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use tokio::sync::watch;

use crate::mounts;
use crate::stats::GroupDirs;

/// Which control groups a machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// Version 1 controllers.
    V1,
    /// Version 1 controllers, and a version 2 tree beside them.
    Hybrid,
    /// Version 2.
    V2,
}

/// The control groups below one parent.
#[derive(Clone, Debug)]
pub struct Cgroups {
    version: Version,
    parent: String,
    /// The version 1 hierarchies, read once; none with version 2 alone.
    v1: Option<V1>,
    /// The parent's directories: with version 1 that of each controller.
    controlled: Vec<PathBuf>,
    /// The parent's directory under the controller `pids` of version 1, which may not be there.
    pids: Option<PathBuf>,
    /// The parent's directory under the controller `blkio` of version 1, which may not be there.
    blkio: Option<PathBuf>,
    /// Who has which cores, where the kernel can keep them apart.
    cores: Option<CoreSets>,
    /// How many processes and threads each group may have, unless its own limits say it.
    most_processes: Option<u64>,
    /// Which disk is read and written within limits, if one is known.
    io: Option<IoSettings>,
    /// The parent's directory in the controller-less tree of a hybrid system.
    unified: Option<PathBuf>,
    /// What is written on each group that is made; see [`mark`].
    mark: Option<String>,
}

/// The files of a group: absolute paths, as a shim wants them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Each `cgroup.procs` that a member has to be written to.
    pub procs: Vec<PathBuf>,
    /// The file with the line `oom_kill N`.
    pub oom: Option<PathBuf>,
    /// `cgroup.kill`; Linux 5.14 and later, not on version 1 alone.
    pub kill: Option<PathBuf>,
}

impl Cgroups {
    /// Looks for control groups that we may make groups in, below `parent` (such as `drover`).
    ///
    /// `None`: there are none, or we may not write there (not root, no delegation).
    ///
    /// # Errors
    /// `InvalidInput` if `parent` is not a plain relative path.
    pub fn detect(parent: &str) -> io::Result<Option<Self>> {
        let plain = Path::new(parent)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if parent.is_empty() || !plain {
            return Err(invalid(format!(
                "cgroup parent {parent:?}: must be a relative path"
            )));
        }
        let groups = if hierarchies::is_cgroup2_unified_mode() {
            let root = Path::new(hierarchies::UNIFIED_MOUNTPOINT);
            Self {
                version: Version::V2,
                parent: parent.to_owned(),
                v1: None,
                controlled: vec![root.join(parent)],
                pids: None,
                blkio: None,
                cores: CoreSets::v2(root, parent),
                most_processes: None,
                io: None,
                unified: None,
                mark: None,
            }
        } else {
            let Some(groups) = Self::detect_v1(parent) else {
                return Ok(None);
            };
            groups
        };
        let writable = groups.dirs().all(|dir| make_parent(dir));
        Ok(writable.then_some(groups))
    }

    fn detect_v1(parent: &str) -> Option<Self> {
        let v1 = V1::new();
        let dir = |controller| {
            let (point, _) = v1.get_mount_point(controller)?;
            Some(point.join(parent))
        };
        let controlled = vec![dir(Controllers::Cpu)?, dir(Controllers::Mem)?];
        let pids = dir(Controllers::Pids);
        let blkio = dir(Controllers::BlkIo);
        let sets = v1.get_mount_point(Controllers::CpuSet);
        let cores = sets.and_then(|(mount, _)| CoreSets::v1(&mount, parent));
        let unified = unified_mount().map(|point| point.join(parent));
        let version = if unified.is_some() {
            Version::Hybrid
        } else {
            Version::V1
        };
        Some(Self {
            version,
            parent: parent.to_owned(),
            v1: Some(v1),
            controlled,
            pids,
            blkio,
            cores,
            most_processes: None,
            io: None,
            unified,
            mark: None,
        })
    }

    /// Groups that are made from now on have so many processes and threads at most.
    #[must_use]
    pub fn with_most_processes(mut self, most: Option<u64>) -> Cgroups {
        self.most_processes = most;
        self
    }

    /// Tasks may use the cores that this process may use, less these.
    #[must_use]
    pub fn reserving(mut self, reserved: &BTreeSet<u32>) -> Cgroups {
        let own = sched_getaffinity(None).ok();
        if let (Some(cores), Some(own)) = (&mut self.cores, own) {
            let number = |core: usize| u32::try_from(core).ok();
            let allowed = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core));
            let usable = allowed.filter_map(number);
            cores.use_only(usable.filter(|core| !reserved.contains(core)).collect());
        }
        self
    }

    /// What was interrupted is put right: cores that nobody has for itself any more are shared.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub fn share_cores(&self) -> io::Result<()> {
        self.cores.as_ref().map_or(Ok(()), CoreSets::share_the_rest)
    }

    /// Keeps cores for a container, which is in groups of its engine's: no other task gets them, until
    /// [`Cgroups::give_back`].
    ///
    /// # Errors
    /// `InvalidInput`: not a name. Others: what the kernel says to which file.
    pub fn set_aside(&self, name: &str, cores: &BTreeSet<u32>) -> io::Result<()> {
        check(name)?;
        if let Some(sets) = &self.cores {
            sets.set_aside(name, cores)?;
            self.put_mark(name);
        }
        Ok(())
    }

    /// Lets all tasks share what was set aside under a name, as far as it was. Nothing happens if nothing was.
    ///
    /// # Errors
    /// As [`Cgroups::remove`].
    pub fn give_back(&self, name: &str) -> io::Result<()> {
        // A group that was only half made has no cores yet, and is to go as well.
        let is_there = self.group_dirs(name)?.iter().any(|dir| dir.exists());
        match is_there {
            true => self.remove_dirs(name).and_then(|()| self.share_cores()),
            false => Ok(()),
        }
    }

    /// The cores that tasks share which have none for themselves. None where cores cannot be kept apart.
    ///
    /// # Errors
    /// What the kernel says to which file.
    pub fn shared_cores(&self) -> io::Result<Option<Shared>> {
        self.cores.as_ref().map(CoreSets::shared_now).transpose()
    }

    /// What they are, whenever this agent changed that. None where cores cannot be kept apart.
    pub fn shared_cores_changes(&self) -> Option<watch::Receiver<Shared>> {
        self.cores.as_ref().map(CoreSets::changes)
    }

    fn has_own_cores(&self, name: &str) -> bool {
        check(name).is_ok() && self.cores.as_ref().is_some_and(|cores| cores.has_own(name))
    }

    /// What the machine has.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Names of all groups below the parent, sorted: for audits.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for dir in self.dirs() {
            match subdirs(dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => names.extend(found?.iter().filter_map(|path| {
                    path.file_name()
                        .and_then(|name| name.to_str())
                        .map(str::to_owned)
                })),
            }
        }
        names.retain(|name| name != SHARED);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// All directories of the parent.
    fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        let sets = self.cores.as_ref().and_then(CoreSets::own_dir);
        let all = self.controlled.iter().chain(&self.pids);
        all.chain(&self.blkio).chain(&self.unified).chain(sets)
    }

    /// All directories of a group, there or not.
    fn group_dirs(&self, name: &str) -> io::Result<Vec<PathBuf>> {
        check(name)?;
        Ok(self.dirs().map(|dir| dir.join(name)).collect())
    }

    /// Where a group is counted, there or not.
    ///
    /// # Errors
    /// `InvalidInput`: not a name.
    pub fn counted(&self, name: &str) -> io::Result<GroupDirs> {
        check(name)?;
        let own = |dir: &PathBuf| dir.join(name);
        Ok(match self.controlled.as_slice() {
            [cpu, memory] => GroupDirs::V1 {
                cpu: own(cpu),
                cpuacct: None,
                memory: own(memory),
                unified: self.unified.as_ref().map(own),
            },
            dirs => GroupDirs::V2(dirs.iter().map(own).collect()),
        })
    }

    /// How many bytes of memory a group may use, and how many it used at most: if it has a limit, and its kernel
    /// says that.
    pub fn memory_marks(&self, name: &str) -> Option<(u64, u64)> {
        check(name).ok()?;
        let dir = self.controlled.last()?.join(name);
        let number = |names: [&str; 2]| {
            let mut texts = names.iter().map(|name| fs::read_to_string(dir.join(name)));
            texts.find_map(|text| text.ok()?.trim().parse::<u64>().ok())
        };
        let limit = number(["memory.limit_in_bytes", "memory.max"])?;
        let most = number(["memory.max_usage_in_bytes", "memory.peak"])?;
        Some((limit, most))
    }

    /// The group's directory in a version 2 tree, if there is such a tree.
    fn v2_dir(&self, name: &str) -> Option<PathBuf> {
        let parent = match self.version {
            Version::V2 => self.controlled.first(),
            Version::Hybrid | Version::V1 => self.unified.as_ref(),
        };
        parent.map(|parent| parent.join(name))
    }
}

/// Makes a parent's directory. True if we may make groups in it: another user's agent may have left
/// one in which we may not.
fn make_parent(dir: &Path) -> bool {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    let is_ours =
        fs::create_dir_all(dir).is_ok() && accessat(CWD, dir, access, AtFlags::EACCESS).is_ok();
    if is_ours && let Err(error) = close_to_others(dir) {
        tracing::warn!(dir = %dir.display(), %error, "everybody can lock a directory of control groups");
    }
    is_ours
}

/// Nobody reads the directory who may not make groups in it: whoever can open it can lock it. What is inside is
/// reached by its name as before.
fn close_to_others(dir: &Path) -> io::Result<()> {
    let now = fs::metadata(dir)?.permissions().mode() & 0o7777;
    let read_only: [(u32, u32); 2] = [(0o040, 0o020), (0o004, 0o002)];
    let wanted = read_only.iter().fold(now, |mode, (read, write)| {
        if mode & write == 0 {
            mode & !read
        } else {
            mode
        }
    });
    match wanted == now {
        true => Ok(()),
        false => fs::set_permissions(dir, fs::Permissions::from_mode(wanted)),
    }
}

/// Where the version 2 tree is mounted. cgroups-rs lists version 1 mounts only.
fn unified_mount() -> Option<PathBuf> {
    let mut mounts = mounts::here().ok()?.into_iter();
    let unified = mounts.find(|mount| mount.kind == "cgroup2");
    unified.map(|mount| mount.point)
}

/// A group's name must be one plain component, so that it cannot lead out of the parent.
fn check(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    let plain = matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    );
    // A file of the parent's own must not be taken for a group.
    let free = !name.contains('/') && !name.starts_with("cgroup.") && name != SHARED;
    if plain && free && name.len() <= 255 {
        Ok(())
    } else {
        Err(invalid(format!("cgroup name {name:?}: not a name")))
    }
}

fn subdirs(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
