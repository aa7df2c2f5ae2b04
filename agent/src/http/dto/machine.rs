//! The node's resources, by Nomad's names; and what is known of its probes and plugins, by names of
//! our own.

use drover_core::agent::View;
use drover_core::device::attribute::{Attribute, Fact};
use drover_core::device::group::{Device, Group};
use drover_core::fingerprint::{Network, Resources};
use drover_core::model::device::GroupId;
use drover_core::model::node::NodeEvent;
use drover_core::model::processors::Core;
use drover_io_real::fingerprint::PROBES;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::client::ClientConfig;
use crate::config::node::Reserved;
use crate::times;

/// Something that happened to the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Event {
    pub message: String,
    pub subsystem: String,
    pub details: std::collections::BTreeMap<String, String>,
    pub timestamp: String,
    pub create_index: u64,
}

impl Event {
    /// As it is shown.
    pub fn of(event: &NodeEvent) -> Event {
        Event {
            message: event.message.clone(),
            subsystem: event.subsystem.clone(),
            details: event.details.clone(),
            timestamp: times::to_seconds(event.time),
            create_index: 1,
        }
    }
}

/// How a probe of the machine, or a plugin of devices, is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// How many facts or devices are known of it.
    pub known: usize,
    /// Why it does not work, or is not asked; empty if it works.
    pub trouble: String,
    /// `ok`, `failing`, or `denied` where people do not want it.
    pub state: String,
}

/// How every probe is doing.
pub(super) fn probes(view: View<'_>, wanted: &ClientConfig) -> Vec<Asked> {
    let probes = view.machine().fingerprints().probes();
    let asked = probes.map(|probe| {
        let known = probe.found().attributes.len();
        Asked::of(probe.name(), known, probe.last_error())
    });
    let denied = PROBES.iter().filter_map(|probe| {
        let why = wanted.wants_probe(probe.name, probe.off_unless_enabled);
        Some(Asked {
            state: "denied".to_owned(),
            ..Asked::of(probe.name, 0, Some(&why.err()?))
        })
    });
    asked.chain(denied).collect()
}

impl Asked {
    fn of(name: &str, known: usize, trouble: Option<&str>) -> Asked {
        let state = if trouble.is_some() { "failing" } else { "ok" };
        Asked {
            name: name.to_owned(),
            known,
            trouble: trouble.unwrap_or_default().to_owned(),
            state: state.to_owned(),
        }
    }
}

/// How every plugin of devices is doing.
pub(super) fn plugins(view: View<'_>) -> Vec<Asked> {
    let plugins = view.machine().devices().plugins();
    let asked = plugins.map(|(name, plugin)| {
        let devices = plugin.groups().values().map(|group| group.devices.len());
        Asked::of(name, devices.sum(), plugin.last_error())
    });
    asked.collect()
}

/// What the node has to give.
pub(super) fn resources(view: View<'_>) -> Value {
    let found = view.machine().fingerprints().resources();
    let (first, last) = view.node().dynamic_ports;
    let processors = found.processors.clone().unwrap_or_default();
    let usable = processors.cores.iter().filter(|core| !core.disabled);
    let offers = view.machine().devices().offers();
    let devices: Vec<Value> = offers
        .iter()
        .map(|(_, id, group)| device_group(id, group))
        .collect();
    json!({
        "Cpu": {
            "CpuShares": processors.total_compute,
            "ReservableCpuCores": usable.map(|core| core.id).collect::<Vec<_>>(),
            "TotalCpuCores": processors.cores.len(),
        },
        "Processors": { "Topology": topology(&processors.cores) },
        "Memory": { "MemoryMB": found.memory_mb.unwrap_or(0) },
        "Disk": { "DiskMB": found.disk_mb.unwrap_or(0) },
        "Networks": networks(&found),
        "NodeNetworks": node_networks(&found),
        "Devices": if devices.is_empty() { Value::Null } else { Value::Array(devices) },
        "MinDynamicPort": first,
        "MaxDynamicPort": last,
    })
}

