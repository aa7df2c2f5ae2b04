//! `node meta apply`: the operator's own keys of this node get other values than the configuration gives them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::{Refusal, Reply};
use crate::store::node::MAX_META;

/// Give these keys of the node other values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApplyNodeMeta {
    /// Keys with their values; none for a key that the node shall not have. Their sizes are checked by the API.
    pub meta: BTreeMap<String, Option<String>>,
}

impl OperatorRequest for ApplyNodeMeta {
    fn name(&self) -> &'static str {
        "apply meta"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (now, agent) = (asked.now, &mut *asked.agent);
        if agent.meta_with(&self.meta).len() > MAX_META {
            let why =
                format!("a node has at most {MAX_META} keys that are set while its agent runs");
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        agent.apply_meta(now, &self.meta);
        Some(asked.done())
    }
}
