//! The node as it registers, in the servers' form.

use std::collections::BTreeMap;

use drover_core::cluster::ClientNode;
use drover_core::device::attribute::{Attribute, Fact};
use drover_core::device::group::Group;
use drover_core::fingerprint;
use drover_core::model::device::GroupId;
use drover_core::model::processors::{self, Processors};
use drover_rpc::msgpack::{Raw, Secret, Time};
use drover_rpc::types::network::NetworkResource;
use drover_rpc::types::node::{DriverInfo, HostVolume, Node, NodeResources, ReservedResources};
use drover_rpc::types::node_resources;
use drover_rpc::types::node_resources::{
    Core, DeviceAttribute, DeviceLocality, LegacyCpu, NodeDevice, NodeDeviceGroup, NodeDisk,
    NodeMemory, NodeNetwork, NodeNetworkAddress, ReservedCpu, ReservedDisk, ReservedMemory,
    ReservedNetworks, Topology,
};

/// The network in which ports without a name of one are.
const DEFAULT: &str = "default";

/// The node, whose API speaks TLS or not. Its status is the one before the first heartbeat.
pub(super) fn of(node: &ClientNode, secret_id: Secret, tls: bool) -> Node {
    Node {
        attributes: node.attributes.clone(),
        datacenter: node.datacenter.clone(),
        drivers: drivers(node),
        http_addr: node.http_addr.clone(),
        host_volumes: volumes(node),
        id: node.id.to_string(),
        links: node.links.clone(),
        meta: node.meta.clone(),
        name: node.name.clone(),
        node_class: node.class.clone(),
        node_pool: node.pool.clone(),
        node_resources: Some(resources(node)),
        reserved_resources: Some(reserved(node)),
        secret_id,
        status: "initializing".to_owned(),
        tls_enabled: tls,
        ..Node::default()
    }
}

fn drivers(node: &ClientNode) -> BTreeMap<String, DriverInfo> {
    let drivers = node.drivers.iter();
    let info = drivers.map(|(name, driver)| {
        let info = DriverInfo {
            attributes: driver.attributes.clone(),
            detected: driver.detected,
            health_description: driver.description.clone(),
            healthy: driver.healthy,
            update_time: Time::ZERO,
        };
        (name.clone(), info)
    });
    info.collect()
}

fn volumes(node: &ClientNode) -> BTreeMap<String, HostVolume> {
    let volumes = node.host_volumes.iter();
    let volumes = volumes.map(|(name, volume)| {
        let volume = HostVolume {
            id: volume.id.clone(),
            name: volume.name.clone(),
            path: volume.path.clone(),
            read_only: volume.read_only,
        };
        (name.clone(), volume)
    });
    volumes.collect()
}

fn resources(node: &ClientNode) -> NodeResources {
    NodeResources {
        cpu: legacy(&node.processors),
        devices: node
            .devices
            .iter()
            .map(|(id, it)| devices(id, it))
            .collect(),
        disk: NodeDisk {
            disk_mb: number(node.disk_mb),
        },
        max_dynamic_port: i64::from(node.dynamic_ports.1),
        memory: NodeMemory {
            memory_mb: number(node.memory_mb),
        },
        min_dynamic_port: i64::from(node.dynamic_ports.0),
        networks: modes(node),
        node_networks: networks(node),
        processors: node_resources::Processors {
            topology: Some(topology(&node.processors)),
        },
    }
}

/// What servers before 1.7 read.
fn legacy(processors: &Processors) -> LegacyCpu {
    let all = processors.cores.iter();
    let usable = all.filter(|core| !core.disabled);
    LegacyCpu {
        cpu_shares: number(processors.total_compute),
        reservable_cpu_cores: usable
            .filter_map(|core| u16::try_from(core.id).ok())
            .collect(),
        total_cpu_cores: u16::try_from(processors.cores.len()).unwrap_or(u16::MAX),
    }
}

fn topology(processors: &Processors) -> Topology {
    let mut nodes: Vec<u8> = (processors.cores.iter())
        .map(|core| u8::try_from(core.node).unwrap_or(u8::MAX))
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    // How far they are from each other nobody measured: near themselves, and equally far from the others.
    let distances = nodes.iter().map(|one| {
        let to = nodes.iter().map(|other| if one == other { 10 } else { 20 });
        Raw(to.collect())
    });
    Topology {
        distances: distances.collect(),
        cores: processors.cores.iter().filter_map(core).collect(),
        nodes: Raw(nodes.clone()),
        override_total_compute: processors.total_compute,
        ..Topology::default()
    }
}

