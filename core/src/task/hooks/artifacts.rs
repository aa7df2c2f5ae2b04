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
