//! `artifacts`: files that are fetched for a task, once in its life. What was fetched into secrets that
//! are gone is fetched again.

use super::devices::Devices;
use super::{Runs, TaskHook};
use crate::config::{Config, Timeouts};
use crate::cx::Cx;
use crate::driver::isolation::{account, on_host};
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::interpolate::{self, Names};
use crate::model::artifact::Artifact;
use crate::model::event::EventType;
use crate::op::Op;
use crate::paths::destination;
use crate::task::runner::{Scope, TaskRunner};
use crate::time::Span;
use crate::work::FetchArtifacts;

/// The hook.
pub struct Artifacts;

impl TaskHook for Artifacts {
    fn name(&self) -> &'static str {
        "artifacts"
    }

    fn runs(&self, _config: &Config) -> Runs {
        Runs::Once
    }

    fn timeout(&self, timeouts: &Timeouts) -> Span {
        timeouts.artifacts
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        if task.spec().task().artifacts.is_empty() {
            return HookStart::Done;
        }
        let work = wanted(task, cx, scope);
        let message = "Client is downloading artifacts";
        task.event(cx, EventType::DownloadingArtifacts, message);
        task.hook_work(cx, self, work)
    }

    fn is_lost(&self, task: &TaskRunner, cx: &Cx<'_>, scope: Scope<'_>) -> bool {
        if task.record().secrets == task.secrets {
            return false;
        }
        let FetchArtifacts {
            artifacts, root, ..
        } = wanted(task, cx, scope);
        let task = task.spec().key.task.as_str();
        let secrets = format!("{task}/secrets");
        artifacts.iter().any(|one| {
            let task_path = destination::task_path(&one.relative_dest, task, &root);
            let rest = task_path
                .as_ref()
                .ok()
                .and_then(|it| it.strip_prefix(&secrets));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn done(&self, task: &mut TaskRunner, _cx: &mut Cx<'_>, _op: Op, _answer: &HookOutput) {
        if task.record().secrets != task.secrets {
            let secrets = task.secrets.clone();
            task.edit().secrets = secrets;
        }
    }

    fn failure_event(&self) -> Option<(EventType, &'static str)> {
        Some((EventType::FailedArtifactDownload, "download_error"))
    }
}

/// What is to be fetched, with all references replaced.
fn wanted(task: &TaskRunner, cx: &Cx<'_>, scope: Scope<'_>) -> FetchArtifacts {
    let env = task.environment(cx, scope, &[&Devices]);
    let names = Names {
        env: &env,
        node: &cx.config.node,
    };
    let task = task.spec().task();
    let root = scope.root(cx.config);
    let artifact = |one| {
        let one = interpolate::interpolate_artifact(one, &names);
        let relative_dest = on_host(&task.driver, &root, one.relative_dest);
        Artifact {
            relative_dest,
            ..one
        }
    };
    FetchArtifacts {
        artifacts: task.artifacts.iter().map(artifact).collect(),
        root: root.clone(),
        user: account(task).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World, last_words};
    use crate::op::Failure;
    use crate::work::HookWork;

    /// A task whose artifact goes there.
    fn world(destination: &str) -> World {
        let artifact = Artifact {
            getter_source: "https://example.com/${NOMAD_TASK_NAME}.tar".to_owned(),
            relative_dest: destination.to_owned(),
            ..Artifact::default()
        };
        World::with(|task| {
            task.user = "app".to_owned();
            task.artifacts = vec![artifact];
        })
    }

    #[test]
    fn task_without_artifacts_asks_for_nothing() {
        let mut world = World::new();
        let mut task = world.task();
        assert_eq!(world.begin(&mut task, &Artifacts), Began::Done);
    }

    #[test]
    fn artifacts_are_asked_for_with_references_replaced_and_announced() {
        let mut world = world("local/${NOMAD_GROUP_NAME}");
        let mut task = world.task();
        let Began::Asks(HookWork::FetchArtifacts(work)) = world.begin(&mut task, &Artifacts) else {
            panic!("nothing is fetched");
        };
        let [artifact] = work.artifacts.as_slice() else {
            panic!("{:?}", work.artifacts);
        };
        assert_eq!(artifact.getter_source, "https://example.com/server.tar");
        assert_eq!(artifact.relative_dest, "local/web");
        assert_eq!(work.user, "app");
        assert!(work.root.starts_with("/allocs/"), "{}", work.root);
        assert_eq!(last_words(&task), "Client is downloading artifacts");
    }

    #[test]
    fn artifacts_are_fetched_once_in_a_tasks_life() {
        let mut world = world("local");
        let mut task = world.task();
        assert_eq!(
            world.start_well(&mut task),
            ["make directory", "fetch artifacts"]
        );
        let mut task = world.restarted(&task);
        assert_eq!(world.start_well(&mut task), ["make directory"]);
    }

    #[test]
    fn artifacts_in_secrets_are_fetched_again_where_the_secrets_are_others() {
        for (destination, again) in [("secrets/keys", true), ("secrets-of-mine", false)] {
            let mut world = world(destination);
            let mut task = world.task();
            let secrets = |name: &'static str| {
                move |_: &HookWork| {
                    Ok(HookOutput {
                        secrets: name.to_owned(),
                        ..HookOutput::default()
                    })
                }
            };
            world.start(&mut task, secrets("first"));
            assert!(!world.is_lost(&task, &Artifacts), "they are there");
            let mut task = world.restarted(&task);
            let asked = world.start(&mut task, secrets("first"));
            assert_eq!(asked.len(), 1, "{destination}: {asked:?}");
            let mut task = world.restarted(&task);
            let asked = world.start(&mut task, secrets("after a reboot"));
            assert_eq!(
                asked.len(),
                1 + usize::from(again),
                "{destination}: {asked:?}"
            );
        }
    }

    #[test]
    fn failed_download_has_event_of_its_own() {
        let mut world = world("local");
        let mut task = world.task();
        let failed = Err(Failure::recoverable("404"));
        world.start_with(&mut task, "fetch artifacts", &failed);
        let events = &task.state().events;
        let failed = events
            .iter()
            .find(|it| it.kind == EventType::FailedArtifactDownload);
        let why = failed.and_then(|event| event.details.get("download_error"));
        assert_eq!(why.map(String::as_str), Some("404"));
        assert!(!task.has_run(&Artifacts), "the next start tries again");
    }

    #[test]
    fn artifacts_may_take_longer_than_other_hooks() {
        let timeouts = Timeouts::default();
        assert_eq!(Artifacts.timeout(&timeouts), timeouts.artifacts);
        assert!(timeouts.artifacts > timeouts.hook);
    }
}
