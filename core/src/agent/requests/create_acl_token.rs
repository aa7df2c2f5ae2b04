//! `acl token create`: a token for somebody.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx};
use crate::effect::{Refusal, Reply};
use crate::model::acl::AclToken;
use crate::store::acl::{AclTokenRecord, MAX_TOKENS};

/// There is this token from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CreateAclToken {
    /// It; when it was made is said here.
    pub token: AclToken,
}

impl OperatorRequest for CreateAclToken {
    fn name(&self) -> &'static str {
        "create acl token"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        Some(create(asked, self.token.clone()))
    }
}

/// Makes it, if it can be.
pub(super) fn create(asked: &mut Asked<'_>, mut token: AclToken) -> Reply {
    let invalid = |why: &str| Reply::Refused(Refusal::Invalid(why.to_owned()));
    if let Err(why) = token.check() {
        return invalid(&why);
    }
    let acl = &asked.agent.acl;
    if acl.tokens().contains_key(&token.accessor) || acl.token_of(&token.digest).is_some() {
        return conflict("there is a token with this accessor or this secret already");
    }
    if acl.tokens().len() >= MAX_TOKENS {
        return invalid(&format!(
            "there are {MAX_TOKENS} tokens already, the maximum"
        ));
    }
    if token.is_expired(asked.now.wall) {
        return invalid("the token would be expired from the start");
    }
    token.create_time = asked.now.wall;
    let agent = &mut *asked.agent;
    let mut cx = cx(&agent.config, &mut agent.shared, asked.now);
    let index = cx.next_index();
    let record = AclTokenRecord {
        token,
        create_index: index,
        modify_index: index,
    };
    Reply::AclToken(agent.acl.put_token(&mut cx, record))
}
