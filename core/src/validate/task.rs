//! What is checked of a task.

use super::policy::{check_restart, not_negative};
use super::{Report, check_constraints, check_meta};
use crate::driver::config::schema_for;
use crate::driver::schema::validate;
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::names;
use crate::model::policy::RestartRules;
use crate::model::task::Task;
use crate::model::value::Value;
use crate::text::quote;
use crate::time::Span;

/// The least memory of a task, in megabytes.
const LEAST_MEMORY: i64 = 10;

/// The largest number of anything a task may ask for: a petabyte, in megabytes. More is a
/// mistake, and would not fit when it is counted in bytes.
const MOST: i64 = 1 << 30;

pub(super) fn check(report: &mut Report, job: &Job, group: &TaskGroup, task: &Task, path: &str) {
    match names::component(&task.name) {
        Ok(()) if task.name == "alloc" => {
            report.problem(path, "the name alloc is the shared directory's");
        }
        Ok(()) => {}
        Err(why) => report.problem(path, why),
    }
    check_driver(report, task, path);
    check_env(report, task, path);
    check_meta(report, &task.meta, path);
    check_constraints(report, &task.constraints, path);
    check_ends(report, job, group, task, path);
    check_resources(report, task, path);
    check_logs(report, group, task, path);
    if let Some(policy) = &task.restart_policy {
        let base = RestartRules::default_for(job.job_type);
        let base = base.overridden_by(group.restart_policy.as_ref());
        check_restart(report, base, policy, &format!("{path}.restart"));
    }
    super::template::check(report, task, path);
    super::artifact::check(report, task, path);
    super::dispatch::check_file(report, job, task, path);
    super::identity::check(report, task, path);
    super::volume::check_task(report, group, task, path);
    super::wait_for::check(report, task, path);
    super::image_update::check(report, job, task, path);
    check_actions(report, task, path);
    check_unsupported(report, task, path);
    super::service::check(report, group, Some(task), path);
    report.no_effect(!task.scaling_policies.is_empty(), path, "scaling");
    report.no_effect(task.consul.is_some(), path, "consul");
    report.no_effect(task.resources.numa.is_some(), path, "resources.numa");
    super::check_preferences(report, job, !task.affinities.is_empty(), path, "affinity");
}

fn check_driver(report: &mut Report, task: &Task, path: &str) {
    if task.driver.is_empty() {
        report.problem(format!("{path}.driver"), "must be given");
    }
    if task.user.contains(char::is_control) {
        let message = "must not contain control characters";
        report.problem(format!("{path}.user"), message);
    }
    let Some(schema) = schema_for(&task.driver) else {
        return;
    };
    let above = format!("{path}.config");
    for block in ["cgroup_v1_override", "cgroup_v2_override"] {
        report.unsupported(task.config.contains_key(block), &above, block);
    }
    for problem in validate(schema, &task.config) {
        let message = match problem.suggestion {
            Some(name) => format!("{} (did you mean {name:?}?)", problem.message),
            None => problem.message,
        };
        report.problem(format!("{path}.config.{}", problem.path), message);
    }
}

fn check_actions(report: &mut Report, task: &Task, path: &str) {
    for (index, action) in task.actions.iter().enumerate() {
        let at = |field: &str| format!("{path}.action[{index}].{field}");
        let same = task.actions.iter().filter(|one| one.name == action.name);
        if action.name.is_empty() {
            report.problem(at("name"), "must not be empty");
        } else if same.count() > 1 {
            let message = format!("there are two actions {}", quote(&action.name));
            report.problem(at("name"), message);
        }
        if action.command.is_empty() {
            report.problem(at("command"), "must be given");
        }
        if action.words().iter().any(|word| word.contains('\0')) {
            report.problem(at("command"), "must not contain NUL");
        }
    }
}

fn check_env(report: &mut Report, task: &Task, path: &str) {
    for (key, value) in &task.env {
        let at = || format!("{path}.env[{}]", quote(key));
        if key.is_empty() {
            report.problem(at(), "the name must not be empty");
        } else if key.contains(['=', '\0']) {
            report.problem(at(), "the name must not contain = or NUL");
        } else if value.contains('\0') {
            report.problem(at(), "must not contain NUL");
        }
    }
}

