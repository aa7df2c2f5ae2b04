//! Namespaces.

use std::collections::BTreeMap;

use drover_core::model::namespace::{Namespace, NamespaceCapabilities};
use drover_core::store::namespace::NamespaceRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash;

/// A namespace, as it is shown and as it is handed in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct NamespaceDto {
    pub name: String,
    pub description: String,
    pub quota: String,
    pub capabilities: Option<CapabilitiesDto>,
    pub consul_configuration: Option<Value>,
    pub node_pool_configuration: Option<Value>,
    pub optional_extra_claims: Option<Value>,
    pub required_extra_claims: Option<Value>,
    pub vault_configuration: Option<Value>,
    pub meta: Option<BTreeMap<String, String>>,
    /// Of everything that can be said of it, in base64.
    pub hash: Option<String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// What jobs of a namespace may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct CapabilitiesDto {
    pub enabled_task_drivers: Option<Vec<String>>,
    pub disabled_task_drivers: Option<Vec<String>>,
    pub enabled_network_modes: Option<Vec<String>>,
    pub disabled_network_modes: Option<Vec<String>>,
}

/// A list as Nomad shows it: none if it is empty.
fn shown(list: &[String]) -> Option<Vec<String>> {
    (!list.is_empty()).then(|| list.to_vec())
}

impl NamespaceDto {
    /// What is remembered of it.
    pub fn of(record: &NamespaceRecord) -> NamespaceDto {
        let namespace = &record.namespace;
        let capabilities = namespace.capabilities.as_ref();
        NamespaceDto {
            name: namespace.name.to_string(),
            description: namespace.description.clone(),
            capabilities: capabilities.map(|it| CapabilitiesDto {
                enabled_task_drivers: shown(&it.enabled_task_drivers),
                disabled_task_drivers: shown(&it.disabled_task_drivers),
                enabled_network_modes: shown(&it.enabled_network_modes),
                disabled_network_modes: shown(&it.disabled_network_modes),
            }),
            meta: (!namespace.meta.is_empty()).then(|| namespace.meta.clone()),
            hash: Some(hash(namespace)),
            create_index: record.create_index,
            modify_index: record.modify_index,
            ..NamespaceDto::default()
        }
    }

    /// What somebody asks for.
    ///
    /// # Errors
    /// It has something that there is in Nomad's enterprise edition alone, or makes no sense.
    pub fn asked(self) -> Result<Namespace, String> {
        let extras = [
            ("Quota", !self.quota.is_empty(), "quotas"),
            (
                "NodePoolConfiguration",
                says_something(self.node_pool_configuration.as_ref()),
                "rules for node pools",
            ),
            (
                "VaultConfiguration",
                says_something(self.vault_configuration.as_ref()),
                "rules for Vault",
            ),
            (
                "ConsulConfiguration",
                says_something(self.consul_configuration.as_ref()),
                "rules for Consul",
            ),
        ];
        if let Some((field, _, what)) = extras.into_iter().find(|(_, given, _)| *given) {
            return Err(format!(
                "{field} of namespace {:?} is not supported: {what} of namespaces are of Nomad's enterprise edition",
                self.name
            ));
        }
        let namespace = Namespace {
            name: self.name.into(),
            description: self.description,
            meta: self.meta.unwrap_or_default(),
            capabilities: self.capabilities.map(|it| NamespaceCapabilities {
                enabled_task_drivers: it.enabled_task_drivers.unwrap_or_default(),
                disabled_task_drivers: it.disabled_task_drivers.unwrap_or_default(),
                enabled_network_modes: it.enabled_network_modes.unwrap_or_default(),
                disabled_network_modes: it.disabled_network_modes.unwrap_or_default(),
            }),
        };
        Ok(namespace)
    }
}

/// Whether a part says anything: clients send parts that are empty.
fn says_something(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => items.iter().any(|item| says_something(Some(item))),
        Some(Value::Object(fields)) => fields.values().any(|field| says_something(Some(field))),
        Some(Value::Bool(_) | Value::Number(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> NamespaceDto {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn parts_of_the_enterprise_edition_are_refused_by_name() {
        for (field, value) in [
            ("Quota", json!("small")),
            ("NodePoolConfiguration", json!({ "Default": "gpu" })),
            ("VaultConfiguration", json!({ "Allowed": ["a"] })),
            ("ConsulConfiguration", json!({ "Default": "b" })),
        ] {
            let why = read(json!({ "Name": "a", field: value })).asked();
            let why = why.err().unwrap_or_default();
            assert!(
                why.starts_with(&format!("{field} of namespace \"a\"")),
                "{why}"
            );
        }
    }

    #[test]
    fn parts_that_are_empty_say_nothing() {
        let empty = json!({
            "Name": "a", "Quota": "", "Meta": null, "Capabilities": null,
            "NodePoolConfiguration": { "Default": "", "Allowed": null, "Denied": [] },
            "VaultConfiguration": null,
        });
        let namespace = read(empty).asked().unwrap();
        assert_eq!(&*namespace.name, "a");
        assert_eq!(namespace.capabilities, None);
    }

    #[test]
    fn namespace_that_was_requested_is_shown_unchanged() {
        let asked = json!({
            "Name": "a", "Description": "b", "Meta": { "k": "v" },
            "Capabilities": { "DisabledTaskDrivers": ["raw_exec"] },
        });
        let record = NamespaceRecord {
            namespace: read(asked).asked().unwrap(),
            create_index: 4,
            modify_index: 5,
        };
        let shown = serde_json::to_value(NamespaceDto::of(&record)).unwrap();
        assert_eq!(
            shown["Capabilities"]["DisabledTaskDrivers"],
            json!(["raw_exec"])
        );
        assert_eq!(shown["Capabilities"]["EnabledTaskDrivers"], Value::Null);
        assert_eq!(
            (&shown["Meta"]["k"], &shown["ModifyIndex"]),
            (&json!("v"), &json!(5))
        );
        let again = read(shown).asked().unwrap();
        assert_eq!(again, record.namespace);
    }
}
