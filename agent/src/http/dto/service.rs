//! Services.

use drover_core::agent::Registration;
use serde::{Deserialize, Serialize};

/// One instance of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names of Nomad")]
pub struct ServiceInstance {
    #[serde(rename = "ID")]
    pub id: String,
    pub service_name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub datacenter: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub tags: Vec<String>,
    pub address: String,
    pub port: u16,
    pub create_index: u64,
    pub modify_index: u64,
}

impl ServiceInstance {
    pub(crate) fn of(one: &Registration) -> ServiceInstance {
        ServiceInstance {
            id: one.id.clone(),
            service_name: one.name.clone(),
            namespace: one.job.namespace.to_string(),
            node_id: one.node.to_string(),
            datacenter: one.datacenter.clone(),
            job_id: one.job.id.to_string(),
            alloc_id: one.alloc.to_string(),
            tags: one.tags.clone(),
            address: one.address.clone(),
            port: one.port,
            create_index: one.create_index,
            modify_index: one.modify_index,
        }
    }
}
