//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::ids::AccessorId;
use drover_core::model::acl::{AclToken, SecretDigest};
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A token is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateAclToken {
    /// Its secret.
    pub secret: u8,
    /// Its policy.
    pub policy: String,
    /// After how many seconds it expires, if it does.
    pub ttl: Option<i64>,
}

/// The token with a secret, of which there is one in all worlds.
pub(super) fn token(secret: u8) -> AclToken {
    AclToken {
        accessor: accessor(secret),
        digest: SecretDigest([secret; 32]),
        name: format!("token {secret}"),
        ..AclToken::default()
    }
}

pub(super) fn accessor(secret: u8) -> AccessorId {
    AccessorId(u128::from(secret))
}

impl ActKind for CreateAclToken {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let now = sim.world.now().wall;
        let after = |ttl: i64| Timestamp(now.0.saturating_add(ttl.saturating_mul(1_000_000_000)));
        let token = AclToken {
            policies: [self.policy.as_str().into()].into(),
            expires: self.ttl.map(after),
            ..token(self.secret)
        };
        sim.ask(requests::CreateAclToken { token });
        Ok(())
    }
}

impl Simulated for requests::CreateAclToken {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        token_is_remembered(facts, reply)
    }
}

/// Whether the disk holds the token of an answer, or something later.
pub(super) fn token_is_remembered(facts: Facts<'_>, reply: &Reply) -> Option<bool> {
    let Reply::AclToken(told) = reply else {
        return None;
    };
    let accessor = told.token.accessor;
    Some(match facts.acl_token(accessor) {
        Some(saved) if saved.modify_index == told.modify_index => saved == &**told,
        Some(saved) => saved.modify_index > told.modify_index,
        None => facts.may_lose_token(&told.token),
    })
}
