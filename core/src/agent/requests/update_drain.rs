//! `node drain`: the node is emptied, in another way than before, or not any more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::model::drain::DrainSpec;

/// Drain the node, or do so no more.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UpdateDrain {
    /// How; none to drain it no more.
    pub spec: Option<DrainSpec>,
    /// Whether it takes new allocations again when it is drained no more.
    pub mark_eligible: bool,
    /// What people note of it. The size is checked by the API.
    pub meta: BTreeMap<String, String>,
}

impl OperatorRequest for UpdateDrain {
    fn name(&self) -> &'static str {
        match self.spec {
            Some(_) => "drain",
            None => "drain no more",
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (now, agent) = (asked.now, &mut *asked.agent);
        Some(match self.spec {
            Some(spec) => agent.start_drain(now, spec, &self.meta),
            None => agent.cancel_drain(now, self.mark_eligible, &self.meta),
        })
    }
}