/// The times around a task's end.
fn check_ends(report: &mut Report, job: &Job, group: &TaskGroup, task: &Task, path: &str) {
    let delay = format!("{path}.shutdown_delay");
    not_negative(report, Some(task.shutdown_delay), &delay);
    let path = format!("{path}.kill_timeout");
    let grace = task.kill_timeout();
    not_negative(report, Some(grace), &path);
    if (1..Span::millis(1).0).contains(&grace.0) {
        let message = format!("is {grace}: a number without a unit counts nanoseconds");
        report.warning(path.as_str(), message);
    }
    let update = group.update.as_ref().or(job.update.as_ref());
    let deadline = update.cloned().unwrap_or_default().progress_deadline;
    if job.job_type == JobType::Service && !deadline.is_zero() && grace > deadline {
        let message = format!("must not be more than progress_deadline, which is {deadline}");
        report.problem(path, message);
    }
}

fn check_resources(report: &mut Report, task: &Task, path: &str) {
    let wants = &task.resources;
    let mut least = |name: &str, number: i64, least: i64| {
        if number < least {
            let message = format!("must be at least {least}, is {number}");
            report.problem(format!("{path}.resources.{name}"), message);
        }
        if number > MOST {
            let message = format!("must not be more than {MOST}");
            report.problem(format!("{path}.resources.{name}"), message);
        }
    };
    least("cores", wants.cores, 0);
    // Whoever has cores of its own needs no share of the others.
    least("cpu", wants.cpu, i64::from(wants.cores <= 0));
    least("memory", wants.memory_mb, LEAST_MEMORY);
    least("memory_max", wants.memory_max_mb, -1);
    least("secrets", wants.secrets_mb, 0);
    if wants.memory_max_mb > 0 && wants.memory_max_mb < wants.memory_mb {
        let message = format!("must be at least memory, which is {}", wants.memory_mb);
        report.problem(format!("{path}.resources.memory_max"), message);
    }
    if wants.secrets_mb > wants.memory_mb {
        let message = format!("must not be more than memory, which is {}", wants.memory_mb);
        report.problem(format!("{path}.resources.secrets"), message);
    }
}

fn check_logs(report: &mut Report, group: &TaskGroup, task: &Task, path: &str) {
    let logs = task.log_config.unwrap_or_default();
    if logs.disabled {
        return;
    }
    for (name, number) in [
        ("max_files", logs.max_files),
        ("max_file_size", logs.max_file_size_mb),
    ] {
        if number < 1 {
            let message = format!("must be at least 1, is {number}");
            report.problem(format!("{path}.logs.{name}"), message);
        }
    }
    let disk = group.ephemeral_disk.unwrap_or_default().size_mb;
    let needed = logs.max_files.saturating_mul(logs.max_file_size_mb);
    if needed > disk {
        let message = format!("{needed} MB of logs do not fit into ephemeral_disk of {disk} MB");
        report.problem(format!("{path}.logs"), message);
    }
}

fn check_unsupported(report: &mut Report, task: &Task, path: &str) {
    for (given, block) in [
        (task.vault.is_some(), "vault"),
        (task.csi_plugin_config.is_some(), "csi_plugin"),
        (!task.secrets.is_empty(), "secret"),
        (task.schedule.is_some(), "schedule"),
        (
            !task.kind.is_empty() || task.services.iter().any(needs_connect),
            "connect",
        ),
    ] {
        report.unsupported(given, path, block);
    }
}

/// Whether a service wants a proxy.
pub(super) fn needs_connect(service: &Value) -> bool {
    field(service, "connect").is_some_and(|value| *value != Value::Null)
}

/// A field of a block that is kept as it was written, in whatever case.
fn field<'a>(block: &'a Value, name: &str) -> Option<&'a Value> {
    let map = block.as_map()?;
    map.iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
