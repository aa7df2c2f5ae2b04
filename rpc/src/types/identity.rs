//! Identities of tasks and services, signed by the servers, and whose token a caller has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::question;
use crate::msgpack::{Raw, Secret, Time, Value};

question!(
    /// Asks for signed identities.
    AllocSignIdentities,
    "Alloc.SignIdentities",
    SignedIdentities,
    after_forwarded {
        pub identities: Vec<WorkloadIdentityRequest>,
    }
);

/// What was signed and what was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SignedIdentities {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub rejections: Vec<WorkloadIdentityRejection>,
    pub signed_identities: Vec<SignedWorkloadIdentity>,
}

/// An identity that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkloadIdentityRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub identity_name: String,
    pub interpolated_workload_identifier: String,
    pub workload_identifier: String,
    /// 0: task; 1: service.
    pub workload_type: i64,
}

/// One that was signed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SignedWorkloadIdentity {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub expiration: Time,
    pub identity_name: String,
    pub interpolated_workload_identifier: String,
    #[serde(rename = "JWT")]
    pub jwt: Secret,
    pub workload_identifier: String,
    pub workload_type: i64,
}

/// One that was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkloadIdentityRejection {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub identity_name: String,
    pub interpolated_workload_identifier: String,
    pub reason: String,
    pub workload_identifier: String,
    pub workload_type: i64,
}

question!(
    /// Whose token is `auth_token`?
    AclWhoAmI,
    "ACL.WhoAmI",
    WhoAmI
);

/// Whose token it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WhoAmI {
    pub identity: Option<AuthenticatedIdentity>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

question!(
    /// Which token of the cluster has this secret? Servers that cannot be asked [`AclWhoAmI`] can be asked this.
    AclResolveToken,
    "ACL.ResolveToken",
    ResolvedToken,
    last {
        #[serde(rename = "SecretID")]
        pub secret_id: Secret,
    }
);

/// The token, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ResolvedToken {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub token: Option<AclToken>,
}

/// A token of the cluster, a workload's or a node's claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AuthenticatedIdentity {
    #[serde(rename = "ACLToken")]
    pub acl_token: Option<AclToken>,
    pub claims: Option<Value>,
    #[serde(rename = "ClientID")]
    pub client_id: String,
    #[serde(rename = "RemoteIP")]
    pub remote_ip: Raw,
    #[serde(rename = "TLSName")]
    pub tls_name: String,
}

/// A token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclToken {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub create_index: u64,
    pub create_time: Time,
    #[serde(rename = "ExpirationTTL")]
    pub expiration_ttl: i64,
    pub expiration_time: Option<Time>,
    pub global: bool,
    pub hash: Raw,
    pub modify_index: u64,
    pub name: String,
    pub policies: Vec<String>,
    pub roles: Vec<AclRoleLink>,
    #[serde(rename = "SecretID")]
    pub secret_id: Secret,
    pub r#type: String,
}

/// A role of a token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclRoleLink {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
}

question!(
    /// Asks for roles by id.
    AclGetRolesById,
    "ACL.GetRolesByID",
    AclRolesById,
    first {
        #[serde(rename = "ACLRoleIDs")]
        pub acl_role_ids: Vec<String>,
    }
);

/// Roles by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclRolesById {
    #[serde(rename = "ACLRoles")]
    pub acl_roles: BTreeMap<String, AclRole>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// A role: policies under one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclRole {
    pub create_index: u64,
    pub description: String,
    pub hash: Raw,
    #[serde(rename = "ID")]
    pub id: String,
    pub modify_index: u64,
    pub name: String,
    pub policies: Vec<AclRolePolicyLink>,
}

/// A policy of a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclRolePolicyLink {
    pub name: String,
}

question!(
    /// Asks for policies by name.
    AclGetPolicies,
    "ACL.GetPolicies",
    AclPolicies,
    before_namespace {
        pub names: Vec<String>,
    }
);

/// Policies by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclPolicies {
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
    pub policies: BTreeMap<String, AclPolicy>,
}

/// A policy: its rules as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AclPolicy {
    pub create_index: u64,
    pub description: String,
    pub hash: Raw,
    #[serde(rename = "JobACL")]
    pub job_acl: Option<Value>,
    pub modify_index: u64,
    pub name: String,
    pub rules: String,
    #[serde(rename = "RulesJSON")]
    pub rules_json: Option<Value>,
}
