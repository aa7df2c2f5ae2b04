//! Fingerprints: what probes found out about this machine.
//!
//! The types are this manager's own: neither drivers nor plugins import them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::processors::Processors;

/// What one probe found. It replaces what the same probe found before, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Fingerprint {
    /// Facts by the names of Nomad, such as `kernel.name`. Empty values count as absent.
    pub attributes: BTreeMap<String, String>,
    /// Names of this machine elsewhere, such as at its cloud.
    pub links: BTreeMap<String, String>,
    /// What it has to give.
    pub resources: Resources,
    /// Plugins that were found to work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
}

/// A plugin that was found to work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename = "FoundPlugin")]
pub struct Plugin {
    /// What it is for.
    pub kind: PluginKind,
    /// Its name, as it says itself: of a driver, the one in job files.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What a plugin is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum PluginKind {
    /// It starts tasks.
    #[default]
    Driver,
    /// It has devices.
    Device,
}

/// What a machine has to give. What a probe does not know is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename = "MachineResources")]
pub struct Resources {
    /// Its processors.
    pub processors: Option<Processors>,
    /// Its memory, in MiB.
    pub memory_mb: Option<u64>,
    /// The disk of the allocations' directories, in MiB.
    pub disk_mb: Option<u64>,
    /// Its networks, the one of the default route first.
    pub networks: Vec<Network>,
    /// Network modes beside `host` that jobs may ask for, such as `bridge` and `cni/mynet`.
    pub network_modes: BTreeSet<String>,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename = "Interface")]
pub struct Network {
    /// Its name, such as `eth0`.
    pub device: String,
    /// Its hardware address, if it has one.
    pub mac: String,
    /// Mbit/s; 0 if unknown.
    pub speed: u64,
    /// Its addresses, those of version 4 first.
    pub addresses: Vec<Address>,
    /// Whether the default route goes through it.
    pub is_default: bool,
}

/// One address of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// As it is written.
    pub ip: String,
    /// How many bits of it name the network.
    pub prefix: u8,
}
