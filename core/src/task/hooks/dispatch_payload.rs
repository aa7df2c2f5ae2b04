//! `dispatch_payload`: what a dispatch brought, as a file of the task.

use super::{Runs, TaskHook};
use crate::config::Config;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::op::Failure;
use crate::paths::task_path::TaskPath;
use crate::task::runner::{Scope, TaskRunner};
use crate::work::WritePayload;

/// The hook.
pub struct DispatchPayload;

impl TaskHook for DispatchPayload {
    fn name(&self) -> &'static str {
        "dispatch_payload"
    }

    fn runs(&self, _config: &Config) -> Runs {
        Runs::Once
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let (job, of) = (task.spec().job(), task.spec().task());
        let Some(wanted) = &of.dispatch_payload else {
            return HookStart::Done;
        };
        if !job.dispatched || job.payload.is_empty() {
            return HookStart::Done;
        }
        match TaskPath::in_local(&wanted.file, &of.name) {
            Err(why) => HookStart::Failed(Failure::fatal(why)),
            Ok(file) => {
                let payload = job.payload.clone();
                task.hook_work(cx, self, WritePayload { file, payload })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};
    use crate::model::dispatch;
    use crate::paths::task_path::Base;

    /// A dispatched job whose task wants its payload in this file.
    fn world(file: &str) -> World {
        let mut world = World::with(|task| {
            task.dispatch_payload = Some(dispatch::DispatchPayload {
                file: file.to_owned(),
            });
        });
        world.job.dispatched = true;
        world.job.payload = "aGVsbG8=".into();
        world
    }

    #[test]
    fn dispatch_payload_is_written_into_local() {
        let mut world = world("in/words.txt");
        let mut task = world.task();
        let work = WritePayload {
            file: TaskPath {
                base: Base::Task,
                path: "local/in/words.txt".to_owned(),
            },
            payload: "aGVsbG8=".into(),
        };
        assert_eq!(world.begin(&mut task, &DispatchPayload), Began::asks(work));
    }

    #[test]
    fn dispatch_payload_that_is_not_wanted_or_not_there_asks_for_nothing() {
        let mut unwanted = world("words.txt");
        unwanted.group().tasks[0].dispatch_payload = None;
        let mut nothing = world("words.txt");
        nothing.job.payload = "".into();
        let mut template = world("words.txt");
        template.job.dispatched = false;
        for mut world in [unwanted, nothing, template] {
            let mut task = world.task();
            assert_eq!(world.begin(&mut task, &DispatchPayload), Began::Done);
        }
    }

    #[test]
    fn dispatch_payload_outside_of_local_is_refused_for_good() {
        let mut world = world("../secrets/words.txt");
        let mut task = world.task();
        let refused = Began::refuses("\"../secrets/words.txt\" is no file below local");
        assert_eq!(world.begin(&mut task, &DispatchPayload), refused);
    }

    #[test]
    fn dispatch_payload_is_written_once_in_a_tasks_life() {
        let mut world = world("words.txt");
        let mut task = world.task();
        assert_eq!(
            world.start_well(&mut task),
            ["make directory", "write the payload"]
        );
        let mut task = world.restarted(&task);
        assert_eq!(world.start_well(&mut task), ["make directory"]);
    }

    #[test]
    fn dispatch_payload_that_could_not_be_written_is_written_at_next_start() {
        let mut world = world("words.txt");
        let mut task = world.task();
        let failed = Err(Failure::recoverable("no space left"));
        world.start_with(&mut task, "write the payload", &failed);
        assert!(!task.has_run(&DispatchPayload));
        let mut task = world.restarted(&task);
        let Began::Asks(work) = world.begin(&mut task, &DispatchPayload) else {
            panic!("it counts as written");
        };
        assert_eq!(work.words(), "write the payload");
    }
}
