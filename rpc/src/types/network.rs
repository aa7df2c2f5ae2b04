//! Networks and ports, of nodes, groups and allocations alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A network; empty fields are left out when it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NetworkResource {
    #[serde(rename = "CIDR")]
    pub cidr: String,
    #[serde(rename = "CNI")]
    pub cni: Option<Cni>,
    #[serde(rename = "DNS")]
    pub dns: Option<Dns>,
    pub device: String,
    pub dynamic_ports: Vec<Port>,
    pub hostname: String,
    #[serde(rename = "IP")]
    pub ip: String,
    #[serde(rename = "MBits")]
    pub mbits: i64,
    pub mode: String,
    pub reserved_ports: Vec<Port>,
}

/// A port that was asked for; empty fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Port {
    pub host_network: String,
    pub ignore_collision: bool,
    pub label: String,
    pub to: i64,
    pub value: i64,
}

/// Resolver settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Dns {
    pub options: Vec<String>,
    pub searches: Vec<String>,
    pub servers: Vec<String>,
}

/// Arguments for a CNI network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Cni {
    pub args: BTreeMap<String, String>,
}

/// A port that was given; empty fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocatedPortMapping {
    #[serde(rename = "HostIP")]
    pub host_ip: String,
    pub ignore_collision: bool,
    pub label: String,
    pub to: i64,
    pub value: i64,
}
