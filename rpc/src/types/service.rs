//! Services: as jobs have them, and as they are registered with the servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::registration::WriteReply;
use super::task::WorkloadIdentity;
use super::{question, request};
use crate::msgpack::Secret;

/// A service of a group or task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Service {
    pub address: String,
    pub address_mode: String,
    pub canary_meta: BTreeMap<String, String>,
    pub canary_tags: Vec<String>,
    pub checks: Vec<ServiceCheck>,
    pub cluster: String,
    pub identity: Option<WorkloadIdentity>,
    pub meta: BTreeMap<String, String>,
    pub name: String,
    pub namespace: String,
    pub on_update: String,
    pub port_label: String,
    pub provider: String,
    pub tags: Vec<String>,
    pub task_name: String,
}

/// A check of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceCheck {
    pub address_mode: String,
    pub args: Vec<String>,
    pub body: String,
    pub check_restart: Option<CheckRestart>,
    pub command: String,
    pub expose: bool,
    pub failures_before_critical: i64,
    pub failures_before_warning: i64,
    #[serde(rename = "GRPCService")]
    pub g_rpc_service: String,
    #[serde(rename = "GRPCUseTLS")]
    pub g_rpc_use_tls: bool,
    pub header: BTreeMap<String, Vec<String>>,
    pub initial_status: String,
    pub interval: i64,
    pub method: String,
    pub name: String,
    pub notes: String,
    pub on_update: String,
    pub path: String,
    pub port_label: String,
    pub protocol: String,
    pub success_before_passing: i64,
    #[serde(rename = "TLSServerName")]
    pub tls_server_name: String,
    #[serde(rename = "TLSSkipVerify")]
    pub tls_skip_verify: bool,
    pub task_name: String,
    pub timeout: i64,
    pub r#type: String,
}

/// When a failing check restarts the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CheckRestart {
    pub grace: i64,
    pub ignore_warnings: bool,
    pub limit: i64,
}

/// Registers services, or replaces those of the same ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceRegistrationUpsert {
    pub auth_token: Secret,
    pub forwarded: bool,
    pub idempotency_token: String,
    pub namespace: String,
    pub region: String,
    pub services: Vec<ServiceRegistration>,
}

request!(
    ServiceRegistrationUpsert,
    "ServiceRegistration.Upsert",
    WriteReply,
    idempotent
);

/// Removes one service; `namespace` is the service's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceRegistrationDeleteById {
    pub auth_token: Secret,
    pub forwarded: bool,
    #[serde(rename = "ID")]
    pub id: String,
    pub idempotency_token: String,
    pub namespace: String,
    pub region: String,
}

request!(
    ServiceRegistrationDeleteById,
    "ServiceRegistration.DeleteByID",
    WriteReply,
    idempotent
);

question!(
    /// Asks for the instances of a service.
    ServiceRegistrationGetService,
    "ServiceRegistration.GetService",
    ServiceInstances,
    after_auth_token {
        /// As `3|KEY`: so many instances, the same ones for the same key. All if empty.
        pub choose: String,
    },
    last {
        pub service_name: String,
    }
);

/// The instances of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceInstances {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub services: Vec<ServiceRegistration>,
}

question!(
    /// Asks for the names of the services of a namespace.
    ServiceRegistrationList,
    "ServiceRegistration.List",
    ListedServices
);

/// The services of some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ListedServices {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub services: Vec<NamespaceServices>,
}

/// The services of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NamespaceServices {
    pub namespace: String,
    pub services: Vec<ServiceTags>,
}

/// The name of a service, and the tags of its instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceTags {
    pub service_name: String,
    pub tags: Vec<String>,
}

/// A service of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServiceRegistration {
    pub address: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub create_index: u64,
    pub datacenter: String,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub modify_index: u64,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub port: i64,
    pub service_name: String,
    pub tags: Vec<String>,
}
