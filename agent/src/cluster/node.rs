//! The node as it registers, in the servers' form.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use drover_core::cluster::ClientNode;
use drover_core::device::attribute::{Attribute, Fact};
use drover_core::device::group::Group;
use drover_core::fingerprint;
use drover_core::model::device::GroupId;
use drover_core::model::processors::{self, Processors};
use drover_core::scheduler::ports::host_network_attribute;
use drover_rpc::msgpack::{Raw, Secret, Time};
use drover_rpc::types::network::NetworkResource;
use drover_rpc::types::node::{
    DriverInfo, HostNetwork, HostVolume, Node, NodeResources, ReservedResources,
};
use drover_rpc::types::node_resources;
use drover_rpc::types::node_resources::{
    Core, DeviceAttribute, DeviceLocality, LegacyCpu, NodeDevice, NodeDeviceGroup, NodeDisk,
    NodeMemory, NodeNetwork, NodeNetworkAddress, ReservedCpu, ReservedDisk, ReservedMemory,
    ReservedNetworks, Topology,
};

use crate::config::address::reached_at;

/// The network in which ports without a name of one are.
const DEFAULT: &str = "default";

/// The fact that says where the API is reached.
const ADVERTISED: &str = "unique.advertise.address";

/// The mode of a network behind a bridge of the node.
const BRIDGE: &str = "bridge";

/// Servers place no group behind a bridge of a node that has not these plugins of CNI, by which Nomad's nodes make one.
/// This agent makes it without them; what it does is what they do in this version.
const BRIDGE_PLUGINS: [&str; 5] = ["bridge", "firewall", "host-local", "loopback", "portmap"];
const BRIDGE_PLUGIN_VERSION: &str = "1.0.0";

/// The node, whose API speaks TLS or not. Its status is the one before the first heartbeat.
pub(super) fn of(node: &ClientNode, secret_id: Secret, tls: bool) -> Node {
    let http_addr = reached_at(&node.http_addr, &node.address);
    let mut attributes = node.attributes.clone();
    if let Some(advertised) = attributes.get_mut(ADVERTISED) {
        advertised.clone_from(&http_addr);
    }
    if node.network_modes.contains(BRIDGE) {
        for plugin in BRIDGE_PLUGINS {
            let version = attributes.entry(format!("plugins.cni.version.{plugin}"));
            version.or_insert_with(|| BRIDGE_PLUGIN_VERSION.to_owned());
        }
    }
    Node {
        attributes,
        datacenter: node.datacenter.clone(),
        drivers: drivers(node),
        http_addr,
        host_networks: host_networks(node),
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
        let own = format!("driver.{name}");
        let below = format!("{own}.");
        let facts = node.attributes.iter();
        let facts = facts.filter(|(fact, _)| **fact == own || fact.starts_with(&below));
        let mut attributes = driver.attributes.clone();
        attributes.extend(facts.map(|(fact, value)| (fact.clone(), value.clone())));
        let info = DriverInfo {
            attributes,
            detected: driver.detected,
            health_description: driver.description.clone(),
            healthy: driver.healthy,
            update_time: Time::ZERO,
        };
        (name.clone(), info)
    });
    info.collect()
}

/// The drivers as they registered last, with the time since when each of them is so.
#[derive(Debug, Default)]
pub(super) struct Dated(Mutex<BTreeMap<String, DriverInfo>>);

impl Dated {
    /// Says of each driver since when it is so: until another time is known, since now.
    pub(super) fn date(&self, drivers: &mut BTreeMap<String, DriverInfo>, now: Time) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, driver) in drivers.iter_mut() {
            let before = last.get(name);
            driver.update_time = before.map_or(now, |before| before.update_time);
            if before.is_some_and(|before| before != driver) {
                driver.update_time = now;
            }
        }
        last.clone_from(drivers);
    }
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

/// The addresses that ports may name, by the names of their networks.
fn named_addresses(node: &ClientNode) -> impl Iterator<Item = (&str, &str)> {
    let beginning = host_network_attribute("");
    let facts = node.attributes.iter();
    let named = facts.filter_map(move |(name, ip)| Some((name.strip_prefix(&beginning)?, &**ip)));
    named.filter(|(name, _)| !matches!(*name, "" | DEFAULT))
}

