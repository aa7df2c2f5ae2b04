//! Variables: put and deleted, if the request names the index at which the variable was last
//! changed, or asks for no check.
//!
//! They are records as jobs are, and a request is acknowledged when the change is saved. Templates
//! see a change at once, as all readers do. Sizes and names are checked by the API, because in a
//! recording values have other sizes. `Items` prints nothing of itself, and is written as pairs, so
//! that recordings hide keys too.

use std::sync::Arc;

use super::{Agent, cx};
use crate::effect::{Refusal, Reply};
use crate::model::variable::{Items, MAX_COUNT, Variable, VariableKey, VariableMeta};
use crate::store::{Key, Record};
use crate::time::Now;

impl Agent {
    /// Puts a variable in the place of what is there. `expect` is the index of its last change, 0 for
    /// one that is not there; without it anything may be there.
    pub(super) fn put_variable(
        &mut self,
        now: Now,
        key: VariableKey,
        items: Items,
        expect: Option<u64>,
    ) -> Reply {
        let known = self.local.variables.get(&key).map(|known| known.meta);
        if let Some(refusal) = conflict(known, expect) {
            return refusal;
        }
        if known.is_none() && self.local.variables.len() >= MAX_COUNT {
            let why = format!("there are {MAX_COUNT} variables, and no more are kept");
            return Reply::Refused(Refusal::Invalid(why));
        }
        let index = cx(&self.config, &mut self.shared, now).next_index();
        let meta = VariableMeta {
            create_index: known.map_or(index, |known| known.create_index),
            create_time: known.map_or(now.wall, |known| known.create_time),
            modify_index: index,
            modify_time: now.wall,
        };
        let variable = Arc::new(Variable { meta, items });
        let record = Record::Variable(variable.clone());
        self.shared.ledger.put(Key::Variable(key.clone()), record);
        Arc::make_mut(&mut self.local.variables).insert(key, variable);
        Reply::Variable(meta)
    }

    /// Deletes a variable. One that is not there is deleted already.
    pub(super) fn delete_variable(
        &mut self,
        now: Now,
        key: VariableKey,
        expect: Option<u64>,
    ) -> Reply {
        let known = self.local.variables.get(&key).map(|known| known.meta);
        if let Some(refusal) = conflict(known, expect) {
            return refusal;
        }
        if known.is_some() {
            Arc::make_mut(&mut self.local.variables).remove(&key);
            self.shared.ledger.delete(Key::Variable(key));
            cx(&self.config, &mut self.shared, now).next_index_without_a_record();
        }
        Reply::Done {
            index: self.shared.index,
        }
    }
}

/// What is there is not what was expected.
fn conflict(known: Option<VariableMeta>, expect: Option<u64>) -> Option<Reply> {
    let there = known.map_or(0, |known| known.modify_index);
    let expect = expect.filter(|expect| *expect != there)?;
    let why = format!("cas error: requested index {expect}; found index {there}");
    Some(Reply::Refused(Refusal::Conflict(why)))
}
