//! Which events a reader subscribes to.

use std::sync::Arc;

use crate::acl::{Capability, Level};
use crate::http::access::{Principal, require};
use crate::http::errors::ApiError;
use crate::http::params::Params;

/// More topics than this nobody means.
const MOST: usize = 64;

/// The topics of one reader, and its namespace.
#[derive(Clone, Debug)]
pub(super) struct Topics {
    /// Each with a key; `*` for all.
    wanted: Arc<[(String, String)]>,
    namespace: Arc<str>,
    /// Who wants it.
    principal: Principal,
}

impl Topics {
    /// Reads `topic=NAME` or `topic=NAME:KEY`, any number of times.
    ///
    /// # Errors
    /// One of them is none.
    pub(super) fn of(params: &Params) -> Result<Topics, ApiError> {
        let mut wanted = Vec::new();
        for topic in params.all("topic").filter(|topic| !topic.is_empty()) {
            let mut parts = topic.split(':');
            let (name, key) = (parts.next().unwrap_or_default(), parts.next());
            if parts.next().is_some() || wanted.len() == MOST {
                let words =
                    "Invalid topic query: error parsing topics: Invalid key value pair for topic";
                return Err(ApiError::bad(format!("{words}, topic: {topic}")));
            }
            wanted.push((name.to_owned(), key.unwrap_or("*").to_owned()));
        }
        if wanted.is_empty() {
            wanted.push(("*".to_owned(), "*".to_owned()));
        }
        Ok(Topics {
            wanted: wanted.into(),
            namespace: params.namespace().into(),
            principal: params.principal.clone(),
        })
    }

    /// Refuses whoever may not hear of a topic, as Nomad does: of all of them at once, and of those that are of no
    /// namespace, only those hear who may read it.
    ///
    /// # Errors
    /// There is a topic that they may not hear of.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let rights = self.principal.rights();
        let may = |topic: &str| match topic {
            "Node" => rights.node(Level::Read),
            "Job" | "Evaluation" | "Allocation" | "Deployment" | "Service" => {
                let capabilities = [Capability::ReadJob];
                self.principal.may_one_of(&self.namespace, &capabilities)
            }
            _ => rights.is_management(),
        };
        require(self.wanted.iter().all(|(topic, _)| may(topic)))
    }

    /// Whether everything is wanted, by somebody who may hear everything.
    pub(super) fn is_all(&self) -> bool {
        self.principal.rights().is_management()
            && *self.namespace == *"*"
            && self
                .wanted
                .iter()
                .any(|(name, key)| name == "*" && key == "*")
    }

    /// Whether an event is wanted that is known by these keys.
    pub(super) fn want<'k>(
        &self,
        topic: &str,
        namespace: &str,
        keys: impl Iterator<Item = &'k str> + Clone,
    ) -> bool {
        let here = *self.namespace == *"*" || namespace.is_empty() || namespace == &*self.namespace;
        // Those of no namespace were checked.
        let may = namespace.is_empty() || {
            let rights = self.principal.rights();
            rights.may(namespace, Capability::ReadJob)
        };
        here && may
            && self.wanted.iter().any(|(name, key)| {
                (name == "*" || name == topic) && (key == "*" || keys.clone().any(|own| own == key))
            })
    }
}
