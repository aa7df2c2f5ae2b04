//! Variables: who may change them, and that they stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::agent::requests::{DeleteVariable, PutVariable, Request, Subject};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::RequestId;
use drover_core::model::variable::{Variable, VariableKey, VariableMeta};
use drover_core::store::{Key, Record};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// The index of the last change of each variable when somebody wanted to change it; 0 if it was
    /// not there.
    there: BTreeMap<RequestId, u64>,
    /// What was known of each that was there.
    known: BTreeMap<RequestId, VariableMeta>,
    /// What the disk held when this life of the agent began, until that was looked at.
    saved: Option<BTreeMap<VariableKey, Arc<Variable>>>,
}

impl Variables {
    /// What an earlier agent left.
    pub(super) fn agent_restored(&mut self, world: &World) {
        let records = world.disk.records().iter();
        let variable = |(key, record): (&Key, &Record)| match (key, record) {
            (Key::Variable(key), Record::Variable(one)) => Some((key.clone(), one.clone())),
            _ => None,
        };
        self.there.clear();
        self.known.clear();
        self.saved = Some(records.filter_map(variable).collect());
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        if agent.view().shutdown().is_some() {
            return;
        }
        if let Subject::Variable(key) = asked.get().subject() {
            let there = agent.view().variables().get(key);
            self.known.extend(there.map(|one| (request, one.meta)));
            let there = there.map_or(0, |one| one.meta.modify_index);
            self.there.insert(request, there);
        }
    }
}

impl Checker {
    /// Who says what is there, and is wrong, is refused, and who is right or does not say is not.
    pub(super) fn variable_change_checks_index(
        &mut self,
        request: RequestId,
        asked: &Request,
        reply: &Reply,
    ) -> Verdict {
        let Some(there) = self.variables.there.remove(&request) else {
            return Ok(());
        };
        let (Request::PutVariable(PutVariable { expect, .. })
        | Request::DeleteVariable(DeleteVariable { expect, .. })) = asked
        else {
            return Ok(());
        };
        let right = expect.is_none_or(|expect| expect == there);
        let refused = matches!(reply, Reply::Refused(Refusal::Conflict(_)));
        self.holds(
            Property::VariableChangeChecksIndex,
            right != refused,
            || format!("{expect:?} was expected, {there} was there, and the answer is {reply:?}"),
        )?;
        self.written_variable_keeps_its_creation(request, reply)
    }

    fn written_variable_keeps_its_creation(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        let known = self.variables.known.remove(&request);
        let (Some(known), Reply::Variable(now)) = (known, reply) else {
            return Ok(());
        };
        let made = |meta: &VariableMeta| (meta.create_index, meta.create_time);
        let holds = made(&known) == made(now);
        self.holds(Property::WrittenVariableKeepsItsCreation, holds, || {
            format!("{known:?} became {now:?}")
        })
    }

    /// What an agent finds when it begins.
    pub(super) fn variables_survive_agent_restart(&mut self, agent: &Agent) -> Verdict {
        let Some(saved) = self.variables.saved.take() else {
            return Ok(());
        };
        let known = agent.view().variables();
        let so = saved == **known;
        if saved.is_empty() && so {
            return Ok(());
        }
        self.holds(Property::VariablesSurviveAgentRestart, so, || {
            format!("{} were saved, {} are known", saved.len(), known.len())
        })
    }
}

pub(super) fn saved_variable<'a>(world: &'a World, key: &VariableKey) -> Option<&'a Variable> {
    match world.disk.records().get(&Key::Variable(key.clone())) {
        Some(Record::Variable(variable)) => Some(variable),
        _ => None,
    }
}
