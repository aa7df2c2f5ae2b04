//! This node.

use std::collections::BTreeMap;

use drover_core::agent::View;
use drover_core::model::volume::HostVolume;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::drain::{DrainStrategyDto, LastDrainDto};
use super::machine::{self, Asked, Event};
use crate::config::client::ClientConfig;
use crate::config::node::Reserved;
use crate::times;

/// The node, in a list or whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NodeDto {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub address: String,
    pub datacenter: String,
    pub node_class: String,
    pub node_pool: String,
    pub version: String,
    pub drain: bool,
    pub scheduling_eligibility: String,
    pub drain_strategy: Option<DrainStrategyDto>,
    pub last_drain: Option<LastDrainDto>,
    pub status: String,
    pub status_description: String,
    /// When its state last changed, in seconds since 1970.
    pub status_updated_at: i64,
    pub drivers: BTreeMap<String, Driver>,
    pub host_volumes: BTreeMap<String, HostVolumeDto>,
    pub create_index: u64,
    pub modify_index: u64,
    #[serde(rename = "HTTPAddr")]
    pub http_addr: String,
    #[serde(rename = "TLSEnabled")]
    pub tls_enabled: bool,
    pub attributes: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
    pub meta: BTreeMap<String, String>,
    pub events: Vec<Event>,
    pub node_resources: Value,
    /// How the probes of the machine are doing.
    pub probes: Vec<Asked>,
    /// How the plugins of devices are doing.
    pub device_plugins: Vec<Asked>,
    /// What the node keeps for itself, in a form of our own.
    #[serde(skip)]
    pub(super) reserved: Reserved,
}

/// A driver of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Driver {
    pub detected: bool,
    pub healthy: bool,
    pub health_description: String,
    pub attributes: BTreeMap<String, String>,
    pub update_time: String,
}

/// A volume of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct HostVolumeDto {
    pub name: String,
    pub path: String,
    pub read_only: bool,
    /// Empty for a volume of the configuration.
    #[serde(rename = "ID")]
    pub id: String,
}

impl HostVolumeDto {
    fn of(volume: &HostVolume) -> HostVolumeDto {
        HostVolumeDto {
            name: volume.name.clone(),
            path: volume.path.clone(),
            read_only: volume.read_only,
            id: volume.id.clone(),
        }
    }
}

impl NodeDto {
    /// The node as it is shown whole.
    pub fn of(view: View<'_>, nomad_version: &str, client: &ClientConfig) -> NodeDto {
        let (node, decided) = (view.node(), view.node_record());
        NodeDto {
            id: node.id.to_string(),
            name: node.name.clone(),
            address: node.address.clone(),
            datacenter: node.datacenter.clone(),
            node_class: node.class.clone(),
            node_pool: node.pool.clone(),
            version: nomad_version.to_owned(),
            drain: decided.drain.is_some(),
            scheduling_eligibility: decided.eligibility.as_str().to_owned(),
            drain_strategy: decided.drain.as_ref().map(DrainStrategyDto::of),
            last_drain: decided.last_drain.as_ref().map(LastDrainDto::of),
            status: "ready".to_owned(),
            status_description: String::new(),
            status_updated_at: last_event(view).0 / 1_000_000_000,
            drivers: node
                .drivers
                .iter()
                .map(|(name, info)| driver(view, name, info))
                .collect(),
            host_volumes: (node.host_volumes.iter())
                .map(|(name, volume)| (name.clone(), HostVolumeDto::of(volume)))
                .collect(),
            create_index: 1,
            modify_index: view.index(),
            http_addr: node.http_addr.clone(),
            tls_enabled: false,
            attributes: node.attributes.clone(),
            links: (view.machine().fingerprints().links())
                .map(|(name, link)| (name.clone(), link.clone()))
                .collect(),
            meta: node.meta.clone(),
            events: view.machine().events().map(Event::of).collect(),
            node_resources: machine::resources(view),
            probes: machine::probes(view, client),
            device_plugins: machine::plugins(view),
            reserved: client.node.reserved.clone(),
        }
    }

    /// The same, whose API speaks TLS or not.
    #[must_use]
    pub fn with_tls(self, tls_enabled: bool) -> NodeDto {
        NodeDto {
            tls_enabled,
            ..self
        }
    }

    /// The same, as a whole node is shown: with what Nomad's programs expect to be there.
    pub fn full(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            let more = [
                ("SecretID", json!("")),
                ("ReservedResources", machine::reserved(&self.reserved)),
                ("CSIControllerPlugins", json!({})),
                ("CSINodePlugins", json!({})),
                ("HostNetworks", Value::Null),
                ("CgroupParent", json!(crate::config::CGROUP_PARENT)),
                ("ComputedClass", json!("")),
                ("GCVolumesOnNodeGC", json!(false)),
                ("IdentitySigningKeyID", json!("")),
                ("LastAllocUpdateIndex", json!(self.modify_index)),
                ("LastMissedHeartbeatIndex", json!(0)),
                ("NodeMaxAllocs", json!(0)),
            ];
            fields.extend(more.map(|(name, field)| (name.to_owned(), field)));
        }
        value
    }

    /// The same, as lists show it; with what it has to give or its system's name, if asked.
    pub fn stub(&self, with_resources: bool, with_os: bool) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            let whole = [
                "HTTPAddr",
                "TLSEnabled",
                "DrainStrategy",
                "Attributes",
                "Links",
                "Meta",
                "Events",
                "StatusUpdatedAt",
                "Probes",
                "DevicePlugins",
            ];
            for name in whole {
                fields.remove(name);
            }
            if with_resources {
                fields.insert(
                    "ReservedResources".to_owned(),
                    machine::reserved(&self.reserved),
                );
            } else {
                fields.remove("NodeResources");
            }
            if with_os {
                let name = self.attributes.get("os.name");
                fields.insert("Attributes".to_owned(), json!({ "os.name": name }));
            }
        }
        value
    }
}

/// When something last happened to the node.
fn last_event(view: View<'_>) -> Timestamp {
    let times = view.machine().events().map(|event| event.time);
    times.max().unwrap_or_default()
}

fn driver(
    view: View<'_>,
    name: &str,
    info: &drover_core::model::node::DriverInfo,
) -> (String, Driver) {
    let node = view.node();
    let own = format!("driver.{name}");
    let below = format!("{own}.");
    let attributes =
        (node.attributes.iter()).filter(|(key, _)| **key == own || key.starts_with(&below));
    let listened = view.machine().drivers().get(name);
    let changed = listened.map(|driver| driver.changed());
    let driver = Driver {
        detected: info.detected,
        healthy: info.healthy,
        health_description: info.description.clone(),
        attributes: attributes.map(|(k, v)| (k.clone(), v.clone())).collect(),
        update_time: times::to_nanos(changed.unwrap_or_default()),
    };
    (name.to_owned(), driver)
}
