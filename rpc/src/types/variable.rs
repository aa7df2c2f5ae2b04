//! Variables: small sets of texts that the servers keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request;
use crate::msgpack::Secret;

/// Asks for one variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VariablesRead {
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    pub path: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
}

request!(VariablesRead, "Variables.Read", OneVariable, idempotent);

/// One variable, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct OneVariable {
    pub data: Option<Variable>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// A variable with its items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Variable {
    pub create_index: u64,
    pub create_time: i64,
    pub items: BTreeMap<String, Secret>,
    pub modify_index: u64,
    pub modify_time: i64,
    pub namespace: String,
    pub path: String,
}

/// Asks for the variables whose paths begin with `prefix`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VariablesList {
    pub allow_stale: bool,
    pub auth_token: Secret,
    pub filter: String,
    pub forwarded: bool,
    pub max_query_time: i64,
    pub min_query_index: u64,
    pub namespace: String,
    pub next_token: String,
    pub per_page: i32,
    pub prefix: String,
    pub region: String,
    pub reverse: bool,
}

request!(VariablesList, "Variables.List", ListedVariables, idempotent);

/// Variables without their items, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ListedVariables {
    pub data: Vec<VariableMetadata>,
    pub index: u64,
    pub known_leader: bool,
    pub last_contact: i64,
    pub next_token: String,
}

/// A variable without its items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VariableMetadata {
    pub create_index: u64,
    pub create_time: i64,
    pub modify_index: u64,
    pub modify_time: i64,
    pub namespace: String,
    pub path: String,
}
