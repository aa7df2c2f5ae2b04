//! What is checked of templates. Their syntax is checked by the renderer.

use std::collections::BTreeSet;

use super::Report;
use super::policy::not_negative;
use crate::model::task::Task;
use crate::model::template::{ChangeMode, Template};
use crate::paths::task_path::TaskPath;
use crate::time::Span;

/// The most templates of a task.
const MAX_TEMPLATES: usize = 256;

pub(super) fn check(report: &mut Report, task: &Task, path: &str) {
    if task.templates.len() > MAX_TEMPLATES {
        let message = format!("must not be more than {MAX_TEMPLATES}");
        return report.problem(format!("{path}.template"), message);
    }
    let mut destinations = BTreeSet::new();
    for (index, template) in task.templates.iter().enumerate() {
        let path = format!("{path}.template[{index}]");
        one(report, task, template, &path);
        if !destinations.insert(template.dest_path.as_str()) {
            let message = "another template of the task is rendered to the same file";
            report.problem(format!("{path}.destination"), message);
        }
    }
}

fn one(report: &mut Report, task: &Task, template: &Template, path: &str) {
    match (
        template.source_path.is_empty(),
        template.embedded_tmpl.is_empty(),
    ) {
        (true, true) => report.problem(path, "must have a source or data"),
        (false, false) => report.problem(path, "must not have both a source and data"),
        (false, true) => place(
            report,
            task,
            &template.source_path,
            &format!("{path}.source"),
        ),
        (true, false) => {}
    }
    let destination = format!("{path}.destination");
    if template.dest_path.is_empty() {
        report.problem(destination, "must be given");
    } else {
        place(report, task, &template.dest_path, &destination);
    }
    if template.mode().is_none() {
        let message = "must be an octal number of permissions, such as 0644";
        report.problem(format!("{path}.perms"), message);
    }
    not_negative(report, Some(template.splay), &format!("{path}.splay"));
    if let Some(wait) = &template.wait {
        not_negative(report, Some(wait.min), &format!("{path}.wait.min"));
        if wait.max < wait.min {
            report.problem(format!("{path}.wait.max"), "must be at least min");
        }
    }
    change(report, template, path);
}

fn change(report: &mut Report, template: &Template, path: &str) {
    match template.change_mode {
        ChangeMode::Noop | ChangeMode::Restart => {}
        ChangeMode::Signal if template.envvars => {
            let message =
                "a signal brings no new variables to a task: use restart or noop with env";
            report.problem(format!("{path}.change_mode"), message);
        }
        ChangeMode::Signal => {}
        ChangeMode::Script => script(report, template, &format!("{path}.change_script")),
    }
}

fn script(report: &mut Report, template: &Template, path: &str) {
    let Some(script) = &template.change_script else {
        return report.problem(path, "must be given where change_mode is script");
    };
    if script.command.is_empty() {
        report.problem(format!("{path}.command"), "must be given");
    }
    let texts = core::iter::once(&script.command).chain(&script.args);
    if texts.into_iter().any(|text| text.contains('\0')) {
        report.problem(path, "must not hold a NUL character");
    }
    if script.timeout <= Span::ZERO {
        report.problem(format!("{path}.timeout"), "must be more than nothing");
    }
}

/// A path that leads out whatever its references stand for.
fn place(report: &mut Report, task: &Task, text: &str, path: &str) {
    if text.contains("${") {
        return;
    }
    if let Err(why) = TaskPath::of(text, "", &task.name) {
        report.problem(path, why);
    }
}
