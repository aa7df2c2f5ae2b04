//! What is known of this node.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::network::Subnet;
use super::volume::HostVolume;
use crate::ids::NodeId;
use crate::time::Timestamp;

/// This node, as conditions and interpolation see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its id, kept across restarts.
    pub id: NodeId,
    /// Its name; the host's unless configured.
    pub name: String,
    /// Its data centre.
    pub datacenter: String,
    /// Its region.
    pub region: String,
    /// Its class; empty for none.
    pub class: String,
    /// Its pool.
    pub pool: String,
    /// The address of its HTTP API.
    pub http_addr: String,
    /// Facts about the machine: `kernel.name`, `cpu.arch`, `driver.raw_exec` and so on.
    pub attributes: BTreeMap<String, String>,
    /// The operator's own keys.
    pub meta: BTreeMap<String, String>,
    /// Drivers by name.
    pub drivers: BTreeMap<String, DriverInfo>,
    /// The first and last port that this node may give away.
    pub dynamic_ports: (u16, u16),
    /// The address at which ports are reachable.
    pub address: String,
    /// Directories of the host that jobs may use, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub host_volumes: BTreeMap<String, HostVolume>,
    /// The modes besides `host` that networks of groups may have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub network_modes: BTreeSet<String>,
    /// The addresses behind its bridge.
    #[serde(skip_serializing_if = "is_usual")]
    pub bridge_subnet: Subnet,
    /// Ports that it does not give away, from the first to the last number, by the network of the host; those of
    /// the empty name in none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reserved_ports: BTreeMap<String, Vec<(u16, u16)>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_usual(subnet: &Subnet) -> bool {
    *subnet == Subnet::default()
}

impl Node {
    /// Whether it keeps a port of one of its networks for others than jobs.
    pub fn reserves(&self, host_network: &str, port: u16) -> bool {
        let within = |ranges: &Vec<(u16, u16)>| {
            let mut ranges = ranges.iter();
            ranges.any(|(first, last)| (*first..=*last).contains(&port))
        };
        ["", host_network]
            .iter()
            .any(|name| self.reserved_ports.get(*name).is_some_and(within))
    }
}

/// Something that happened to a node, for people to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeEvent {
    /// When.
    pub time: Timestamp,
    /// What part of it: `Driver`, `Device`, `Fingerprint`.
    pub subsystem: String,
    /// What happened.
    pub message: String,
    /// To what.
    pub details: BTreeMap<String, String>,
}

/// What is known of one driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverInfo {
    /// Whether the machine has what the driver needs.
    pub detected: bool,
    /// Whether it works now.
    pub healthy: bool,
    /// Why it is what it is.
    pub description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_range_has_both_its_ends() {
        let ranges = vec![(22, 22), (8080, 8090)];
        let node = Node {
            reserved_ports: [(String::new(), ranges)].into(),
            ..Node::default()
        };
        let reserved = [21, 22, 23, 8079, 8080, 8090, 8091].map(|port| node.reserves("lan", port));
        assert_eq!(reserved, [false, true, false, false, true, true, false]);
    }
}
