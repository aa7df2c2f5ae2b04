//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use serde::{Deserialize, Serialize};

use super::Simulated;
use super::create_acl_token::{token, token_is_remembered};
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// Somebody wants the first token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapAcl {
    /// Its secret.
    pub secret: u8,
}

impl ActKind for BootstrapAcl {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let token = token(self.secret);
        sim.ask(requests::BootstrapAcl { token });
        Ok(())
    }
}

impl Simulated for requests::BootstrapAcl {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let token = token_is_remembered(facts, reply)?;
        Some(token && facts.acl_bootstrap().is_some())
    }
}
