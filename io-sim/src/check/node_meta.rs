//! The operator's keys of the node: what was asked for, over what the configuration says.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::placement::PlacementFailure;

use super::draining::saved_node;
use super::limits::NODE_META_KEYS;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What was asked for in this life of the agent, and what the disk held when it began.
pub(super) type NodeMeta = BTreeMap<String, Option<String>>;

impl Checker {
    pub(super) fn meta_of_new_agent(&mut self, world: &World) {
        self.node_meta = saved_node(world)
            .map(|node| node.meta.clone())
            .unwrap_or_default();
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn meta_is_applied(&mut self, agent: &Agent, asked: &Request) {
        if agent.view().shutdown().is_some() {
            return;
        }
        if let Request::ApplyNodeMeta(asked) = asked {
            let pairs = asked.meta.iter();
            let pairs = pairs.map(|(key, value)| (key.clone(), value.clone()));
            let mut meta = self.node_meta.clone();
            meta.extend(pairs);
            meta.retain(|key, value| value.is_some() || self.configured_meta.contains_key(key));
            // Whoever asks for too much is refused.
            if meta.len() <= NODE_META_KEYS {
                self.node_meta = meta;
            }
        }
    }

    /// The keys that the node shall have.
    pub(super) fn wanted_meta(&self) -> BTreeMap<String, String> {
        let mut wanted = self.configured_meta.clone();
        for (key, value) in &self.node_meta {
            match value {
                Some(value) => drop(wanted.insert(key.clone(), value.clone())),
                None => drop(wanted.remove(key)),
            }
        }
        wanted
    }

    /// The node has the values that were asked for last, and of other keys those of its configuration.
    pub(super) fn node_has_applied_meta(&mut self, agent: &Agent) -> Verdict {
        let wanted = self.wanted_meta();
        let meta = &agent.view().node().meta;
        self.holds(Property::NodeHasAppliedMeta, wanted == *meta, || {
            format!("{meta:?}, not {wanted:?}")
        })
    }

    /// No job waits for a constraint that the node fulfils.
    pub(super) fn no_wait_for_fulfilled_constraint(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for job in view.jobs() {
            for (name, why) in view.blocked(&job.job.key()) {
                let PlacementFailure::Constraint(constraint) = why else {
                    continue;
                };
                let group = job.job.group(name);
                let waits = match is_fulfilled(constraint, &view.node().meta) {
                    Some(fulfilled) => !fulfilled && asks_for(&job.job, group, constraint),
                    None => group.is_none_or(|group| view.admits(&job.job, group).is_err()),
                };
                self.holds(Property::NoWaitForFulfilledConstraint, waits, || {
                    format!("{} {why}", job.job.id)
                })?;
            }
        }
        Ok(())
    }
}

/// Whether a node with these keys fulfils a constraint that asks for the value of one; none of other constraints.
fn is_fulfilled(constraint: &str, meta: &BTreeMap<String, String>) -> Option<bool> {
    let (key, rest) = constraint.strip_prefix("${meta.")?.split_once("} ")?;
    let (operand, value) = rest.split_once(' ')?;
    let is_it = || meta.get(key).is_some_and(|it| it == value);
    match operand {
        _ if value.contains("${") => None,
        "=" => Some(is_it()),
        "!=" => Some(!is_it()),
        _ => None,
    }
}

/// Whether a job has such a constraint, for itself or for a group.
fn asks_for(job: &Job, group: Option<&TaskGroup>, constraint: &str) -> bool {
    let of_tasks = group.into_iter().flat_map(|group| &group.tasks);
    let of_tasks = of_tasks.flat_map(|task| &task.constraints);
    let of_group = group.into_iter().flat_map(|group| &group.constraints);
    let mut all = job.constraints.iter().chain(of_group).chain(of_tasks);
    all.any(|it| format!("{} {} {}", it.target, it.operand, it.value) == constraint)
}
