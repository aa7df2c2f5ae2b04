//! Variables.

use std::collections::BTreeMap;

use drover_core::model::variable::{Variable, VariableKey, VariableMeta};
use serde::{Deserialize, Serialize};

/// A variable without its items, as lists show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableStub {
    /// Its namespace.
    pub namespace: String,
    /// Its path.
    pub path: String,
    /// The state's index when it was made.
    pub create_index: u64,
    /// The state's index of its last change.
    pub modify_index: u64,
    /// When it was made, in nanoseconds since 1970.
    pub create_time: i64,
    /// When it last changed.
    pub modify_time: i64,
}

impl VariableStub {
    pub(crate) fn of(key: &VariableKey, meta: VariableMeta) -> VariableStub {
        VariableStub {
            namespace: key.namespace.to_string(),
            path: key.path.to_string(),
            create_index: meta.create_index,
            modify_index: meta.modify_index,
            create_time: meta.create_time.0,
            modify_time: meta.modify_time.0,
        }
    }
}

/// A variable. It is not printed by mistake: it has no `Debug`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableDto {
    /// What is known of it without its items.
    #[serde(flatten)]
    pub stub: VariableStub,
    /// What it holds; `null` of a variable that is not there.
    pub items: Option<BTreeMap<String, String>>,
}

impl VariableDto {
    pub(crate) fn of(key: &VariableKey, variable: &Variable) -> VariableDto {
        VariableDto {
            stub: VariableStub::of(key, variable.meta),
            items: Some(variable.items.get().clone()),
        }
    }

    /// One that is not there.
    pub(crate) fn none(key: &VariableKey) -> VariableDto {
        VariableDto {
            stub: VariableStub::of(key, VariableMeta::default()),
            items: None,
        }
    }
}