/// What the node keeps for itself.
pub(super) fn reserved(reserved: &Reserved) -> Value {
    let cores = (!reserved.cores.is_empty()).then_some(&reserved.cores);
    json!({
        "Cpu": { "CpuShares": reserved.mhz, "ReservedCpuCores": cores },
        "Memory": { "MemoryMB": reserved.amounts.memory },
        "Disk": { "DiskMB": reserved.amounts.disk },
        "Networks": { "ReservedHostPorts": "" },
    })
}

fn topology(cores: &[Core]) -> Value {
    let nodes: std::collections::BTreeSet<u32> = cores.iter().map(|core| core.node).collect();
    let core = |core: &Core| {
        json!({
            "ID": core.id,
            "SocketID": core.socket,
            "NodeID": core.node,
            "Grade": !core.efficiency,
            "Disable": core.disabled,
            "BaseSpeed": core.base_mhz,
            "MaxSpeed": core.max_mhz,
            "GuessSpeed": core.guess_mhz,
        })
    };
    json!({
        "Nodes": nodes,
        "Distances": Value::Null,
        "Cores": cores.iter().map(core).collect::<Vec<_>>(),
        "OverrideTotalCompute": 0,
        "OverrideWitholdCompute": 0,
    })
}

/// One entry for each address at which tasks can be reached.
fn networks(found: &Resources) -> Vec<Value> {
    let modes = found
        .network_modes
        .iter()
        .map(|mode| json!({ "Mode": mode }));
    let reached = found.networks.iter().filter(|network| network.is_default);
    let hosts = reached.flat_map(|network| {
        network.addresses.iter().map(move |address| {
            let whole = if address.ip.contains(':') { 128 } else { 32 };
            json!({
                "Mode": "host",
                "Device": network.device,
                "IP": address.ip,
                "CIDR": format!("{}/{whole}", address.ip),
                "MBits": speed(network),
            })
        })
    });
    modes.chain(hosts).collect()
}

/// One entry for each interface.
fn node_networks(found: &Resources) -> Vec<Value> {
    let interface = |network: &Network| {
        let alias = if network.is_default { "default" } else { "" };
        let address = |address: &drover_core::fingerprint::Address| {
            json!({
                "Address": address.ip,
                "Alias": alias,
                "Family": if address.ip.contains(':') { "ipv6" } else { "ipv4" },
                "Gateway": "",
                "ReservedPorts": "",
            })
        };
        json!({
            "Mode": "host",
            "Device": network.device,
            "MacAddress": network.mac,
            "Speed": speed(network),
            "Addresses": network.addresses.iter().map(address).collect::<Vec<_>>(),
        })
    };
    found.networks.iter().map(interface).collect()
}

/// Mbit/s, or what Nomad takes for unknown.
fn speed(network: &Network) -> u64 {
    match network.speed {
        0 => 1000,
        speed => speed,
    }
}

fn device_group(id: &GroupId, group: &Group) -> Value {
    let instance = |(id, device): (&String, &Device)| {
        let bus = device.pci_bus_id.as_ref();
        json!({
            "ID": id,
            "Healthy": device.healthy,
            "HealthDescription": device.description,
            "Locality": bus.map(|bus| json!({ "PciBusID": bus })),
        })
    };
    let attributes = group.attributes.iter();
    let attributes: serde_json::Map<String, Value> = attributes
        .map(|(name, value)| (name.clone(), attribute(value)))
        .collect();
    json!({
        "Vendor": id.vendor,
        "Type": id.kind,
        "Name": id.name,
        "Instances": group.devices.iter().map(instance).collect::<Vec<_>>(),
        "Attributes": attributes,
    })
}

/// A fact: the one of four that is set, and the unit.
fn attribute(attribute: &Attribute) -> Value {
    let mut shown = json!({
        "Bool": null, "Float": null, "Int": null, "String": null, "Unit": attribute.unit,
    });
    let (name, value) = match &attribute.fact {
        Fact::Bool(yes) => ("Bool", json!(yes)),
        Fact::Float(number) => ("Float", json!(number.get())),
        Fact::Int(number) => ("Int", json!(number)),
        Fact::Text(text) => ("String", json!(text)),
    };
    if let Some(fields) = shown.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    shown
}
