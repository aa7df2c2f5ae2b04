//! `template`: files and variables that are rendered before each start, unless they are rendered and watched
//! already. What follows from a change while the task runs is in `task/templates.rs`.

use std::sync::Arc;

use super::TaskHook;
use super::devices::Devices;
use crate::cx::Cx;
use crate::driver::isolation::{isolates, on_host};
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::interpolate::{Names, interpolate};
use crate::model;
use crate::model::task::Task;
use crate::model::variable::Reads;
use crate::op::{Failure, Op};
use crate::operations::Purpose;
use crate::paths::task_path::TaskPath;
use crate::task::runner::{Scope, TaskRunner};
use crate::text::quote;
use crate::work::{Rendering, TemplateSource, TemplateWork};

/// How many variables templates may give.
const MAX_VARIABLES: usize = 4096;
/// How many bytes they may have together.
const MAX_BYTES: usize = 1 << 20;

/// The hook.
pub struct Template;

impl TaskHook for Template {
    fn name(&self) -> &'static str {
        "template"
    }

    fn purpose(&self) -> Purpose {
        Purpose::Templates
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        if task.spec().task().templates.is_empty() || task.watches_templates() {
            return HookStart::Done;
        }
        task.stop_watching(cx);
        match rendering(task, cx, scope, false) {
            Ok(work) => task.hook_work(cx, self, work),
            Err(why) => HookStart::Failed(Failure::fatal(why)),
        }
    }

    fn check(&self, answer: &HookOutput) -> Result<(), String> {
        check(answer)
    }

    fn done(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, op: Op, answer: &HookOutput) {
        task.templates_rendered(cx, op, answer);
    }

    fn is_outdated(&self, before: &Task, now: &Task) -> bool {
        let waits = |task: &Task| {
            task.templates
                .iter()
                .map(|one| one.wait)
                .collect::<Vec<_>>()
        };
        waits(before) != waits(now)
    }

    /// Whoever watches learns how long changes are collected, and says once more what is rendered.
    fn update(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _before: &Task) {
        task.templates_are_outdated(cx);
    }
}

/// What is asked of the renderer for a task, which runs already or is to be started.
///
/// # Errors
/// A file of a template is none of the task's own.
pub(crate) fn rendering(
    runner: &TaskRunner,
    cx: &Cx<'_>,
    scope: Scope<'_>,
    runs: bool,
) -> Result<Arc<Rendering>, String> {
    let task = runner.spec().task();
    let env = runner.environment(cx, scope, &[&Devices]);
    let names = Names {
        env: &env,
        node: &cx.config.node,
    };
    let root = scope.root(cx.config);
    let task_path = |text: &str| {
        let text = on_host(&task.driver, &root, interpolate(text, &names));
        TaskPath::of(&text, &root, &task.name)
    };
    let work = task
        .templates
        .iter()
        .map(|template| work(template, task_path));
    let templates = work.collect::<Result<Vec<_>, String>>()?;
    // Templates see directories as the task does; paths are the agent's.
    let env = match isolates(&task.driver) {
        true => runner.environment_within(cx, scope, &[&Devices]),
        false => env,
    };
    let (job, group) = (runner.spec().job(), &runner.spec().group().name);
    Ok(Arc::new(Rendering {
        authority: runner.spec().authority,
        templates,
        reads: Reads::of(&job.namespace, job.known_as(), group, &task.name),
        root,
        runs,
        env,
    }))
}
fn work(
    template: &model::template::Template,
    task_path: impl Fn(&str) -> Result<TaskPath, String>,
) -> Result<TemplateWork, String> {
    let source = match template.source_path.as_str() {
        "" => TemplateSource::Text(template.embedded_tmpl.clone()),
        path => TemplateSource::File(task_path(path)?),
    };
    let wait = template.wait.unwrap_or_default();
    Ok(TemplateWork {
        source,
        destination: task_path(&template.dest_path)?,
        left: template.left_delim.clone(),
        right: template.right_delim.clone(),
        error_on_missing_key: template.err_missing_key,
        env: template.envvars,
        mode: template.mode().unwrap_or(0o644),
        uid: template.uid,
        gid: template.gid,
        once: template.once,
        wait: (wait.min, wait.max),
    })
}

/// Looks at what came from outside.
///
/// # Errors
/// The first thing that cannot be so.
pub(crate) fn check(given: &HookOutput) -> Result<(), String> {
    let bytes = |(name, value): (&String, &String)| name.len().saturating_add(value.len());
    let bytes: usize = given.env.iter().map(bytes).sum();
    if given.env.len() > MAX_VARIABLES || bytes > MAX_BYTES {
        return Err(format!(
            "templates render more than {MAX_VARIABLES} variables or {MAX_BYTES} bytes of them"
        ));
    }
    let odd = |(name, value): &(&String, &String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    match given.env.iter().find(odd) {
        Some((name, _)) => Err(format!("the variable {} cannot be set", quote(name))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
