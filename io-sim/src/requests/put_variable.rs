//! See the core's request of the same name.

use std::collections::BTreeMap;

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::variable::{Items, VariableKey};
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A variable is put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutVariable {
    /// What it holds.
    pub value: u64,
    /// What must be there.
    pub expect: Expect,
}

/// What somebody expects of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// That it is or is not there, however it is.
    Anything,
    /// That it is not there.
    Nothing,
    /// That it is as the agent shows it.
    WhatIsShown,
}

impl Expect {
    /// The index that somebody expects of the variable.
    pub(super) fn index(self, sim: &Sim) -> Option<u64> {
        match self {
            Expect::Anything => None,
            Expect::Nothing => Some(0),
            Expect::WhatIsShown => {
                let shown = sim.view()?.variables().get(&the_variable());
                Some(shown.map_or(0, |one| one.meta.modify_index))
            }
        }
    }
}

/// The only variable of random worlds.
pub(super) fn the_variable() -> VariableKey {
    VariableKey {
        namespace: "default".into(),
        path: "nomad/jobs".into(),
    }
}

impl ActKind for PutVariable {
    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        let items = BTreeMap::from([("key".to_owned(), self.value.to_string())]);
        let expect = self.expect.index(sim);
        sim.ask(requests::PutVariable {
            key: the_variable(),
            items: Items::new(items).unwrap_or_default(),
            expect,
        });
        Ok(())
    }
}

impl Simulated for requests::PutVariable {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Variable(meta) = reply else {
            return None;
        };
        Some(match facts.variable(&self.key) {
            Some(saved) => saved.meta.modify_index >= meta.modify_index,
            None => facts.replies.deletes(&self.key),
        })
    }
}
