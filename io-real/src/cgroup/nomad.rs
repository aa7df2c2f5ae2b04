//! The groups that drivers of Nomad's plugins expect to find: their helpers put tasks below these,
//! and do not make them, because Nomad's client does that when it starts. No other code here makes
//! groups named `nomad`.
//!
//! With version 1 they are `nomad` under `freezer`, `memory`, `cpu` and `cpuset`, with `share` and
//! `reserve` in the last; with version 2 `nomad.slice` with `share.slice` and `reserve.slice`. They
//! are made when a driver that is a plugin is asked for its first task: a machine without such
//! drivers never sees them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cgroups_rs::fs::Controllers;
use cgroups_rs::fs::hierarchies::{self, V1};

/// The controllers of version 2 that are switched on for tasks.
const CONTROLLERS: [&str; 5] = ["cpuset", "cpu", "io", "memory", "pids"];

/// Where a machine has its control groups.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The mount point of each controller of version 1 that these drivers use.
    V1 {
        /// Those that need no more than a directory.
        plain: Vec<PathBuf>,
        /// `cpuset`.
        cpuset: Option<PathBuf>,
    },
    /// The mount point of version 2.
    V2(PathBuf),
}

impl Roots {
    /// What this machine has.
    pub fn detect() -> Roots {
        if hierarchies::is_cgroup2_unified_mode() {
            return Roots::V2(PathBuf::from(hierarchies::UNIFIED_MOUNTPOINT));
        }
        let v1 = V1::new();
        let point = |controller| v1.get_mount_point(controller).map(|(point, _)| point);
        let plain = [Controllers::Freezer, Controllers::Mem, Controllers::Cpu];
        Roots::V1 {
            plain: plain.into_iter().filter_map(point).collect(),
            cpuset: point(Controllers::CpuSet),
        }
    }

    /// Makes the groups, or finds them as they are: who made them before knows why.
    ///
    /// # Errors
    /// What cannot be made or written, by its path.
    pub fn make(&self) -> io::Result<()> {
        match self {
            Roots::V1 { plain, cpuset } => {
                for root in plain {
                    make_dir(&root.join("nomad"))?;
                }
                cpuset.as_deref().map_or(Ok(()), make_cpusets)
            }
            Roots::V2(root) => make_slices(root),
        }
    }
}

/// No task can enter a `cpuset` before it has processors and memory.
fn make_cpusets(root: &Path) -> io::Result<()> {
    let parent = root.join("nomad");
    for group in [parent.clone(), parent.join("share"), parent.join("reserve")] {
        make_dir(&group)?;
        // The processors of `reserve` are those that somebody reserved: none so far.
        let reserve = group.ends_with("reserve");
        let files: &[&str] = match reserve {
            true => &["cpuset.mems"],
            false => &["cpuset.mems", "cpuset.cpus"],
        };
        for file in files {
            if read(&group.join(file))?.is_empty() {
                write(&group.join(file), &read(&root.join(file))?)?;
            }
        }
    }
    Ok(())
}

fn make_slices(root: &Path) -> io::Result<()> {
    let parent = root.join("nomad.slice");
    switch_on(root)?;
    for group in [
        parent.clone(),
        parent.join("share.slice"),
        parent.join("reserve.slice"),
    ] {
        make_dir(&group)?;
        switch_on(&group)?;
    }
    Ok(())
}

/// Gives the groups below this one the controllers that it has itself.
fn switch_on(group: &Path) -> io::Result<()> {
    let file = group.join("cgroup.subtree_control");
    let (has, on) = (read(&group.join("cgroup.controllers"))?, read(&file)?);
    let listed = |list: &str, name: &str| list.split(' ').any(|word| word == name);
    for name in CONTROLLERS {
        if listed(&has, name) && !listed(&on, name) {
            write(&file, &format!("+{name}"))?;
        }
    }
    Ok(())
}

fn make_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir).map_err(|error| named(dir, &error))
}

/// What a file says; nothing if there is none.
fn read(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => Ok(text.map_err(|error| named(file, &error))?.trim().to_owned()),
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text).map_err(|error| named(file, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v1_gets_cpu_and_memory_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for controller in ["freezer", "memory", "cpu", "cpuset"] {
            fs::create_dir(at(controller)).unwrap();
        }
        fs::write(at("cpuset/cpuset.mems"), "0\n").unwrap();
        fs::write(at("cpuset/cpuset.cpus"), "0-3\n").unwrap();
        let roots = Roots::V1 {
            plain: vec![at("freezer"), at("memory"), at("cpu")],
            cpuset: Some(at("cpuset")),
        };
        roots.make().unwrap();
        for controller in ["freezer", "memory", "cpu"] {
            assert!(at(controller).join("nomad").is_dir());
        }
        let reported = |path: &str| fs::read_to_string(at("cpuset/nomad").join(path)).ok();
        assert_eq!(reported("cpuset.cpus").unwrap(), "0-3");
        assert_eq!(reported("share/cpuset.cpus").unwrap(), "0-3");
        assert_eq!(reported("reserve/cpuset.mems").unwrap(), "0");
        assert_eq!(reported("reserve/cpuset.cpus"), None);
        // What somebody chose stays.
        fs::write(at("cpuset/nomad/share/cpuset.cpus"), "1").unwrap();
        roots.make().unwrap();
        assert_eq!(reported("share/cpuset.cpus").unwrap(), "1");
    }

    #[test]
    fn cgroup_v2_gets_available_controllers() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::write(at("cgroup.controllers"), "cpu hugetlb memory\n").unwrap();
        fs::write(at("cgroup.subtree_control"), "cpu\n").unwrap();
        Roots::V2(dir.path().to_owned()).make().unwrap();
        assert!(at("nomad.slice/reserve.slice").is_dir());
        assert!(at("nomad.slice/share.slice").is_dir());
        let on = fs::read_to_string(at("cgroup.subtree_control")).unwrap();
        assert_eq!(on, "+memory");
    }

    #[test]
    fn cgroup_obstacle_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("nomad"), "").unwrap();
        let plain = vec![dir.path().to_owned()];
        let error = Roots::V1 {
            plain,
            cpuset: None,
        }
        .make()
        .unwrap_err();
        assert!(error.to_string().contains("/nomad: "), "{error}");
    }
}
