//! `volumes`: whether the node has what the task mounts, and links to it for drivers that do not mount.
//! They are made before each start: the task may have removed them, and the volume may lie elsewhere.

use super::TaskHook;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::interpolate::Names;
use crate::op::Failure;
use crate::task::hooks::devices::Devices;
use crate::task::runner::{Scope, TaskRunner};
use crate::task::volumes::{can_mount, links, mounted};
use crate::work::LinkVolumes;

/// The hook.
pub struct Volumes;

impl TaskHook for Volumes {
    fn name(&self) -> &'static str {
        "volumes"
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        match wanted(task, cx, scope) {
            // The next start would find the same: another allocation waits until the volume is there.
            Err(why) => HookStart::Failed(Failure::fatal(why)),
            Ok(work) if work.links.is_empty() => HookStart::Done,
            Ok(work) => task.hook_work(cx, self, work),
        }
    }
}

fn wanted(task: &TaskRunner, cx: &Cx<'_>, scope: Scope<'_>) -> Result<LinkVolumes, String> {
    let (group, of) = (task.spec().group(), task.spec().task());
    let node = &cx.config.node;
    let mounted = mounted(node, group, of, scope.alloc.index)?;
    if mounted.is_empty() || can_mount(&of.driver) {
        return Ok(LinkVolumes::default());
    }
    let env = task.environment(cx, scope, &[&Devices]);
    let names = Names { env: &env, node };
    let links = links(&mounted, &names, &scope.root(cx.config), &of.name)?;
    Ok(LinkVolumes { links })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};
    use crate::model::volume::{HostVolume, VolumeMount, VolumeRequest};
    use crate::paths::task_path::{Base, TaskPath};
    use crate::work::VolumeLink;

    /// A task of this driver that mounts the node's volume there.
    fn world(driver: &str, destination: &str) -> World {
        let mut world = World::with(|task| {
            task.driver = driver.to_owned();
            task.volume_mounts = vec![VolumeMount {
                volume: "v".to_owned(),
                destination: destination.to_owned(),
                ..VolumeMount::default()
            }];
        });
        let request = VolumeRequest {
            source: "data".to_owned(),
            ..VolumeRequest::default()
        };
        world.group().volumes.insert("v".to_owned(), request);
        let volume = HostVolume {
            name: "data".to_owned(),
            path: "/srv/data".to_owned(),
            ..HostVolume::default()
        };
        world
            .config
            .node
            .host_volumes
            .insert("data".to_owned(), volume);
        world
    }

    #[test]
    fn volumes_of_driver_that_does_not_mount_are_links() {
        let mut world = world("raw_exec", "/${NOMAD_GROUP_NAME}/data");
        let mut task = world.task();
        let path = TaskPath {
            base: Base::Task,
            path: "web/data".to_owned(),
        };
        let target = "/srv/data".to_owned();
        let links = vec![VolumeLink { path, target }];
        assert_eq!(
            world.begin(&mut task, &Volumes),
            Began::asks(LinkVolumes { links })
        );
    }

    #[test]
    fn volumes_of_driver_that_mounts_ask_for_nothing() {
        for driver in ["exec", "docker", "plugin"] {
            let mut world = world(driver, "/data");
            let mut task = world.task();
            assert_eq!(world.begin(&mut task, &Volumes), Began::Done, "{driver}");
        }
    }

    #[test]
    fn volume_that_node_lacks_is_refused_for_good_whoever_mounts() {
        for driver in ["raw_exec", "docker"] {
            let mut world = world(driver, "/data");
            world.config.node.host_volumes.clear();
            let mut task = world.task();
            let refused = Began::refuses("the node has no host volume \"data\"");
            assert_eq!(world.begin(&mut task, &Volumes), refused, "{driver}");
        }
    }

    #[test]
    fn volume_in_place_of_tasks_own_directory_is_refused() {
        let mut world = world("raw_exec", "/local");
        let mut task = world.task();
        let refused = Began::refuses("\"/local\" is a directory that each task has already");
        assert_eq!(world.begin(&mut task, &Volumes), refused);
    }

    #[test]
    fn volumes_are_linked_before_each_start_to_where_they_lie_now() {
        let mut world = world("raw_exec", "/data");
        world.group().tasks[0].driver = "mock_driver".to_owned();
        let mut task = world.task();
        assert_eq!(
            world.start_well(&mut task),
            ["make directory", "link the volumes"]
        );
        for volume in world.config.node.host_volumes.values_mut() {
            volume.path = "/mnt/data".to_owned();
        }
        let mut task = world.restarted(&task);
        let Began::Asks(crate::work::HookWork::LinkVolumes(work)) =
            world.begin(&mut task, &Volumes)
        else {
            panic!("the links are left as they are");
        };
        assert_eq!(work.links[0].target, "/mnt/data");
    }
}
