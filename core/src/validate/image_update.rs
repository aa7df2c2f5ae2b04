//! What is checked of a task's `image_update` block. Whether there is such a time zone is checked by whoever can look
//! that up.

use super::Report;
use super::periodic::check_zone;
use crate::cron::schedule::Schedule;
use crate::driver::config::DOCKER;
use crate::model::image::{DIGEST, ImageUpdate, tag};
use crate::model::job::Job;
use crate::model::task::Task;
use crate::model::value::Value;
use crate::text::quote;

pub(super) fn check(report: &mut Report, job: &Job, task: &Task, path: &str) {
    let Some(update) = &task.image_update else {
        return;
    };
    let path = &format!("{path}.image_update");
    if task.driver != DOCKER.driver {
        let message = format!(
            "only for tasks of the driver docker, not {}",
            quote(&task.driver)
        );
        report.problem(path.as_str(), message);
    }
    if job.job_type.runs_to_completion() || job.is_template() {
        let message = "only for jobs that run until they are stopped: those of type service and system that are not \
                       parameterized";
        report.problem(path.as_str(), message);
    }
    if update.policy != DIGEST {
        let message = format!("must be {}, is {}", quote(DIGEST), quote(&update.policy));
        report.problem(format!("{path}.policy"), message);
    }
    check_image(report, task, path);
    check_times(report, update, path);
}

/// The image is asked about when nothing of the job runs yet, so it cannot depend on what only tasks have.
fn check_image(report: &mut Report, task: &Task, path: &str) {
    let image = task.image().unwrap_or_default();
    let problem = match image {
        "" => Some("the task's image must be given, as a text"),
        _ if image.contains("${") => Some(
            "the task's image must not contain references: its registry is asked without the task",
        ),
        _ if image.contains('@') => {
            Some("the task's image names a digest, which never changes: name a tag alone")
        }
        _ if tag(image).is_none() => {
            Some("the task's image must name a tag, such as :latest or :1.2")
        }
        _ if task.config.contains_key("load") => {
            Some("the task's image comes out of an archive (load), not of a registry")
        }
        _ if task.config.get("auth").is_some_and(has_reference) => Some(
            "the task's auth must not contain references: the registry is asked without the task",
        ),
        _ => None,
    };
    if let Some(message) = problem {
        report.problem(path, message);
    }
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::List(items) => items.iter().any(has_reference),
        Value::Map(fields) => fields.values().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

fn check_times(report: &mut Report, update: &ImageUpdate, path: &str) {
    let at = format!("{path}.schedule");
    if update.schedule.is_empty() {
        return report.problem(at, "must be given: a cron expression such as \"0 4 * * *\"");
    }
    check_zone(report, &update.time_zone, format!("{path}.time_zone"));
    match Schedule::of(&update.times()) {
        Ok(schedule) if schedule.never_comes() => {
            report.problem(at, "no day of the calendar fits the expression");
        }
        Ok(_) => {}
        Err(bad) => {
            for one in bad {
                report.problem(at.as_str(), one.mistake.to_string());
            }
        }
    }
}
