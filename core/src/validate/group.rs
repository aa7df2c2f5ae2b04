//! What is checked of a group.

use std::collections::BTreeSet;

use super::policy::{check_reschedule, check_restart, check_update, not_negative};
use super::{Report, check_constraints, check_meta, check_preferences, task, volume};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::model::names;
use crate::model::policy::RestartRules;
use crate::model::scaling::ScalingPolicy;
use crate::model::task::Stage;
use crate::text::quote;

/// The smallest shared directory, in megabytes.
const LEAST_DISK: i64 = 10;

pub(super) fn check(report: &mut Report, job: &Job, group: &TaskGroup, path: &str) {
    if let Err(why) = names::component(&group.name) {
        report.problem(path, why);
    }
    check_numbers(report, job, group, path);
    check_blocks(report, job, group, path);
    super::network::check(report, group, path);
    check_tasks(report, job, group, path);
}

fn check_numbers(report: &mut Report, job: &Job, group: &TaskGroup, path: &str) {
    if group.wanted() < 0 {
        report.problem(format!("{path}.count"), "must not be negative");
    }
    match job.job_type {
        JobType::System if group.wanted() > 1 => {
            let message = "must be 0 or 1 for a job of type system";
            report.problem(format!("{path}.count"), message);
        }
        JobType::System | JobType::Service | JobType::Batch | JobType::Sysbatch => {}
    }
    let delay = format!("{path}.shutdown_delay");
    not_negative(report, group.shutdown_delay, &delay);
    if let Some(longest) = group.max_run_duration {
        let path = format!("{path}.max_run_duration");
        if !job.job_type.runs_to_completion() {
            report.problem(path, "is for jobs of type batch and sysbatch only");
        } else if longest.is_zero() {
            report.problem(path, "must be more than nothing");
        }
    }
    let disk = group.ephemeral_disk.unwrap_or_default();
    if disk.size_mb < LEAST_DISK {
        let message = format!("must be at least {LEAST_DISK} MB, is {}", disk.size_mb);
        report.problem(format!("{path}.ephemeral_disk.size"), message);
    }
}

fn check_blocks(report: &mut Report, job: &Job, group: &TaskGroup, path: &str) {
    check_constraints(report, &group.constraints, path);
    check_meta(report, &group.meta, path);
    check_preferences(report, job, !group.affinities.is_empty(), path, "affinity");
    check_preferences(report, job, !group.spreads.is_empty(), path, "spread");
    if let Some(policy) = &group.restart_policy {
        let base = RestartRules::default_for(job.job_type);
        check_restart(report, base, policy, &format!("{path}.restart"));
    }
    if let Some(policy) = &group.reschedule_policy {
        let path = format!("{path}.reschedule");
        check_reschedule(report, job.job_type, policy, &path);
    }
    if let Some(update) = &group.update {
        let path = format!("{path}.update");
        check_update(report, update, &path);
        let is_service = job.job_type == JobType::Service;
        report.unsupported(!is_service && update.canary > 0, &path, "canary");
    }
    volume::check_group(report, job, group, path);
    let connects = group.services.iter().any(task::needs_connect);
    report.unsupported(connects, path, "connect");
    super::service::check(report, group, None, path);
    no_effect_of_disconnect(report, group, path);
    if let Some(scaling) = &group.scaling {
        check_scaling(report, scaling, group.wanted(), &format!("{path}.scaling"));
    }
    report.no_effect(group.consul.is_some(), path, "consul");
}

/// What is to happen while servers are out of reach: `disconnect`, or its three older forms.
fn no_effect_of_disconnect(report: &mut Report, group: &TaskGroup, path: &str) {
    let stop_after = group.stop_after_client_disconnect.is_some();
    let max = group.max_client_disconnect.is_some();
    let prevent = group.prevent_reschedule_on_lost.is_some();
    report.no_effect(group.disconnect.is_some(), path, "disconnect");
    report.no_effect(stop_after, path, "stop_after_client_disconnect");
    report.no_effect(max, path, "max_client_disconnect");
    report.no_effect(prevent, path, "prevent_reschedule_on_lost");
}

fn check_scaling(report: &mut Report, scaling: &ScalingPolicy, count: i64, path: &str) {
    if !matches!(scaling.kind.as_str(), "" | "horizontal") {
        report.problem(format!("{path}.type"), "must be horizontal");
    }
    for (name, bound) in [("min", scaling.min), ("max", scaling.max)] {
        if bound.is_some_and(|bound| bound < 0) {
            report.problem(format!("{path}.{name}"), "must not be negative");
        }
    }
    let Some(max) = scaling.max else {
        report.problem(format!("{path}.max"), "must be given");
        return;
    };
    if scaling.min.is_some_and(|min| min > max) {
        report.problem(format!("{path}.max"), "must not be less than min");
    } else if let Err(why) = scaling.admits(count) {
        report.problem(path, why);
    }
}

fn check_tasks(report: &mut Report, job: &Job, group: &TaskGroup, above: &str) {
    let tasks = &group.tasks;
    if tasks.is_empty() {
        return report.problem(above, "must have at least one task");
    }
    if tasks.iter().filter(|task| task.leader).count() > 1 {
        report.problem(above, "only one task may be the leader");
    }
    if !tasks.iter().any(|task| task.stage() == Stage::Main) {
        let message = "must have at least one task without a lifecycle block";
        report.problem(above, message);
    }
    let mut seen = BTreeSet::new();
    for task in tasks {
        let path = format!("{above}.task[{}]", quote(&task.name));
        if !seen.insert(task.name.as_str()) {
            report.problem(path.as_str(), "another task has the same name");
        }
        task::check(report, job, group, task, &path);
    }
}
