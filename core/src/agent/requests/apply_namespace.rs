//! `namespace apply`: a namespace is made, or described anew.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::{Refusal, Reply};
use crate::model::namespace::{Namespace, check_name};
use crate::store::namespace::{MAX_NAMESPACES, NamespaceRecord};
use crate::store::{Key, Record};

/// There is this namespace from now on, as it is described here. The sizes of its texts are checked by the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApplyNamespace {
    /// What it is to be.
    pub namespace: Namespace,
}

impl OperatorRequest for ApplyNamespace {
    fn name(&self) -> &'static str {
        "apply namespace"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Namespace(&self.namespace.name)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let name = &self.namespace.name;
        let known = asked.agent.local.namespaces.get(name).cloned();
        if let Some(known) = known.as_ref().filter(|it| it.namespace == self.namespace) {
            let index = known.modify_index;
            return Some(Reply::Done { index });
        }
        // One of the configuration may bear another name.
        if !asked.agent.has_namespace(name)
            && let Err(why) = check_name(name)
        {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        if known.is_none() && asked.agent.local.namespaces.len() >= MAX_NAMESPACES {
            let why = format!("there are {MAX_NAMESPACES} namespaces already, the maximum");
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let index = asked.cx().next_index();
        let record = Arc::new(NamespaceRecord {
            namespace: self.namespace.clone(),
            create_index: known.map_or(index, |known| known.create_index),
            modify_index: index,
        });
        let ledger = &mut asked.agent.shared.ledger;
        ledger.put(
            Key::Namespace(name.clone()),
            Record::Namespace(record.clone()),
        );
        let namespaces = &mut asked.agent.local.namespaces;
        namespaces.insert(name.clone(), record);
        Some(asked.done())
    }
}
