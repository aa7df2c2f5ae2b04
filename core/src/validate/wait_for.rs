//! What is checked of a task's `wait_for` blocks.

use super::Report;
use crate::model::service::{Service, is_name};
use crate::model::task::Task;
use crate::model::value::Value;
use crate::text::quote;

/// How many services a task may wait for.
const MOST: usize = 32;

pub(super) fn check(report: &mut Report, task: &Task, path: &str) {
    if task.wait_for.len() > MOST {
        let message = format!("at most {MOST} services can be waited for");
        report.problem(format!("{path}.wait_for"), message);
    }
    for (index, wait) in task.wait_for.iter().enumerate() {
        let name = wait.service.as_str();
        let at = format!("{path}.wait_for[{index}].service");
        if name.is_empty() {
            report.problem(at, "must be given: the name of a service");
        } else if !name.contains("${") && !is_name(name) {
            let message = format!("{} is no name of a service", quote(name));
            report.problem(at, message);
        } else if task.services.iter().any(|own| has_name(own, name)) {
            let message = format!(
                "{} is registered by this very task: it would wait for itself",
                quote(name)
            );
            report.problem(at, message);
        }
    }
}

fn has_name(service: &Value, name: &str) -> bool {
    Service::run_here(service, true).is_some_and(|own| own.name == name)
}
