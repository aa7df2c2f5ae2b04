//! The volumes of a task: what of the node it sees where.
//!
//! Nothing of this is remembered: it follows, at each start, from the job and from what the node has then.
//! So a volume that is not there any more, or may only be read now, is noticed at the next start.
//!
//! `exec`, `docker` and drivers that are plugins are told to mount. The others that come with the agent isolate nothing, and cannot:
//! their tasks get a link where the mount would be, and `NOMAD_VOLUME_<name>` with the path (see
//! [`variables`]). Nothing keeps such a task from writing to a volume that is meant to be read: only the
//! permissions of the host do.

use crate::driver::config::schema_for;
use crate::driver::isolation::isolates;
use crate::interpolate::{self, Names};
use crate::model::device::Mount;
use crate::model::group::TaskGroup;
use crate::model::node::Node;
use crate::model::task::Task;
use crate::model::volume::{HostVolume, VolumeMount, VolumeRequest};
use crate::paths::task_path::{Base, TaskPath};
use crate::text::quote;
use crate::work::VolumeLink;

/// One volume that a task sees.
#[derive(Clone, Copy, Debug)]
pub struct Mounted<'a> {
    /// The node's volume.
    pub volume: &'a HostVolume,
    /// What the group asks for.
    pub request: &'a VolumeRequest,
    /// Where the task sees it.
    pub mount: &'a VolumeMount,
}

impl Mounted<'_> {
    /// Whether the task may only read: everybody on the way may say so.
    pub fn read_only(&self) -> bool {
        self.volume.read_only || self.request.read_only || self.mount.read_only
    }
}

/// Whether a driver mounts what it is given. Those that come with the agent and isolate nothing do not.
pub fn can_mount(driver: &str) -> bool {
    isolates(driver) || schema_for(driver).is_none()
}

/// The volumes of a task of the copy of this index.
///
/// # Errors
/// The first that the node does not have as the group needs it.
pub fn mounted<'a>(
    node: &'a Node,
    group: &'a TaskGroup,
    task: &'a Task,
    index: u32,
) -> Result<Vec<Mounted<'a>>, String> {
    let one = |mount: &'a VolumeMount| {
        let request = group.volumes.get(&mount.volume);
        let request = request.ok_or_else(|| {
            let name = quote(&mount.volume);
            format!("the group has no volume {name}")
        })?;
        let source = request.source_for(index);
        let found = node.host_volumes.get(&*source);
        request
            .accepts(&source, found)
            .map_err(|lack| lack.to_string())?;
        let volume = found.ok_or_else(String::new)?;
        Ok(Mounted {
            volume,
            request,
            mount,
        })
    };
    task.volume_mounts.iter().map(one).collect()
}

/// `NOMAD_VOLUME_<name>` for each volume of a task: where it finds the volume. That is the destination for
/// drivers that mount, else the path on the host. What the node does not have is left out.
pub(super) fn variables(
    node: &Node,
    group: &TaskGroup,
    task: &Task,
    index: u32,
) -> Vec<(String, String)> {
    let mounts = can_mount(&task.driver);
    let pair = |mount: &VolumeMount| {
        let request = group.volumes.get(&mount.volume)?;
        let volume = node.host_volumes.get(&*request.source_for(index))?;
        let path = match mounts {
            true => &mount.destination,
            false => &volume.path,
        };
        Some((format!("NOMAD_VOLUME_{}", mount.volume), path.clone()))
    };
    task.volume_mounts.iter().filter_map(pair).collect()
}

/// What a driver that mounts is told.
pub(super) fn mounts(mounted: &[Mounted<'_>], names: &Names<'_>) -> Vec<Mount> {
    let mount = |one: &Mounted<'_>| Mount {
        host_path: one.volume.path.clone(),
        task_path: interpolate::interpolate(&one.mount.destination, names),
        read_only: one.read_only(),
        propagation_mode: one.mount.propagation_mode.clone(),
        selinux_label: one.mount.selinux_label.clone(),
    };
    mounted.iter().map(mount).collect()
}