fn core(core: &processors::Core) -> Option<Core> {
    Some(Core {
        base_speed: core.base_mhz,
        disable: core.disabled,
        grade: !core.efficiency,
        guess_speed: core.guess_mhz,
        id: u16::try_from(core.id).ok()?,
        max_speed: core.max_mhz,
        node_id: u8::try_from(core.node).unwrap_or(u8::MAX),
        socket_id: u8::try_from(core.socket).unwrap_or(u8::MAX),
    })
}

/// The modes that networks of groups may have here. Nothing at all is placed on a node without one.
fn modes(node: &ClientNode) -> Vec<NetworkResource> {
    let default = node.networks.first();
    let host = NetworkResource {
        mode: "host".to_owned(),
        device: default.map_or_else(String::new, |network| network.device.clone()),
        cidr: match node.address.contains(':') {
            true => format!("{}/128", node.address),
            false => format!("{}/32", node.address),
        },
        ip: node.address.clone(),
        ..NetworkResource::default()
    };
    let others = node.network_modes.iter().map(|mode| NetworkResource {
        mode: mode.clone(),
        ..NetworkResource::default()
    });
    std::iter::once(host).chain(others).collect()
}

/// The addresses at which ports can be, the node's own first.
fn networks(node: &ClientNode) -> Vec<NodeNetwork> {
    let all = node.networks.iter();
    let mut networks: Vec<NodeNetwork> = all.map(|network| interface(node, network)).collect();
    let has_default = networks
        .iter()
        .any(|network| network.addresses.iter().any(|it| it.alias == DEFAULT));
    if !has_default {
        let address = address(node, &node.address);
        networks.insert(
            0,
            NodeNetwork {
                addresses: vec![address],
                mode: "host".to_owned(),
                ..NodeNetwork::default()
            },
        );
    }
    networks
}

fn interface(node: &ClientNode, network: &fingerprint::Network) -> NodeNetwork {
    let own = network.addresses.iter().filter(|it| it.ip == node.address);
    NodeNetwork {
        addresses: own.map(|it| address(node, &it.ip)).collect(),
        device: network.device.clone(),
        mac_address: network.mac.clone(),
        mode: "host".to_owned(),
        speed: number(network.speed),
    }
}

fn address(node: &ClientNode, ip: &str) -> NodeNetworkAddress {
    NodeNetworkAddress {
        address: ip.to_owned(),
        alias: DEFAULT.to_owned(),
        family: if ip.contains(':') { "ipv6" } else { "ipv4" }.to_owned(),
        reserved_ports: ports(node, DEFAULT),
        ..NodeNetworkAddress::default()
    }
}

fn devices(id: &GroupId, group: &Group) -> NodeDeviceGroup {
    let instances = group.devices.iter().map(|(id, device)| NodeDevice {
        health_description: device.description.clone(),
        healthy: device.healthy,
        id: id.clone(),
        locality: device
            .pci_bus_id
            .clone()
            .map(|pci_bus_id| DeviceLocality { pci_bus_id }),
    });
    let attributes = group.attributes.iter();
    NodeDeviceGroup {
        attributes: attributes
            .map(|(name, it)| (name.clone(), attribute(it)))
            .collect(),
        instances: instances.collect(),
        name: id.name.clone(),
        r#type: id.kind.clone(),
        vendor: id.vendor.clone(),
    }
}

fn attribute(attribute: &Attribute) -> DeviceAttribute {
    let mut shown = DeviceAttribute {
        unit: attribute.unit.clone(),
        ..DeviceAttribute::default()
    };
    match &attribute.fact {
        Fact::Int(value) => shown.int = Some(*value),
        Fact::Float(value) => shown.float = Some(value.get()),
        Fact::Text(value) => shown.string = Some(value.clone()),
        Fact::Bool(value) => shown.bool = Some(*value),
    }
    shown
}

fn reserved(node: &ClientNode) -> ReservedResources {
    let processors = &node.processors;
    let disabled = processors.cores.iter().filter(|core| core.disabled);
    let shares = processors
        .total_compute
        .saturating_sub(processors.usable_compute);
    ReservedResources {
        cpu: ReservedCpu {
            cpu_shares: number(shares),
            reserved_cpu_cores: disabled
                .filter_map(|core| u16::try_from(core.id).ok())
                .collect(),
        },
        disk: ReservedDisk {
            disk_mb: number(node.reserved.disk_mb),
        },
        memory: ReservedMemory {
            memory_mb: number(node.reserved.memory_mb),
        },
        networks: ReservedNetworks {
            reserved_host_ports: ports(node, ""),
        },
    }
}

/// Reserved ports, such as `22,80-90`.
fn ports(node: &ClientNode, network: &str) -> String {
    let ranges = node.reserved.ports.get(network);
    let ranges = ranges
        .into_iter()
        .flatten()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
    ranges.collect::<Vec<_>>().join(",")
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
