//! `var put`: a variable takes the place of what is there, if the request names the index at which that was last
//! changed, or asks for no check.
//!
//! Variables are records as jobs are. Templates see a change at once, as all readers do. Sizes and names are
//! checked by the API, because in a recording values have other sizes. `Items` prints nothing of itself, and
//! is written as pairs, so that recordings hide keys too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::effect::{Refusal, Reply};
use crate::model::variable::{Items, MAX_COUNT, Variable, VariableKey, VariableMeta};
use crate::store::{Key, Record};
use crate::text::quote;

/// Put a variable in the place of what is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PutVariable {
    /// Which; its path is one that a variable may have.
    pub key: VariableKey,
    /// What it holds from now.
    pub items: Items,
    /// The index of the change that must be its last one; 0 if it must not be there.
    pub expect: Option<u64>,
}

impl OperatorRequest for PutVariable {
    fn name(&self) -> &'static str {
        "put"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Variable(&self.key)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (key, variables) = (&self.key, &asked.agent.local.variables);
        let known = variables.get(key).map(|known| known.meta);
        if let Some(refusal) = wrong_index(known, self.expect) {
            return Some(refusal);
        }
        let what = format!("variable {}", quote(&key.path));
        if let Err(why) = asked.agent.check_namespace(&key.namespace, &what) {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        if known.is_none() && variables.len() >= MAX_COUNT {
            let why = format!("there are {MAX_COUNT} variables already, the maximum");
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let (index, now) = (asked.cx().next_index(), asked.now);
        let meta = VariableMeta {
            create_index: known.map_or(index, |known| known.create_index),
            create_time: known.map_or(now.wall, |known| known.create_time),
            modify_index: index,
            modify_time: now.wall,
        };
        let items = self.items.clone();
        let variable = Arc::new(Variable { meta, items });
        let record = Record::Variable(variable.clone());
        let ledger = &mut asked.agent.shared.ledger;
        ledger.put(Key::Variable(key.clone()), record);
        Arc::make_mut(&mut asked.agent.local.variables).insert(key.clone(), variable);
        Some(Reply::Variable(meta))
    }
}

/// What is there is not what was expected.
pub(super) fn wrong_index(known: Option<VariableMeta>, expect: Option<u64>) -> Option<Reply> {
    let there = known.map_or(0, |known| known.modify_index);
    let expect = expect.filter(|expect| *expect != there)?;
    Some(conflict(&format!(
        "cas error: requested index {expect}; found index {there}"
    )))
}