/// The networks that ports may name: the interface at which each is, and its addresses there.
fn host_networks(node: &ClientNode) -> BTreeMap<String, HostNetwork> {
    let network = |(name, ip): (&str, &str)| {
        let found = node.networks.iter().find_map(|network| {
            let address = network.addresses.iter().find(|it| it.ip == ip)?;
            Some((network.device.clone(), cidr(address)))
        });
        let (interface, cidr) = found.unwrap_or_default();
        let network = HostNetwork {
            cidr,
            interface,
            name: name.to_owned(),
            reserved_ports: ports(node, name),
        };
        (name.to_owned(), network)
    };
    named_addresses(node).map(network).collect()
}

/// The network of an address; empty if it is none.
fn cidr(address: &fingerprint::Address) -> String {
    let prefix = address.prefix;
    // Where all bits are the network's none are left to be taken away.
    let first = match address.ip.parse() {
        Ok(IpAddr::V4(ip)) => {
            let others = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V4((u32::from(ip) & !others).into())
        }
        Ok(IpAddr::V6(ip)) => {
            let others = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V6((u128::from(ip) & !others).into())
        }
        Err(_) => return String::new(),
    };
    format!("{first}/{prefix}")
}

/// The addresses at which ports can be, the node's own first.
fn networks(node: &ClientNode) -> Vec<NodeNetwork> {
    let all = node.networks.iter();
    let mut networks: Vec<NodeNetwork> = all.map(|network| interface(node, network)).collect();
    let mut missing = vec![(DEFAULT, node.address.as_str())];
    missing.extend(named_addresses(node));
    let is_there = |alias: &str| {
        let mut all = networks.iter().flat_map(|network| &network.addresses);
        all.any(|it| it.alias == alias)
    };
    missing.retain(|(alias, _)| !is_there(alias));
    // Of interfaces that nothing else is told of.
    let elsewhere = missing.into_iter().map(|(alias, ip)| NodeNetwork {
        addresses: vec![address(node, ip, alias)],
        mode: "host".to_owned(),
        ..NodeNetwork::default()
    });
    networks.extend(elsewhere.collect::<Vec<_>>());
    // Servers take the first address of the first network for that of ports, and fail where it has none.
    networks.retain(|network| !network.addresses.is_empty());
    networks.sort_by_key(|network| network.addresses.iter().all(|it| it.alias != DEFAULT));
    networks
}

fn interface(node: &ClientNode, network: &fingerprint::Network) -> NodeNetwork {
    let has = |ip: &str| network.addresses.iter().any(|it| it.ip == ip);
    let own = (has(&node.address)).then(|| address(node, &node.address, DEFAULT));
    let named = named_addresses(node).filter(|(_, ip)| has(ip));
    let named = named.map(|(name, ip)| address(node, ip, name));
    NodeNetwork {
        addresses: own.into_iter().chain(named).collect(),
        device: network.device.clone(),
        mac_address: network.mac.clone(),
        mode: "host".to_owned(),
        speed: number(network.speed),
    }
}

