//! Moves of processes that do not wait for the kernel.
//!
//! Before the kernel moves a process to another group it waits until each processor has passed a point at which it
//! looks at no group (a *grace period* of RCU), some 10 ms; all moves within as much time after one wait no more. A
//! task's start moves two processes, one after the other. So while its directories are made the kernel is made to wait
//! already, by a move that changes nothing: of this process into the group in which it is.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cgroups, Version};

/// Prepares moves. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub struct Moves(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Where the hierarchy is mounted whose groups are asked: any does.
    mount: PathBuf,
    /// Its controller; empty for version 2.
    controller: &'static str,
    /// Somebody prepares.
    under_way: AtomicBool,
}

impl Moves {
    /// What prepares moves to groups like these; none where that is not known.
    pub fn to(groups: &Cgroups) -> Option<Moves> {
        let parent = match groups.version {
            Version::V2 => groups.controlled.first(),
            Version::Hybrid => groups.unified.as_ref(),
            Version::V1 => groups.controlled.last(),
        };
        let controller = match groups.version {
            Version::V1 => "memory",
            Version::V2 | Version::Hybrid => "",
        };
        let depth = Path::new(&groups.parent).components().count();
        let mount = parent?.ancestors().nth(depth)?.to_owned();
        Some(Moves(Arc::new(Inner {
            mount,
            controller,
            under_way: AtomicBool::new(false),
        })))
    }

    /// Has moves that follow soon not wait. Takes as long as one that waits, unless somebody does it already.
    ///
    /// # Errors
    /// What the kernel says to which file: moves wait then, which harms nobody.
    pub fn prepare(&self) -> io::Result<()> {
        if self.0.under_way.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let moved = self.stay();
        self.0.under_way.store(false, Ordering::Release);
        moved
    }

    /// Moves this process to where it is.
    fn stay(&self) -> io::Result<()> {
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        let own = own_group(&memberships, self.0.controller)
            .ok_or_else(|| io::Error::other("no group of this process in that hierarchy"))?;
        let procs = self.0.mount.join(own).join("cgroup.procs");
        let mut procs = OpenOptions::new().write(true).open(procs)?;
        procs.write_all(b"0")
    }
}

/// The group's path in the hierarchy of a controller, or in that of version 2, without the first slash.
fn own_group<'a>(memberships: &'a str, controller: &str) -> Option<&'a str> {
    memberships.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = controllers.split(',').any(|one| one == controller);
        // What lies above a namespace's root has a name that leads out of it, and is not seen from here.
        is_it
            .then(|| path.strip_prefix('/'))?
            .filter(|path| !path.starts_with(".."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str =
        "9:name=systemd:/init\n4:cpu,memory:/jobs/one\n1:cpuset:/\n0::/system/agent\n";

    #[test]
    fn own_group_is_that_of_the_hierarchy_asked_for() {
        assert_eq!(own_group(HYBRID, "memory"), Some("jobs/one"));
        assert_eq!(own_group(HYBRID, "cpuset"), Some(""));
        assert_eq!(own_group(HYBRID, ""), Some("system/agent"));
        assert_eq!(own_group(HYBRID, "pids"), None);
    }

    #[test]
    fn own_group_outside_of_a_namespace_is_unknown() {
        assert_eq!(own_group("0::/../other\n", ""), None);
    }
}
