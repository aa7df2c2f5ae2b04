//! `acl token update`: a token is called otherwise, or is good for something else. Its secret stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::delete_acl_token::token_not_found;
use super::{Asked, OperatorRequest, Subject, cx};
use crate::effect::{Refusal, Reply};
use crate::ids::AccessorId;
use crate::model::acl::{AclToken, TokenType};
use crate::store::acl::AclTokenRecord;

/// A token is this from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UpdateAclToken {
    /// Which.
    pub accessor: AccessorId,
    /// What people call it.
    pub name: String,
    /// What it is good for.
    pub token_type: TokenType,
    /// Its policies.
    pub policies: BTreeSet<Arc<str>>,
}

impl OperatorRequest for UpdateAclToken {
    fn name(&self) -> &'static str {
        "update acl token"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let agent = &mut *asked.agent;
        let Some(known) = agent.acl.tokens().get(&self.accessor).cloned() else {
            return Some(token_not_found());
        };
        let token = AclToken {
            name: self.name.clone(),
            token_type: self.token_type,
            policies: self.policies.clone(),
            ..known.token.clone()
        };
        if let Err(why) = token.check() {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        if token == known.token {
            return Some(Reply::AclToken(known));
        }
        let mut cx = cx(&agent.config, &mut agent.shared, asked.now);
        let record = AclTokenRecord {
            token,
            create_index: known.create_index,
            modify_index: cx.next_index(),
        };
        Some(Reply::AclToken(agent.acl.put_token(&mut cx, record)))
    }
}
