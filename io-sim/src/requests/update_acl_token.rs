//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::acl::TokenType;
use serde::{Deserialize, Serialize};

use super::Simulated;
use super::create_acl_token::{accessor, token_is_remembered};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A token is good for something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateAclToken {
    /// Its secret.
    pub secret: u8,
    /// Its policy; a token that may do everything if there is none.
    pub policy: Option<String>,
}

impl ActKind for UpdateAclToken {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let (accessor, policy) = (accessor(self.secret), self.policy.as_deref());
        sim.ask(requests::UpdateAclToken {
            accessor,
            name: format!("token for {}", policy.unwrap_or("everything")),
            token_type: match policy {
                Some(_) => TokenType::Client,
                None => TokenType::Management,
            },
            policies: policy.into_iter().map(Into::into).collect(),
        });
        Ok(())
    }
}

impl Simulated for requests::UpdateAclToken {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        token_is_remembered(facts, reply)
    }
}
