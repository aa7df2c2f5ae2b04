//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::namespace::{Namespace, NamespaceCapabilities};
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A namespace is made, or described anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyNamespace {
    /// Its name.
    pub name: String,
    /// The driver that its jobs must not use, if there is one.
    pub without: Option<String>,
}

impl ActKind for ApplyNamespace {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let disabled = self.without.iter().cloned().collect();
        let capabilities = NamespaceCapabilities {
            disabled_task_drivers: disabled,
            ..NamespaceCapabilities::default()
        };
        let namespace = Namespace {
            name: self.name.as_str().into(),
            capabilities: self.without.is_some().then_some(capabilities),
            ..Namespace::default()
        };
        sim.ask(requests::ApplyNamespace { namespace });
        Ok(())
    }
}

impl Simulated for requests::ApplyNamespace {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Done { index } = reply else {
            return None;
        };
        let name = &self.namespace.name;
        Some(match facts.namespace(name) {
            Some(saved) if saved.modify_index == *index => saved.namespace == self.namespace,
            Some(saved) => saved.modify_index > *index,
            None => facts.replies.deletes_namespace(name),
        })
    }
}
