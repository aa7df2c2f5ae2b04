//! What is checked of services. Of those that Consul is to know of nothing is: they have no effect.

use std::collections::BTreeSet;

use super::Report;
use crate::model::check::{Check, CheckKind, CheckProblem};
use crate::model::group::TaskGroup;
use crate::model::service::{Service, is_name};
use crate::model::task::Task;
use crate::model::value::Value;
use crate::text::quote;

/// The most checks of one service.
const MAX_CHECKS: usize = 100;

/// Checks the services of a task, or else of the group.
pub(super) fn check(report: &mut Report, group: &TaskGroup, task: Option<&Task>, above: &str) {
    let services = task.map_or(&group.services, |task| &task.services);
    let others = services.iter().filter_map(Service::provider_of_others);
    let others: Vec<&str> = others.collect();
    if let Some(unknown) = others.iter().find(|name| !matches!(**name, "" | "consul")) {
        let message = format!("must be nomad or consul, not {}", quote(unknown));
        report.problem(format!("{above}.service.provider"), message);
    }
    let consul = report.consul_services;
    let of_consul = !others.is_empty() && !consul;
    if of_consul {
        let message = "has no effect on this node, unless its agent's client block says consul_services = true";
        let path = format!("{above}.service (provider = \"consul\")");
        report.warning(path, message);
    }
    for (at, block) in services.iter().enumerate() {
        if let Some(service) = Service::run_here(block, consul) {
            let path = format!("{above}.service[{at}]");
            one(report, group, &service, &path);
            check_address_mode(report, group, task, service.address_mode, &path);
            check_checks(report, group, task, &service, block, &path);
        }
    }
}

/// The drivers whose tasks may bring a health check with them.
const HAVE_HEALTHCHECKS: [&str; 2] = ["docker", "mock_driver"];

/// Checks what is checked of a service.
fn check_checks(
    report: &mut Report,
    group: &TaskGroup,
    task: Option<&Task>,
    service: &Service<'_>,
    block: &Value,
    path: &str,
) {
    let mut names = BTreeSet::new();
    for (at, check) in Check::of_service(block).enumerate() {
        let path = format!("{path}.check[{at}]");
        if at >= MAX_CHECKS {
            let message = format!("a service must not have more than {MAX_CHECKS}");
            return report.problem(path, message);
        }
        let check = check.and_then(|check| check.check().map(|()| check));
        let check = match check {
            Ok(check) => check,
            Err(CheckProblem { field, message }) => {
                report.problem(format!("{path}.{field}"), message);
                continue;
            }
        };
        let known = group.tasks.iter().any(|task| task.name == check.task);
        if !check.task.is_empty() && !known {
            let message = format!("the group has no task {}", quote(&check.task));
            report.problem(format!("{path}.task"), message);
        }
        if check.is_in_task() && task.is_none() && check.task.is_empty() {
            let message = "such a check of a group's service must name its task";
            report.problem(format!("{path}.task"), message);
        }
        let port = match check.port.as_str() {
            "" => service.port,
            own => own,
        };
        if !check.is_in_task() && !is_port(group, port) {
            let message = format!(
                "must be the label of a port of the group or a number, is {}",
                quote(port)
            );
            report.problem(format!("{path}.port"), message);
        }
        let named = group.tasks.iter().find(|task| task.name == check.task);
        let other = named
            .or(task)
            .filter(|task| !HAVE_HEALTHCHECKS.contains(&&*task.driver));
        if let Some(other) = other.filter(|_| check.kind == CheckKind::Own) {
            let message = format!(
                "only images have health checks, and task {} is of the driver {}: use http, tcp, grpc or script",
                quote(&other.name),
                quote(&other.driver)
            );
            report.problem(format!("{path}.type"), message);
        }
        if !names.insert(check.name.clone()) {
            let message = "another check of the service has the same name";
            report.problem(format!("{path}.name"), message);
        }
    }
}

/// Whether this is the label of a port of the group, or a number.
fn is_port(group: &TaskGroup, port: &str) -> bool {
    let ports = group.networks.iter().flat_map(|network| {
        let reserved = network.reserved_ports.iter();
        reserved.chain(&network.dynamic_ports)
    });
    let mut labels = ports.map(|port| port.label.as_str());
    labels.any(|label| label == port) || port.parse::<u16>().is_ok_and(|number| number > 0)
}

fn one(report: &mut Report, group: &TaskGroup, service: &Service<'_>, path: &str) {
    if !service.name.contains("${") && !is_name(service.name) {
        let message = format!(
            "{} is no name: letters, digits and -, at most 63 of them",
            quote(service.name)
        );
        report.problem(format!("{path}.name"), message);
    }
    // Without a port the service is the node's address alone.
    if !service.port.is_empty() && !is_port(group, service.port) {
        let message = format!(
            "must be the label of a port of the group or a number, is {}",
            quote(service.port)
        );
        report.problem(format!("{path}.port"), message);
    }
    let named = |name: &str| group.tasks.iter().any(|task| task.name == name);
    if !service.task.is_empty() && !named(service.task) {
        let message = format!("the group has no task {}", quote(service.task));
        report.problem(format!("{path}.task"), message);
    }
}

fn check_address_mode(
    report: &mut Report,
    group: &TaskGroup,
    task: Option<&Task>,
    mode: &str,
    path: &str,
) {
    let has_own = group.networks.iter().any(|it| it.mode().is_own());
    match mode {
        "" | "auto" | "host" => {}
        // A driver knows one task's network.
        "driver" if task.is_some() => {}
        "alloc" if has_own => {}
        "driver" | "alloc" => {
            let message = "means the host's address on this node";
            report.warning(format!("{path}.address_mode"), message);
        }
        other => {
            let message = format!("not supported by this version: {}", quote(other));
            report.problem(format!("{path}.address_mode"), message);
        }
    }
}
