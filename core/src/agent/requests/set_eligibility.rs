//! `node eligibility`: the node takes new allocations, or does not.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::model::drain::Eligibility;

/// Say whether the node takes new allocations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetEligibility {
    /// Whether it does.
    pub eligibility: Eligibility,
}

impl OperatorRequest for SetEligibility {
    fn name(&self) -> &'static str {
        match self.eligibility {
            Eligibility::Eligible => "make eligible",
            Eligibility::Ineligible => "make ineligible",
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Node
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let now = asked.now;
        Some(asked.agent.set_eligibility(now, self.eligibility))
    }
}
