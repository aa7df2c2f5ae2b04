//! `acl bootstrap`: the first token, which may do everything. It is made once, for whoever asks first.

use serde::{Deserialize, Serialize};

use super::create_acl_token::create;
use super::{Asked, OperatorRequest, Subject};
use crate::effect::{Refusal, Reply};
use crate::model::acl::{AclToken, TokenType};

/// There is a token that may do everything, if there never was a first one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootstrapAcl {
    /// It; of what type it is, and when it was made, is said here.
    pub token: AclToken,
}

impl OperatorRequest for BootstrapAcl {
    fn name(&self) -> &'static str {
        "bootstrap acl"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        if let Some(index) = asked.agent.acl.bootstrapped() {
            let why = format!("ACL bootstrap already done (reset index: {index})");
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let token = AclToken {
            token_type: TokenType::Management,
            expires: None,
            ..self.token.clone()
        };
        let reply = create(asked, token);
        if let Reply::AclToken(record) = &reply {
            let agent = &mut *asked.agent;
            let mut cx = super::cx(&agent.config, &mut agent.shared, asked.now);
            agent.acl.bootstrap(&mut cx, record.create_index);
        }
        Some(reply)
    }
}
