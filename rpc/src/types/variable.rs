//! Variables: small sets of texts that the servers keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::question;
use crate::msgpack::Secret;

question!(
    /// Asks for one variable.
    VariablesRead,
    "Variables.Read",
    OneVariable,
    after_next_token {
        pub path: String,
    }
);

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

question!(
    /// Asks for the variables whose paths begin with `prefix`.
    VariablesList,
    "Variables.List",
    ListedVariables
);

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
