//! Host volumes that were made or registered while the agent ran.

use std::collections::BTreeMap;

use drover_core::agent::View;
use drover_core::model::job::Constraint;
use drover_core::model::volume::VolumeCapability;
use drover_core::store::volume::VolumeRecord;
use serde::{Deserialize, Serialize};

use super::AllocStub;

/// A volume in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct VolumeStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub node_pool: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub capacity_bytes: i64,
    pub state: String,
    pub create_index: u64,
    pub create_time: i64,
    pub modify_index: u64,
    pub modify_time: i64,
}

/// A volume, whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct VolumeDto {
    #[serde(flatten)]
    pub stub: VolumeStub,
    pub constraints: Vec<Constraint>,
    pub requested_capacity_min_bytes: i64,
    pub requested_capacity_max_bytes: i64,
    pub requested_capabilities: Vec<VolumeCapability>,
    pub parameters: BTreeMap<String, String>,
    pub host_path: String,
    /// Those that use it.
    pub allocations: Vec<AllocStub>,
}

impl VolumeStub {
    /// Of a volume of this node.
    pub fn of(view: View<'_>, record: &VolumeRecord) -> VolumeStub {
        let (node, spec) = (view.node(), &record.spec);
        let plugin = match spec.registered {
            Some(_) => "",
            None => "mkdir",
        };
        VolumeStub {
            id: record.id.to_string(),
            name: spec.name.clone(),
            namespace: spec.namespace.clone(),
            plugin_id: plugin.to_owned(),
            node_pool: node.pool.clone(),
            node_id: node.id.to_string(),
            capacity_bytes: 0,
            state: record.state.as_str().to_owned(),
            create_index: record.create_index,
            create_time: record.create_time.0,
            modify_index: record.modify_index,
            modify_time: record.modify_time.0,
        }
    }
}

impl VolumeDto {
    /// Of a volume of this node, which these use.
    pub fn of(view: View<'_>, record: &VolumeRecord, users: Vec<AllocStub>) -> VolumeDto {
        let spec = &record.spec;
        VolumeDto {
            stub: VolumeStub::of(view, record),
            constraints: spec.constraints.clone(),
            requested_capacity_min_bytes: spec.capacity.0,
            requested_capacity_max_bytes: spec.capacity.1,
            requested_capabilities: spec.capabilities.clone(),
            parameters: spec.parameters.clone(),
            host_path: record.host_path.clone(),
            allocations: users,
        }
    }
}
