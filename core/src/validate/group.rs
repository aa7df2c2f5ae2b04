//! What is checked of a group.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::{check_reschedule, check_restart, check_update, not_negative};
use super::{Report, check_constraints, check_meta, check_preferences, task, volume};
use crate::model::group::{Network, Port, TaskGroup};
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
    check_networks(report, group, path);
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
    report.no_effect(group.disconnect.is_some(), path, "disconnect");
    if let Some(scaling) = &group.scaling {
        check_scaling(report, scaling, group.wanted(), &format!("{path}.scaling"));
    }
    report.no_effect(group.consul.is_some(), path, "consul");
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

fn check_networks(report: &mut Report, group: &TaskGroup, above: &str) {
    let path = format!("{above}.network");
    if group.networks.len() > 1 {
        report.problem(path.as_str(), "only one may be given");
    }
    for network in &group.networks {
        check_mode(report, network, &path);
        check_ports(report, group, network, &path);
    }
}

fn check_mode(report: &mut Report, network: &Network, path: &str) {
    let mode = network.mode.as_str();
    if !matches!(mode, "" | "host") {
        let message = match mode {
            "bridge" | "none" => format!("not supported by this version: network mode {mode}"),
            _ if mode.starts_with("cni/") => {
                "not supported by this version: network mode cni".to_owned()
            }
            _ => format!("unknown network mode {}", quote(mode)),
        };
        report.problem(format!("{path}.mode"), message);
    }
    report.no_effect(network.dns.is_some(), path, "dns");
    report.no_effect(!network.hostname.is_empty(), path, "hostname");
    report.no_effect(network.cni.is_some(), path, "cni");
}

fn check_ports(report: &mut Report, group: &TaskGroup, network: &Network, above: &str) {
    let mut labels = BTreeSet::new();
    for port in network.reserved_ports.iter().chain(&network.dynamic_ports) {
        let path = format!("{above}.port[{}]", quote(&port.label));
        if let Err(why) = names::label(&port.label) {
            report.problem(path.as_str(), why);
        }
        if !labels.insert(port.label.as_str()) {
            report.problem(path.as_str(), "another port has the same label");
        }
        if !(-1..=65_535).contains(&port.to) {
            report.problem(format!("{path}.to"), "must be from -1 to 65535");
        }
        // Whether the node has it is known where the group is placed.
        if !port.host_network.is_empty() && names::label(&port.host_network).is_err() {
            let message = format!("{} is no name of a network", quote(&port.host_network));
            report.problem(format!("{path}.host_network"), message);
        }
    }
    let mut taken: BTreeMap<i64, &Port> = BTreeMap::new();
    for port in &network.reserved_ports {
        let path = format!("{above}.port[{}].static", quote(&port.label));
        if !(1..=65_535).contains(&port.value) {
            report.problem(path.as_str(), "must be from 1 to 65535");
        }
        if let Some(other) = taken.insert(port.value, port) {
            let message = format!("port {} has the same number", quote(&other.label));
            report.problem(path.as_str(), message);
        }
        if group.wanted() > 1 && !port.ignore_collision {
            let message = "only one allocation of this group fits on one node";
            report.warning(path, message);
        }
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
