//! What is checked of parameterized jobs.

use std::collections::BTreeSet;

use super::Report;
use crate::model::job::Job;
use crate::model::task::Task;
use crate::paths::task_path::TaskPath;
use crate::text::quote;

/// The most keys that dispatches may bring.
const MAX_KEYS: usize = 256;
/// The longest of them, in bytes.
const MAX_KEY: usize = 256;

pub(super) fn check(report: &mut Report, job: &Job) {
    let Some(rules) = &job.parameterized_job else {
        return;
    };
    let path = "job.parameterized";
    if !job.job_type.runs_to_completion() {
        let kind = job.job_type.as_str();
        let message = format!("only for jobs of type batch and sysbatch, not {kind}");
        report.problem(path, message);
    }
    if rules.meta_required.len() + rules.meta_optional.len() > MAX_KEYS {
        let message = format!("must not have more than {MAX_KEYS} keys of meta");
        return report.problem(path, message);
    }
    let mut seen = BTreeSet::new();
    for (list, keys) in [
        ("meta_required", &rules.meta_required),
        ("meta_optional", &rules.meta_optional),
    ] {
        for key in keys {
            let place = || format!("{path}.{list}");
            if key.is_empty() || key.len() > MAX_KEY || key.contains('\0') {
                let message = format!("a key must have 1 to {MAX_KEY} bytes and no NUL");
                report.problem(place(), message);
            } else if !seen.insert(key.as_str()) {
                report.problem(place(), format!("{} is there twice", quote(key)));
            }
        }
    }
}

/// Where the payload goes.
pub(super) fn check_file(report: &mut Report, job: &Job, task: &Task, path: &str) {
    let Some(wanted) = &task.dispatch_payload else {
        return;
    };
    let path = format!("{path}.dispatch_payload");
    if job.parameterized_job.is_none() {
        report.problem(path.as_str(), "only for tasks of a parameterized job");
    }
    if let Err(why) = TaskPath::in_local(&wanted.file, &task.name) {
        report.problem(format!("{path}.file"), why);
    }
}
