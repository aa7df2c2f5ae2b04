//! What this node is, as it registers at the servers of its cluster.

use std::collections::BTreeMap;

use super::super::Agent;
use crate::cluster::{ClientDriver, ClientNode, ReservedResources};
use crate::model::node::{DriverInfo, Node};

/// Facts that say that something can be had here which a node alone has and a client of a cluster does not have yet,
/// by the beginnings of their names. Servers place what asks for them elsewhere.
const NOT_OFFERED: &[&str] = &[
    "plugins.host_volume.",
    "plugins.secrets.",
    "consul.",
    "unique.consul.",
    "vault.",
];

impl Agent {
    /// This node as servers shall know it; none if it is in no cluster.
    pub(super) fn client_node(&self) -> Option<ClientNode> {
        let cluster = self.config.cluster.as_ref()?;
        let node = &self.config.node;
        let fingerprints = self.machine.fingerprints();
        let found = fingerprints.resources();
        let mut attributes = node.attributes.clone();
        attributes.retain(|name, _| !NOT_OFFERED.iter().any(|it| name.starts_with(it)));
        attributes.insert("nomad.version".to_owned(), cluster.version.to_string());
        let links = fingerprints.links();
        let plugins = self.machine.devices().plugins();
        let devices = plugins.flat_map(|(_, plugin)| plugin.groups());
        Some(ClientNode {
            id: node.id,
            name: node.name.clone(),
            region: node.region.clone(),
            datacenter: node.datacenter.clone(),
            class: node.class.clone(),
            pool: node.pool.clone(),
            http_addr: node.http_addr.clone(),
            attributes,
            meta: node.meta.clone(),
            links: links.map(|(k, v)| (k.clone(), v.clone())).collect(),
            drivers: self.client_drivers(node),
            devices: devices.map(|(id, it)| (id.clone(), it.clone())).collect(),
            processors: found.processors.unwrap_or_default(),
            memory_mb: found.memory_mb.unwrap_or_default(),
            disk_mb: found.disk_mb.unwrap_or_default(),
            reserved: ReservedResources {
                memory_mb: self.config.reserved.memory,
                disk_mb: self.config.reserved.disk,
                ports: node.reserved_ports.clone(),
            },
            networks: found.networks,
            network_modes: node.network_modes.clone(),
            bridge_subnet: node.bridge_subnet,
            address: node.address.clone(),
            dynamic_ports: node.dynamic_ports,
            host_volumes: node.host_volumes.clone(),
        })
    }

    fn client_drivers(&self, node: &Node) -> BTreeMap<String, ClientDriver> {
        let known = self.machine.drivers().known();
        let attributes: BTreeMap<&str, &BTreeMap<String, String>> =
            known.map(|(name, _, facts)| (&**name, facts)).collect();
        let driver = |(name, info): (&String, &DriverInfo)| {
            let facts = attributes.get(name.as_str());
            let driver = ClientDriver {
                detected: info.detected,
                healthy: info.healthy,
                description: info.description.clone(),
                attributes: facts.map(|facts| (*facts).clone()).unwrap_or_default(),
            };
            (name.clone(), driver)
        };
        node.drivers.iter().map(driver).collect()
    }
}
