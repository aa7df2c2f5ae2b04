//! Where what a container uses is measured: in its control group, as for every other task. The engine is not asked.

use std::fs;
use std::path::{Path, PathBuf};

use bollard::models::ContainerInspectResponse;
use cgroups_rs::fs::Controllers;
use cgroups_rs::fs::hierarchies::{self, V1};

use crate::stats::{GroupDirs, StatsSource};

/// Where a container is measured that runs; none if that is not known.
pub(super) fn source(found: &ContainerInspectResponse) -> Option<StatsSource> {
    let pid = found
        .state
        .as_ref()?
        .pid
        .and_then(|pid| i32::try_from(pid).ok())?;
    if pid <= 0 {
        return None;
    }
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    // The number may be another's by now, and then the group is not that of this container.
    let id = found.id.as_deref()?;
    groups.contains(id).then(|| StatsSource {
        group: dirs(&groups),
        process: None,
    })
}

/// How many bytes of memory a container used at most; none if its group is gone, or its kernel does not say that.
pub(super) fn most_memory(source: &StatsSource) -> Option<u64> {
    let file = match source.group.as_ref()? {
        GroupDirs::V2(dir) => dir.join("memory.peak"),
        GroupDirs::V1 { memory, .. } => memory.join("memory.max_usage_in_bytes"),
    };
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn dirs(groups: &str) -> Option<GroupDirs> {
    if hierarchies::is_cgroup2_unified_mode() {
        let root = PathBuf::from(hierarchies::UNIFIED_MOUNTPOINT);
        return Some(GroupDirs::V2(below(&root, path_of(groups, "")?)));
    }
    let v1 = V1::new();
    let own = |controller, name| {
        let (root, _) = v1.get_mount_point(controller)?;
        Some(below(&root, path_of(groups, name)?))
    };
    Some(GroupDirs::V1 {
        cpu: own(Controllers::Cpu, "cpu")?,
        cpuacct: own(Controllers::CpuAcct, "cpuacct"),
        memory: own(Controllers::Mem, "memory")?,
        unified: None,
    })
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// The path of a process in the tree of a controller, from `/proc/<pid>/cgroup`; the empty name is version 2.
fn path_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        names
            .split(',')
            .any(|name| name == controller)
            .then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn group_of_a_controller_is_found() {
        let groups = "9:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/system.slice/x:y\n";
        assert_eq!(path_of(groups, "cpu"), Some("/docker/ab"));
        assert_eq!(path_of(groups, "memory"), Some("/docker/ab"));
        assert_eq!(path_of(groups, ""), Some("/system.slice/x:y"));
        assert_eq!(path_of(groups, "pids"), None);
    }
}
