//! Control groups below our parent, and who is in them.

use std::io;

use drover_core::host::{Home, NamedAfter};
use drover_core::ids::LaunchId;

use super::homes::Homes;
use super::shims::{Processes, Shim};
use super::{Kind, Thing};
use crate::cgroup::Cgroups;

/// More members of one group are not listed; they end with it nevertheless.
const MOST: usize = 4096;

/// A launch's group.
pub(super) struct Group {
    launch: LaunchId,
    home: Home,
    members: Vec<i32>,
}

/// Every group that is named as a launch's is. What else is there bears no mark of ours.
pub(super) fn find(cgroups: &Cgroups, homes: &Homes<'_>, shims: &[Shim]) -> io::Result<Vec<Group>> {
    let group = |name: String| {
        let launch = name.parse().ok()?;
        let home = match cgroups.mark_of(&name) {
            Some(mark) => homes.of_mark(&mark),
            None => Home::Unknown,
        };
        let shim = shims.iter().find(|shim| shim.launch == launch);
        Some(Group {
            launch,
            home: shim.map_or(home, |shim| shim.home.clone()),
            // One that goes away while we look has none.
            members: cgroups.members(&name).unwrap_or_default(),
        })
    };
    Ok(cgroups.list()?.into_iter().filter_map(group).collect())
}

/// The groups and their members.
pub(super) fn things(groups: &[Group], processes: &Processes) -> Vec<Thing> {
    let mut things = Vec::new();
    for group in groups {
        let named_after = NamedAfter::Launch(group.launch);
        let members = group.members.iter().take(MOST);
        things.extend(
            members
                .filter_map(|pid| processes.thing(*pid, group.home.clone(), named_after.clone())),
        );
        let (name, home) = (group.launch.to_string(), group.home.clone());
        things.push(Thing::new(Kind::Cgroup, name, home, named_after));
    }
    things
}
