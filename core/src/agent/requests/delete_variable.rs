//! `var purge`: deletes a variable.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::put_variable::wrong_index;
use super::{Asked, OperatorRequest, Subject};
use crate::effect::Reply;
use crate::model::variable::VariableKey;
use crate::store::Key;

/// Delete a variable. One that is not there is deleted already.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeleteVariable {
    /// Which.
    pub key: VariableKey,
    /// The index of the change that must be its last one; 0 if it must not be there.
    pub expect: Option<u64>,
}

impl OperatorRequest for DeleteVariable {
    fn name(&self) -> &'static str {
        "delete"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Variable(&self.key)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let variables = &mut asked.agent.local.variables;
        let known = variables.get(&self.key).map(|known| known.meta);
        if let Some(refusal) = wrong_index(known, self.expect) {
            return Some(refusal);
        }
        if known.is_some() {
            Arc::make_mut(variables).remove(&self.key);
            let ledger = &mut asked.agent.shared.ledger;
            ledger.delete(Key::Variable(self.key.clone()));
            asked.cx().next_index_without_a_record();
        }
        Some(asked.done())
    }
}
