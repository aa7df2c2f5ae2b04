//! A node as servers know it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::device::group::Group;
use crate::fingerprint;
use crate::ids::NodeId;
use crate::model::device::GroupId;
use crate::model::network::Subnet;
use crate::model::processors::Processors;
use crate::model::volume::HostVolume;

/// A node as it registers: all that the servers' scheduler reads of it. What is not offered is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientNode {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
    /// Its data centre.
    pub datacenter: String,
    /// Its class; empty for none.
    pub class: String,
    /// Its pool.
    pub pool: String,
    /// The address of its HTTP API; empty if nobody else may use it.
    pub http_addr: String,
    /// Facts about the machine.
    pub attributes: BTreeMap<String, String>,
    /// The operator's own keys.
    pub meta: BTreeMap<String, String>,
    /// Names of the machine elsewhere, such as at its cloud.
    pub links: BTreeMap<String, String>,
    /// Its drivers.
    pub drivers: BTreeMap<String, ClientDriver>,
    /// Its devices.
    #[serde(with = "crate::pairs")]
    pub devices: BTreeMap<GroupId, Group>,
    /// Its processors, with those that tasks may not use.
    pub processors: Processors,
    /// Its memory, in MiB.
    pub memory_mb: u64,
    /// The disk of the allocations' directories, in MiB.
    pub disk_mb: u64,
    /// What of it allocations do not get.
    pub reserved: ReservedResources,
    /// Its networks, the one of the default route first.
    pub networks: Vec<fingerprint::Network>,
    /// The modes besides `host` that networks of groups may have.
    pub network_modes: BTreeSet<String>,
    /// The addresses behind its bridge.
    pub bridge_subnet: Subnet,
    /// The address at which ports are reachable.
    pub address: String,
    /// The first and last port that is given away without being named.
    pub dynamic_ports: (u16, u16),
    /// Directories of the host that jobs may use, by name.
    pub host_volumes: BTreeMap<String, HostVolume>,
}

/// A driver as servers know it: used if it is detected and healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientDriver {
    /// Whether the machine has what the driver needs.
    pub detected: bool,
    /// Whether it works now.
    pub healthy: bool,
    /// Why it is what it is.
    pub description: String,
    /// What is known of it.
    pub attributes: BTreeMap<String, String>,
}

/// What of a node allocations do not get. Of cores and MHz, [`Processors`] says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservedResources {
    /// MiB of memory.
    pub memory_mb: u64,
    /// MiB of disk space.
    pub disk_mb: u64,
    /// Ports, from the first to the last number, by the network of the host; those of the empty name in none.
    pub ports: BTreeMap<String, Vec<(u16, u16)>>,
}
