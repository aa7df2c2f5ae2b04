//! `namespace delete`: a namespace in which nothing is goes. Jobs of it that are dead stay until they are
//! garbage-collected, and cannot be registered again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::effect::{Refusal, Reply};
use crate::model::namespace;
use crate::store::Key;
use crate::text::quote;

/// There is no such namespace from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteNamespace {
    /// Which.
    pub name: Arc<str>,
}

impl OperatorRequest for DeleteNamespace {
    fn name(&self) -> &'static str {
        "delete namespace"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Namespace(&self.name)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let agent = &mut *asked.agent;
        if *self.name == *namespace::DEFAULT {
            return Some(conflict("can not delete default namespace"));
        }
        if agent.is_configured_namespace(&self.name) {
            return Some(conflict(&format!(
                "namespace {} is named by the agent's configuration: remove it from there, and restart the agent",
                quote(&self.name)
            )));
        }
        if !agent.local.namespaces.contains_key(&self.name) {
            let why = "Namespace not found".to_owned();
            return Some(Reply::Refused(Refusal::NotFound(why)));
        }
        if let Some(content) = agent.content_of_namespace(&self.name) {
            return Some(conflict(&format!(
                "namespace {} cannot be deleted: it has {content}",
                quote(&self.name)
            )));
        }
        agent.local.namespaces.remove(&self.name);
        let ledger = &mut agent.shared.ledger;
        ledger.delete(Key::Namespace(self.name.clone()));
        asked.cx().next_index_without_a_record();
        Some(asked.done())
    }
}