/// The links of a task whose driver does not mount.
///
/// # Errors
/// A destination is not in the task's own directory.
pub(super) fn links(
    mounted: &[Mounted<'_>],
    names: &Names<'_>,
    root: &str,
    task: &str,
) -> Result<Vec<VolumeLink>, String> {
    let link = |one: &Mounted<'_>| {
        let destination = interpolate::interpolate(&one.mount.destination, names);
        Ok(VolumeLink {
            path: link_path(&destination, root, task)?,
            target: one.volume.path.clone(),
        })
    };
    mounted.iter().map(link).collect()
}

/// Directories of each task, where no link can be.
const OWN: [&str; 3] = ["local", "secrets", "tmp"];

/// Where the link for a destination goes: into the task's own directory, as if that was the root.
///
/// # Errors
/// It leads elsewhere, or is one of the directories that each task has.
pub(crate) fn link_path(destination: &str, root: &str, task: &str) -> Result<TaskPath, String> {
    let path = TaskPath::of(destination, root, task)?;
    if path.base != Base::Task {
        return Err(format!(
            "{} is not in the task's own directory",
            quote(destination)
        ));
    }
    if OWN.contains(&path.path.as_str()) {
        return Err(format!(
            "{} is a directory that each task has already",
            quote(destination)
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A node with a volume, a group that asks for it, and a task that mounts it.
    fn world() -> (Node, TaskGroup, Task) {
        let (mut node, mut group) = (Node::default(), TaskGroup::default());
        let volume = HostVolume {
            name: "data".to_owned(),
            path: "/srv/data".to_owned(),
            ..HostVolume::default()
        };
        node.host_volumes.insert("data".to_owned(), volume);
        let request = VolumeRequest {
            source: "data".to_owned(),
            ..VolumeRequest::default()
        };
        group.volumes.insert("v".to_owned(), request);
        let mount = VolumeMount {
            volume: "v".to_owned(),
            destination: "/${NOMAD_TASK_NAME}/data".to_owned(),
            propagation_mode: "private".to_owned(),
            ..VolumeMount::default()
        };
        let task = Task {
            volume_mounts: vec![mount],
            ..Task::default()
        };
        (node, group, task)
    }

    #[test]
    fn mount_is_read_only_if_anybody_says_so() {
        for who in ["nobody", "node", "group", "task"] {
            let (mut node, mut group, mut task) = world();
            for volume in node.host_volumes.values_mut() {
                volume.read_only = who == "node";
            }
            for request in group.volumes.values_mut() {
                // Who writes is not accepted where nobody may.
                request.read_only = matches!(who, "node" | "group");
            }
            task.volume_mounts[0].read_only = who == "task";
            let env = BTreeMap::from([("NOMAD_TASK_NAME".to_owned(), "web".to_owned())]);
            let mounted = mounted(&node, &group, &task, 0).unwrap_or_default();
            let names = Names {
                env: &env,
                node: &node,
            };
            let mounts = mounts(&mounted, &names);
            let expected = Mount {
                task_path: "/web/data".to_owned(),
                host_path: "/srv/data".to_owned(),
                read_only: who != "nobody",
                propagation_mode: "private".to_owned(),
                selinux_label: String::new(),
            };
            assert_eq!(mounts, [expected], "{who}");
        }
    }

    #[test]
    fn volume_that_node_lacks_is_named() {
        let (mut node, group, task) = world();
        node.host_volumes.clear();
        let why = mounted(&node, &group, &task, 0).err();
        let expected = "the node has no host volume \"data\"";
        assert_eq!(why.as_deref(), Some(expected));
    }

    #[test]
    fn link_stays_in_task_dir() {
        let of = |text| link_path(text, "/alloc/1", "web").map(|path| path.path);
        for (written, expected) in [
            ("/data", "data"),
            ("/var/lib//db/", "var/lib/db"),
            ("/alloc/1/web/local/data", "local/data"),
            ("/alloc/x", "alloc/x"),
        ] {
            assert_eq!(of(written), Ok(expected.to_owned()), "{written}");
        }
        for bad in [
            "/",
            "/..",
            "../db/x",
            "/alloc/1/alloc/data/x",
            "/tmp",
            "local/../secrets",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