fn address(node: &ClientNode, ip: &str, alias: &str) -> NodeNetworkAddress {
    NodeNetworkAddress {
        address: ip.to_owned(),
        alias: alias.to_owned(),
        family: if ip.contains(':') { "ipv6" } else { "ipv4" }.to_owned(),
        reserved_ports: ports(node, alias),
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

#[cfg(test)]
mod tests {
    use drover_core::fingerprint::{Address, Network};

    use super::*;

    fn network(device: &str, ip: &str, prefix: u8) -> Network {
        Network {
            device: device.to_owned(),
            addresses: vec![Address {
                ip: ip.to_owned(),
                prefix,
            }],
            ..Network::default()
        }
    }

    /// A node at 10.0.0.9 with a second interface, of whose addresses two have names, and a third that nothing else is
    /// told of.
    fn node() -> ClientNode {
        let facts = [
            ("unique.network.host_network.private", "192.168.7.9"),
            ("unique.network.host_network.same", "192.168.7.9"),
            ("unique.network.host_network.v6", "fe80::9"),
            ("unique.network.host_network.default", "192.168.7.9"),
            (ADVERTISED, "0.0.0.0:4646"),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut node = ClientNode {
            address: "10.0.0.9".to_owned(),
            http_addr: "0.0.0.0:4646".to_owned(),
            attributes: facts.into(),
            networks: vec![
                network("eth0", "10.0.0.9", 8),
                network("eth1", "192.168.7.9", 24),
            ],
            network_modes: ["bridge", "cni/mine"].map(str::to_owned).into(),
            ..ClientNode::default()
        };
        let reserved = vec![(80, 80), (8500, 8600)];
        node.reserved.ports.insert("private".to_owned(), reserved);
        node
    }

    #[test]
    fn address_of_host_network_has_its_name_as_alias() {
        let shown = of(&node(), "secret".into(), false);
        let networks = shown.node_resources.unwrap().node_networks;
        let addresses = networks.iter().flat_map(|network| {
            let addresses = network.addresses.iter();
            addresses.map(|it| (&*network.device, &*it.alias, &*it.address))
        });
        assert_eq!(
            addresses.collect::<Vec<_>>(),
            [
                ("eth0", "default", "10.0.0.9"),
                ("eth1", "private", "192.168.7.9"),
                ("eth1", "same", "192.168.7.9"),
                ("", "v6", "fe80::9"),
            ]
        );
        let private = &networks[1].addresses[0];
        assert_eq!(private.reserved_ports, "80,8500-8600");
        assert_eq!(networks[2].addresses[0].family, "ipv6");
    }

    #[test]
    fn first_network_is_the_one_with_the_nodes_own_address_and_none_is_without() {
        let mut here = node();
        for (address, first) in [("192.168.7.9", "eth1"), ("127.0.0.1", "")] {
            address.clone_into(&mut here.address);
            let networks = networks(&here);
            assert_eq!(networks[0].device, first);
            assert_eq!(networks[0].addresses[0].address, address);
            assert!(networks.iter().all(|it| !it.addresses.is_empty()));
        }
    }

    #[test]
    fn host_network_is_registered_with_where_it_is() {
        let shown = of(&node(), "secret".into(), false).host_networks;
        let names: Vec<&str> = shown.keys().map(String::as_str).collect();
        assert_eq!(names, ["private", "same", "v6"]);
        let private = HostNetwork {
            cidr: "192.168.7.0/24".to_owned(),
            interface: "eth1".to_owned(),
            name: "private".to_owned(),
            reserved_ports: "80,8500-8600".to_owned(),
        };
        assert_eq!(shown["private"], private);
        assert_eq!(shown["v6"].interface, "");
    }

    #[test]
    fn network_of_an_address_is_its_first_one() {
        let cidr = |ip: &str, prefix| {
            let ip = ip.to_owned();
            cidr(&Address { ip, prefix })
        };
        assert_eq!(cidr("10.1.2.3", 8), "10.0.0.0/8");
        assert_eq!(cidr("10.1.2.3", 32), "10.1.2.3/32");
        assert_eq!(cidr("10.1.2.3", 0), "0.0.0.0/0");
        assert_eq!(cidr("fd00:1::3", 64), "fd00:1::/64");
        assert_eq!(cidr("none", 8), "");
    }

    #[test]
    fn api_at_every_address_is_registered_at_that_of_the_node() {
        let shown = of(&node(), "secret".into(), false);
        assert_eq!(shown.http_addr, "10.0.0.9:4646");
        assert_eq!(shown.attributes[ADVERTISED], "10.0.0.9:4646");
        let local = ClientNode {
            http_addr: "127.0.0.1:4646".to_owned(),
            ..node()
        };
        let shown = of(&local, "secret".into(), false);
        assert_eq!(
            shown.http_addr, "127.0.0.1:4646",
            "nobody listens elsewhere"
        );
    }

    #[test]
    fn node_with_bridge_has_what_servers_ask_for_behind_one() {
        let versions = |node: &ClientNode| {
            let shown = of(node, "secret".into(), false);
            let all = shown.attributes.into_iter();
            all.filter(|(name, _)| name.starts_with("plugins.cni.version."))
                .count()
        };
        assert_eq!(versions(&node()), 5);
        let none = ClientNode {
            network_modes: ["host".to_owned()].into(),
            ..node()
        };
        assert_eq!(versions(&none), 0);
    }

    #[test]
    fn driver_is_dated_anew_only_when_it_changed() {
        let [first, second] = [1, 2].map(Time::from_unix_nanos);
        let seen = |healthy| {
            let driver = DriverInfo {
                healthy,
                ..DriverInfo::default()
            };
            BTreeMap::from([("exec".to_owned(), driver)])
        };
        let dated = Dated::default();
        let date = |healthy, now| {
            let mut drivers = seen(healthy);
            dated.date(&mut drivers, now);
            drivers["exec"].update_time
        };
        assert_eq!(date(true, first), first);
        assert_eq!(date(true, second), first);
        assert_eq!(date(false, second), second);
    }

    #[test]
    fn networks_of_bridge_and_plugins_are_offered() {
        let modes = modes(&node());
        let modes: Vec<&str> = modes.iter().map(|it| it.mode.as_str()).collect();
        assert_eq!(modes, ["host", "bridge", "cni/mine"]);
    }
}
