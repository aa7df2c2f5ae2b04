//! `acl token delete`: a token is good for nothing from now on.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, cx};
use crate::effect::{Refusal, Reply};
use crate::ids::AccessorId;

/// There is no such token from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteAclToken {
    /// Which.
    pub accessor: AccessorId,
}

impl OperatorRequest for DeleteAclToken {
    fn name(&self) -> &'static str {
        "delete acl token"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let agent = &mut *asked.agent;
        let mut cx = cx(&agent.config, &mut agent.shared, asked.now);
        let deleted = agent.acl.delete_token(&mut cx, self.accessor);
        Some(match deleted {
            true => asked.done(),
            false => token_not_found(),
        })
    }
}

pub(super) fn token_not_found() -> Reply {
    Reply::Refused(Refusal::NotFound("ACL token not found".to_owned()))
}
