//! `devices`: what the task needs in order to use its devices.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::Reserve;

/// The hook.
pub struct Devices;

impl TaskHook for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    fn runs(&self, _config: &Config) -> Runs {
        Runs::Once
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        let name = task.spec().task().name.as_str();
        let of_alloc = scope.alloc.devices.iter();
        let devices: Vec<_> = of_alloc.filter(|one| one.task == name).cloned().collect();
        if devices.is_empty() {
            return HookStart::Done;
        }
        task.hook_work(cx, self, Reserve { devices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World, last_words};
    use crate::input::HookOutput;
    use crate::model::device::{AssignedDevices, DeviceNode};

    fn held_by(task: &str, id: &str) -> AssignedDevices {
        AssignedDevices {
            task: task.to_owned(),
            plugin: "nvidia".to_owned(),
            ids: vec![id.to_owned()],
            ..AssignedDevices::default()
        }
    }

    fn node() -> DeviceNode {
        DeviceNode {
            task_path: "/dev/gpu1".to_owned(),
            host_path: "/dev/gpu1".to_owned(),
            permissions: "rw".to_owned(),
        }
    }

    fn world(devices: Vec<AssignedDevices>) -> World {
        let mut world = World::new();
        world.record.devices = devices;
        world
    }

    #[test]
    fn devices_are_those_of_the_task_alone() {
        let mut world = world(vec![held_by("other", "gpu0"), held_by("server", "gpu1")]);
        let mut task = world.task();
        let devices = vec![held_by("server", "gpu1")];
        assert_eq!(
            world.begin(&mut task, &Devices),
            Began::asks(Reserve { devices })
        );
    }

    #[test]
    fn task_without_devices_asks_no_plugin() {
        for held in [Vec::new(), vec![held_by("other", "gpu0")]] {
            let mut world = world(held);
            let mut task = world.task();
            assert_eq!(world.begin(&mut task, &Devices), Began::Done);
        }
    }

    #[test]
    fn devices_are_reserved_once_and_what_they_need_is_kept() {
        let mut world = world(vec![held_by("server", "gpu1")]);
        let mut task = world.task();
        let given = HookOutput {
            env: [("GPU".to_owned(), "1".to_owned())].into(),
            nodes: vec![node()],
            ..HookOutput::default()
        };
        world.start_with(&mut task, "reserve devices", &Ok(given.clone()));
        let mut task = world.restarted(&task);
        assert_eq!(world.start_well(&mut task), ["make directory"]);
        assert_eq!(task.record().reserved.nodes, [node()]);
        assert_eq!(task.record().hooks_done.get("devices"), Some(&given.env));
    }

    #[test]
    fn devices_of_rebuilt_task_dir_are_reserved_anew() {
        let mut world = world(vec![held_by("server", "gpu1")]);
        let mut task = world.task();
        let given = HookOutput {
            nodes: vec![node()],
            ..HookOutput::default()
        };
        world.start_with(&mut task, "reserve devices", &Ok(given));
        let mut task = world.restarted(&task);
        // The plugin is asked once more, and says that it needs nothing this time.
        let asked = world.start_in_new_dir(&mut task);
        assert_eq!(asked, ["make directory", "reserve devices"]);
        assert_eq!(task.record().reserved.nodes, []);
    }

    #[test]
    fn reservation_that_cannot_be_fails_the_start() {
        let mut world = world(vec![held_by("server", "gpu1")]);
        let mut task = world.task();
        let given = HookOutput {
            env: [("A=B".to_owned(), String::new())].into(),
            ..HookOutput::default()
        };
        world.start_with(&mut task, "reserve devices", &Ok(given));
        assert!(!task.has_run(&Devices), "{}", last_words(&task));
        assert_eq!(task.record().launch, None);
    }
}
