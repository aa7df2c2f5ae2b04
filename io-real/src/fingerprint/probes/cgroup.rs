//! Control groups: which version limits tasks here, and what it can limit.

use std::collections::BTreeSet;
use std::path::Path;

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use crate::mounts::{self, Mount};

/// Where everybody has them.
const POINT: &str = "/sys/fs/cgroup";

/// What can be limited or counted, by the kernel's names. A version 1 mount says them among its
/// other options.
const CONTROLLERS: &[&str] = &[
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "dmem",
    "freezer",
    "hugetlb",
    "io",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
    "rdma",
];

/// Without these a task cannot be limited, and the version is not told.
const NEEDED: &[&str] = &["cpu", "memory"];

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mounts = context.root.mounts()?;
    let unified = mounts::holding(&mounts, Path::new(POINT))
        .is_some_and(|mount| mount.kind == "cgroup2" && mount.point == Path::new(POINT));
    let reported = if unified {
        context.root.value("sys/fs/cgroup/cgroup.controllers")?
    } else {
        Some(of_version_1(&mounts))
    };
    let reported = reported.unwrap_or_default();
    let controllers: BTreeSet<&str> = reported
        .split_ascii_whitespace()
        .filter(|name| CONTROLLERS.contains(name))
        .collect();
    let mut found = Fingerprint::default();
    if NEEDED.iter().all(|name| controllers.contains(name)) {
        put(
            &mut found,
            "os.cgroups.version",
            if unified { 2 } else { 1 },
        );
        let controllers: Vec<&str> = controllers.into_iter().collect();
        put(&mut found, "os.cgroups.controllers", controllers.join(","));
    }
    Ok(found)
}

/// The options of all version 1 mounts, parted by blanks.
fn of_version_1(mounts: &[Mount]) -> String {
    let mounts = mounts.iter().filter(|mount| mount.kind == "cgroup");
    let options: Vec<&str> = mounts.flat_map(|mount| mount.options.split(',')).collect();
    options.join(" ")
}
