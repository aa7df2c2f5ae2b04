//! `acl policy delete`: a policy goes. Tokens that had it may do what their others say.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, cx};
use crate::effect::{Refusal, Reply};

/// There is no such policy from now on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteAclPolicy {
    /// Which.
    pub name: Arc<str>,
}

impl OperatorRequest for DeleteAclPolicy {
    fn name(&self) -> &'static str {
        "delete acl policy"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let agent = &mut *asked.agent;
        let mut cx = cx(&agent.config, &mut agent.shared, asked.now);
        let deleted = agent.acl.delete_policy(&mut cx, &self.name);
        Some(match deleted {
            true => asked.done(),
            false => {
                let why = "ACL policy not found".to_owned();
                Reply::Refused(Refusal::NotFound(why))
            }
        })
    }
}
