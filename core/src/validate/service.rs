//! What is checked of services. Of those that Consul is to know of nothing is: they have no effect.

use super::Report;
use crate::model::group::TaskGroup;
use crate::model::service::{Service, is_name};
use crate::model::task::Task;
use crate::text::quote;

/// Checks the services of a task, or else of the group.
pub(super) fn check(report: &mut Report, group: &TaskGroup, task: Option<&Task>, above: &str) {
    let services = task.map_or(&group.services, |task| &task.services);
    let others = services.iter().filter_map(Service::provider_of_others);
    let others: Vec<&str> = others.collect();
    if let Some(unknown) = others.iter().find(|name| !matches!(**name, "" | "consul")) {
        let message = format!("must be nomad or consul, not {}", quote(unknown));
        report.problem(format!("{above}.service.provider"), message);
    }
    report.no_effect(!others.is_empty(), above, "service (provider = \"consul\")");
    for (at, block) in services.iter().enumerate() {
        if let Some(service) = Service::of_ours(block) {
            let path = format!("{above}.service[{at}]");
            one(report, group, &service, &path);
            check_address_mode(report, task, service.address_mode, &path);
            report.no_effect(Service::has_checks(block), above, "service.check");
        }
    }
}

fn one(report: &mut Report, group: &TaskGroup, service: &Service<'_>, path: &str) {
    if !service.name.contains("${") && !is_name(service.name) {
        let message = format!(
            "{} is no name: letters, digits and -, at most 63 of them",
            quote(service.name)
        );
        report.problem(format!("{path}.name"), message);
    }
    let ports = group.networks.iter().flat_map(|network| {
        let reserved = network.reserved_ports.iter();
        reserved.chain(&network.dynamic_ports)
    });
    let mut labels = ports.map(|port| port.label.as_str());
    let number = service.port.parse::<u16>();
    // Without a port the service is the node's address alone.
    let has_port = !service.port.is_empty();
    if has_port
        && !labels.any(|label| label == service.port)
        && !number.is_ok_and(|number| number > 0)
    {
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

fn check_address_mode(report: &mut Report, task: Option<&Task>, mode: &str, path: &str) {
    match mode {
        "" | "auto" | "host" => {}
        // A driver knows one task's network.
        "driver" if task.is_some() => {}
        // Tasks have the host's network here.
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
