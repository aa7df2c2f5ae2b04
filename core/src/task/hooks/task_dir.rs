//! `task_dir`: the task's directory, and its secrets in memory.
//!
//! A directory that is gone, because the state was restored on another machine or somebody removed it, is made anew,
//! and all that is prepared once is prepared again.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::driver::isolation::{account, has_own_users};
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::device::Reserved;
use crate::model::event::{EventType, TaskEvent};
use crate::op::Op;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::BuildTaskDir;

/// The hook.
pub struct TaskDir;

impl TaskHook for TaskDir {
    fn name(&self) -> &'static str {
        "task_dir"
    }

    fn runs(&self, config: &Config) -> Runs {
        match config.sees_to_task_dirs {
            true => Runs::EachTimeKnown,
            false => Runs::Once,
        }
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let made = task.has_run(self);
        if !made {
            let words = "Building Task Directory";
            let event = TaskEvent::new(EventType::TaskSetup, cx.now.wall, words);
            task.push(cx, event.detail("message", words));
        }
        let of = task.spec().task();
        let work = BuildTaskDir {
            user: account(of).to_owned(),
            secrets_mb: u64::try_from(of.resources.secrets_mb).unwrap_or(0),
            made,
            private: has_own_users(&of.driver),
        };
        task.hook_work(cx, self, work)
    }

    fn done(&self, task: &mut TaskRunner, _cx: &mut Cx<'_>, _op: Op, answer: &HookOutput) {
        task.secrets = answer.secrets.clone();
        if answer.rebuilt {
            // What other hooks prepare once was in it, and they say once more what it needs.
            let record = task.edit();
            record.hooks_done.clear();
            record.reserved = Reserved::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};
    use crate::model::artifact::Artifact;

    fn work(made: bool) -> BuildTaskDir {
        BuildTaskDir {
            user: String::new(),
            secrets_mb: 0,
            made,
            private: false,
        }
    }

    #[test]
    fn task_dir_belongs_to_user_of_task_with_secrets_of_its_size() {
        let mut world = World::with(|task| {
            task.user = "app".to_owned();
            task.resources.secrets_mb = 3;
        });
        let mut task = world.task();
        let asked = BuildTaskDir {
            user: "app".to_owned(),
            secrets_mb: 3,
            ..work(false)
        };
        assert_eq!(world.begin(&mut task, &TaskDir), Began::asks(asked));
    }

    #[test]
    fn task_dir_of_container_is_private_and_nobodys_in_particular() {
        let mut world = World::with(|task| {
            task.driver = "docker".to_owned();
            task.user = "app".to_owned();
        });
        let mut task = world.task();
        let asked = BuildTaskDir {
            private: true,
            ..work(false)
        };
        assert_eq!(world.begin(&mut task, &TaskDir), Began::asks(asked));
    }

    #[test]
    fn task_dir_is_seen_to_before_each_start_and_announced_once() {
        let mut world = World::new();
        let mut task = world.task();
        world.start_well(&mut task);
        let setups = |task: &TaskRunner| {
            let events = task.state().events.iter();
            events
                .filter(|event| event.kind == EventType::TaskSetup)
                .count()
        };
        assert_eq!(setups(&task), 1);
        let mut task = world.restarted(&task);
        assert_eq!(world.begin(&mut task, &TaskDir), Began::asks(work(true)));
        assert_eq!(setups(&task), 1);
    }

    #[test]
    fn task_dir_is_made_once_where_agent_does_not_see_to_it() {
        let mut world = World::new();
        world.config.sees_to_task_dirs = false;
        let mut task = world.task();
        assert_eq!(world.start_well(&mut task), ["make directory"]);
        let mut task = world.restarted(&task);
        assert!(world.start_well(&mut task).is_empty());
    }

    #[test]
    fn rebuilt_task_dir_has_everything_prepared_again() {
        let artifact = Artifact {
            relative_dest: "local".to_owned(),
            ..Artifact::default()
        };
        let mut world = World::with(|task| task.artifacts = vec![artifact]);
        let mut task = world.task();
        assert_eq!(
            world.start_well(&mut task),
            ["make directory", "fetch artifacts"]
        );
        let mut task = world.restarted(&task);
        assert_eq!(world.start_well(&mut task), ["make directory"]);
        let mut task = world.restarted(&task);
        let asked = world.start_in_new_dir(&mut task);
        assert_eq!(asked, ["make directory", "fetch artifacts"]);
    }
}
