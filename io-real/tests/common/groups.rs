//! Control groups of a test's own.

use drover_io_real::cgroup::{Cgroups, Group, Limits};
use std::fs;
use std::time::Duration;

pub const SOON: Duration = Duration::from_secs(30);

/// Groups below a parent of this test's own, which is removed however the test ends.
pub struct Groups {
    pub groups: Cgroups,
    pub parent: String,
}

impl Groups {
    pub fn new(test: &str) -> Option<Self> {
        let parent = format!("drover-test-{}-{test}", std::process::id());
        let Some(groups) = Cgroups::detect(&parent).unwrap() else {
            eprintln!("skipped: no control groups that may be written to");
            return None;
        };
        Some(Self { groups, parent })
    }

    pub fn create(&self, name: &str, limits: &Limits) -> Group {
        self.groups.create(name, limits).unwrap()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for name in self.groups.list().unwrap_or_default() {
            let _ = self.groups.kill(&name, SOON);
            let _ = self.groups.remove(&name);
        }
        let _ = fs::remove_dir(format!("/sys/fs/cgroup/cpuset/{}/shared", self.parent));
        for tree in ["cpuset", "", "cpu", "memory", "pids", "blkio", "unified"] {
            let _ = fs::remove_dir(format!("/sys/fs/cgroup/{tree}/{}", self.parent));
        }
    }
}
