//! What is checked of a group's network.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use crate::driver::isolation::{isolates, joins_networks};
use crate::model::group::{Dns, Network, Port, TaskGroup};
use crate::model::names;
use crate::model::network::{
    ARGS, MAX_ARGS, MAX_DNS, MAX_HOSTNAME, NetworkMode, is_arg, is_arg_name, is_hostname,
    is_server, is_word,
};
use crate::model::value::Value;
use crate::text::quote;

/// The most ports of a group.
const MAX_PORTS: usize = 1_000;

pub(super) fn check(report: &mut Report, group: &TaskGroup, above: &str) {
    let path = format!("{above}.network");
    if group.networks.len() > 1 {
        report.problem(path.as_str(), "only one may be given");
    }
    for network in &group.networks {
        check_mode(report, group, network, &path);
        check_hostname(report, network, &path);
        if let Some(dns) = &network.dns {
            check_dns(report, group, dns, &format!("{path}.dns"));
        }
        check_ports(report, group, network, &path);
    }
}

fn check_mode(report: &mut Report, group: &TaskGroup, network: &Network, path: &str) {
    let at = format!("{path}.mode");
    let mode = match network.mode.parse::<NetworkMode>() {
        Ok(mode) => mode,
        Err(_) => {
            let mode = quote(&network.mode);
            let message =
                format!("unknown network mode {mode}: host, bridge, none and cni/NAME are known");
            return report.problem(at, message);
        }
    };
    match (&mode, &network.cni) {
        (_, None) => {}
        (NetworkMode::Cni(_), Some(block)) => check_cni(report, block, &format!("{path}.cni")),
        (NetworkMode::Host | NetworkMode::Bridge | NetworkMode::None, Some(_)) => {
            report.no_effect(true, path, "cni");
        }
    }
    for task in &group.tasks {
        if mode.is_own() && !joins_networks(&task.driver) {
            let (task, driver) = (quote(&task.name), quote(&task.driver));
            let message = format!(
                "task {task}: its driver {driver} cannot join a group's network, so the mode must be host"
            );
            report.problem(at.as_str(), message);
        }
    }
}

/// Arguments become one text for plugins, in which nobody is to write what he was not asked for.
fn check_cni(report: &mut Report, block: &Value, path: &str) {
    let none = BTreeMap::new();
    let Some(block) = block.as_map() else {
        return report.problem(path, "a block with args is needed");
    };
    for name in block.keys().filter(|name| *name != ARGS) {
        report.problem(path, format!("{} is not known: args is", quote(name)));
    }
    let args = match block.get(ARGS) {
        None | Some(Value::Null) => &none,
        Some(args) => match args.as_map() {
            Some(args) => args,
            None => return report.problem(path, "args: names with texts are needed"),
        },
    };
    if args.len() > MAX_ARGS {
        report.problem(path, format!("more than {MAX_ARGS} args"));
    }
    for (name, value) in args {
        let at = format!("{path}.args[{}]", quote(name));
        if !is_arg_name(name) {
            let message = "is no name of an argument: letters, digits, and _ . - are allowed";
            report.problem(at.as_str(), message);
        }
        match value.as_str() {
            // What it refers to is known when the network is made, and checked again then.
            Some(text) if text.contains("${") || is_arg(text) => {}
            Some(_) => report.problem(
                at,
                "may have no ; no = and no control characters, and 1024 bytes",
            ),
            None => report.problem(at, "must be a text"),
        }
    }
}

fn check_hostname(report: &mut Report, network: &Network, path: &str) {
    let name = network.hostname.as_str();
    if name.is_empty() {
        return;
    }
    // What it refers to is known when the network is made, and checked again then.
    if !name.contains("${") && !is_hostname(name) {
        let message = format!(
            "{} is no host name: it has letters, digits, - and dots, and at most {MAX_HOSTNAME} bytes",
            quote(name)
        );
        report.problem(format!("{path}.hostname"), message);
    }
    report.no_effect(!network.mode().is_own(), path, "hostname");
}

fn check_dns(report: &mut Report, group: &TaskGroup, dns: &Dns, path: &str) {
    for (name, list) in [
        ("servers", &dns.servers),
        ("searches", &dns.searches),
        ("options", &dns.options),
    ] {
        let at = format!("{path}.{name}");
        if list.len() > MAX_DNS {
            report.problem(at.as_str(), format!("more than {MAX_DNS}"));
        }
        for text in list.iter().filter(|text| !text.contains("${")) {
            let fault = match name {
                "servers" if !is_server(text) => "no address of a name server",
                "searches" if !is_word(text) => "no domain to search in",
                "options" if !is_word(text) => "no option of a resolver",
                _ => continue,
            };
            report.problem(at.as_str(), format!("{} is {fault}", quote(text)));
        }
    }
    if !group.tasks.iter().any(|task| isolates(&task.driver)) {
        let message = "has no effect on this node: no task of the group has a root of its own";
        report.warning(path, message);
    }
}

fn check_ports(report: &mut Report, group: &TaskGroup, network: &Network, above: &str) {
    let all = || network.reserved_ports.iter().chain(&network.dynamic_ports);
    if all().count() > MAX_PORTS {
        report.problem(above, format!("more than {MAX_PORTS} ports"));
    }
    if network.mode() == NetworkMode::None && all().next().is_some() {
        let message = "a network of mode none has no ports: nobody could reach them";
        report.problem(above, message);
    }
    let mut labels = BTreeSet::new();
    for port in all() {
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
    check_static_ports(report, group, network, above);
}

fn check_static_ports(report: &mut Report, group: &TaskGroup, network: &Network, above: &str) {
    let mut taken: BTreeMap<(&str, i64), &Port> = BTreeMap::new();
    for port in &network.reserved_ports {
        let path = format!("{above}.port[{}].static", quote(&port.label));
        if !(1..=65_535).contains(&port.value) {
            report.problem(path.as_str(), "must be from 1 to 65535");
        }
        if let Some(other) = taken.insert((port.host_network(), port.value), port) {
            let message = format!("port {} has the same number", quote(&other.label));
            report.problem(path.as_str(), message);
        }
        if group.wanted() > 1 && !port.ignore_collision {
            let message = "only one allocation of this group fits on one node";
            report.warning(path, message);
        }
    }
}
