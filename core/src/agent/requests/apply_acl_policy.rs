//! `acl policy apply`: a policy is made, or says something else from now on.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, cx};
use crate::effect::{Refusal, Reply};
use crate::model::acl::{AclPolicy, check_policy_name};
use crate::store::acl::{AclPolicyRecord, MAX_POLICIES};

/// There is this policy from now on. Its text, and the sizes of texts, are checked by the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApplyAclPolicy {
    /// What it is to be.
    pub policy: AclPolicy,
}

impl OperatorRequest for ApplyAclPolicy {
    fn name(&self) -> &'static str {
        "apply acl policy"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Acl
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let agent = &mut *asked.agent;
        let known = agent.acl.policies().get(&self.policy.name).cloned();
        if let Some(known) = known.as_ref().filter(|it| it.policy == self.policy) {
            let index = known.modify_index;
            return Some(Reply::Done { index });
        }
        if let Err(why) = check_policy_name(&self.policy.name) {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        if known.is_none() && agent.acl.policies().len() >= MAX_POLICIES {
            let why = format!("there are {MAX_POLICIES} policies already, the maximum");
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let mut cx = cx(&agent.config, &mut agent.shared, asked.now);
        let index = cx.next_index();
        let record = AclPolicyRecord {
            policy: self.policy.clone(),
            create_index: known.map_or(index, |known| known.create_index),
            modify_index: index,
        };
        agent.acl.put_policy(&mut cx, record);
        Some(asked.done())
    }
}
