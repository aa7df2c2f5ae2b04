//! A node that is ineligible or drained: what is asked for decides, and what the disk holds when an agent begins.

use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::requests::{Request, UpdateDrain};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::AllocId;
use drover_core::model::drain::{DrainDeadline, DrainSpec, Eligibility};
use drover_core::model::job::JobType;
use drover_core::model::placement::PlacementFailure;
use drover_core::store::node::NodeRecord;
use drover_core::store::{Key, Record};
use drover_core::time::{Instant, Span};

use super::policy::drained_at_a_time;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is known of the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Draining {
    ineligible: bool,
    drain: Option<Drain>,
    /// The index before which everything was placed, while nothing is to be placed.
    closed_at: Option<u64>,
    /// The allocations of which a drain was seen to stop them.
    stopped: BTreeSet<AllocId>,
}

/// A drain that somebody asked for.
#[derive(Clone, Copy, Debug)]
struct Drain {
    spec: DrainSpec,
    /// Until when what is left may go on.
    until: Option<Instant>,
    /// Whether the agent was called at that time or later.
    forced: bool,
}

impl Drain {
    fn ignores(&self, alloc: &AllocRunner) -> bool {
        self.spec.ignore_system_jobs && is_system(alloc)
    }
}

fn is_system(alloc: &AllocRunner) -> bool {
    match alloc.job().job_type {
        JobType::System | JobType::Sysbatch => true,
        JobType::Service | JobType::Batch => false,
    }
}

/// Whether it has to be told to end, or would go on for ever.
fn goes_on(alloc: &AllocRunner) -> bool {
    let record = alloc.record();
    !record.desired.is_terminal() && !record.status.is_terminal() && !record.finished
}

pub(super) fn saved_node(world: &World) -> Option<&NodeRecord> {
    match world.disk.records().get(&Key::Node) {
        Some(Record::Node(node)) => Some(node),
        _ => None,
    }
}

impl Draining {
    /// A new agent goes on with what the disk holds.
    pub(super) fn agent_restored(&mut self, world: &World) {
        *self = Draining::default();
        let records = world.disk.records().values();
        self.stopped = records
            .filter_map(|record| match record {
                Record::Alloc(alloc) if alloc.drained => Some(alloc.id),
                _ => None,
            })
            .collect();
        let Some(node) = saved_node(world) else {
            return;
        };
        self.ineligible = node.eligibility == Eligibility::Ineligible;
        self.drain = node.drain.map(|drain| {
            let until = match (drain.spec.deadline, drain.force_at) {
                (DrainDeadline::After(span), Some(force_at)) => {
                    let left = (force_at - world.now().wall).0.clamp(0, span.0);
                    Some(world.scene.at + Span(left))
                }
                (DrainDeadline::After(_) | DrainDeadline::Never, _) => None,
                (DrainDeadline::Force, _) => Some(world.scene.at),
            };
            Drain {
                spec: drain.spec,
                until,
                forced: until.is_some_and(|until| until <= world.scene.at),
            }
        });
        self.closed_at = self.is_closed().then_some(node.modify_index);
    }

    fn is_closed(&self) -> bool {
        self.ineligible || self.drain.is_some()
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn asked(&mut self, world: &World, agent: &Agent, asked: &Request) {
        if agent.view().shutdown().is_some() {
            return;
        }
        match asked {
            Request::SetEligibility(asked) => match asked.eligibility {
                Eligibility::Ineligible => self.ineligible = true,
                Eligibility::Eligible => self.ineligible = self.drain.is_some(),
            },
            Request::UpdateDrain(UpdateDrain {
                spec: Some(spec), ..
            }) => {
                let until = match spec.deadline {
                    DrainDeadline::Force => Some(world.scene.at),
                    DrainDeadline::Never => None,
                    DrainDeadline::After(span) => Some(world.scene.at + span),
                };
                let forced = spec.deadline == DrainDeadline::Force;
                let spec = *spec;
                (self.ineligible, self.drain) = (
                    true,
                    Some(Drain {
                        spec,
                        until,
                        forced,
                    }),
                );
            }
            Request::UpdateDrain(UpdateDrain {
                spec: None,
                mark_eligible,
                ..
            }) => {
                self.drain = None;
                self.ineligible &= !mark_eligible;
            }
            _ => return,
        }
        let index = agent.view().index();
        self.closed_at = match self.is_closed() {
            true => Some(self.closed_at.unwrap_or(index)),
            false => None,
        };
    }

    /// The agent is called back.
    pub(super) fn called_back(&mut self, world: &World) {
        if let Some(drain) = &mut self.drain {
            drain.forced |= drain.until.is_some_and(|until| until <= world.scene.at);
        }
    }
}

impl Checker {
    /// Looks at the node after a step.
    pub(super) fn draining(&mut self, world: &World, agent: &Agent) -> Verdict {
        if agent.view().shutdown().is_some() {
            return Ok(());
        }
        self.ineligible_node_places_nothing(agent)?;
        self.drain_takes_turns(agent)?;
        self.drain_is_over_when_nothing_is_left(world, agent)?;
        self.drain_deadline_is_kept(world, agent)
    }

    /// The drain is over: nothing that it was to stop is alive.
    fn drain_is_over_when_nothing_is_left(&mut self, world: &World, agent: &Agent) -> Verdict {
        let view = agent.view();
        let Some(drain) = self.draining.drain else {
            return Ok(());
        };
        if view.node_record().drain.is_some() {
            return Ok(());
        }
        self.draining.drain = None;
        self.sometimes(Property::SometimesDrainCompletes, true);
        let mut allocs = view.allocs().filter(|alloc| !drain.ignores(alloc));
        let left = allocs.find(|alloc| {
            let lives = |one: &crate::process::Process| one.key.alloc == alloc.record().id;
            !alloc.record().finished || world.alive().any(|(_, one)| lives(one))
        });
        let name = left.map(|alloc| alloc.record().name.clone());
        let kept = view.node_record().eligibility == Eligibility::Ineligible;
        self.holds(
            Property::DrainIsOverWhenNothingIsLeft,
            left.is_none() && kept,
            || format!("{name:?} is left, ineligible {kept}"),
        )
    }

    fn ineligible_node_places_nothing(&mut self, agent: &Agent) -> Verdict {
        let Some(closed_at) = self.draining.closed_at else {
            return Ok(());
        };
        let mut allocs = agent.view().allocs().map(AllocRunner::record);
        let new = allocs.find(|alloc| alloc.create_index > closed_at);
        let name = new.map(|alloc| alloc.name.clone());
        self.holds(Property::IneligibleNodePlacesNothing, new.is_none(), || {
            format!("{name:?} was placed")
        })
    }

    fn drain_takes_turns(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let drained = view.allocs().filter(|alloc| alloc.record().drained);
        let new: Vec<_> = drained
            .filter(|alloc| !self.draining.stopped.contains(&alloc.record().id))
            .collect();
        for alloc in new {
            let record = alloc.record();
            self.draining.stopped.insert(record.id);
            let right = match self.draining.drain {
                None => false,
                Some(drain) if drain.ignores(alloc) => false,
                Some(drain) if drain.forced => {
                    self.sometimes(Property::SometimesDrainIsForced, true);
                    true
                }
                Some(_) => is_its_turn(agent, alloc),
            };
            let drain = self.draining.drain;
            self.holds(Property::DrainTakesTurns, right, || {
                format!("{} {drain:?}", record.name)
            })?;
        }
        Ok(())
    }

    /// Whoever drives the agent calls it at the deadline at the latest, and then all is told to end.
    fn drain_deadline_is_kept(&mut self, world: &World, agent: &Agent) -> Verdict {
        let Some(drain) = self.draining.drain else {
            return Ok(());
        };
        if let Some(until) = drain.until.filter(|_| !drain.forced) {
            let called = agent.poll_timeout().map(|(at, _)| at);
            let holds = called.is_some_and(|at| at <= until.max(world.scene.at));
            return self.holds(Property::DrainDeadlineIsKept, holds, || {
                format!("until {until:?}, called {called:?}")
            });
        }
        let mut left = agent.view().allocs().filter(|alloc| goes_on(alloc));
        let left = left.find(|alloc| drain.forced && !drain.ignores(alloc));
        let name = left.map(|alloc| alloc.record().name.clone());
        self.holds(Property::DrainDeadlineIsKept, left.is_none(), || {
            format!("{name:?} goes on")
        })
    }

    /// A drain that can end ends.
    pub(super) fn drain_ends(&mut self, world: &World, agent: &Agent) -> Verdict {
        let view = agent.view();
        let node = view.node_record();
        let Some(drain) = node.drain else {
            // The last one is over, if there was one.
            if node.last_drain.is_some() {
                self.reached.note(Property::DrainEnds);
            }
            return Ok(());
        };
        let forced = self.draining.drain.is_none_or(|drain| {
            drain.forced || drain.until.is_some_and(|until| until <= world.scene.at)
        });
        let mut batch = view.allocs().filter(|alloc| goes_on(alloc));
        let waits = batch.any(|alloc| alloc.job().job_type == JobType::Batch);
        self.holds(Property::DrainEnds, waits && !forced, || {
            format!("{drain:?}")
        })?;
        // Only system jobs may wait beside it.
        let mut allocs = view.allocs().filter(|alloc| goes_on(alloc));
        let late = allocs.find(|alloc| alloc.job().job_type == JobType::Service);
        let name = late.map(|alloc| alloc.record().name.clone());
        self.holds(Property::DrainEnds, late.is_none(), || format!("{name:?}"))
    }

    pub(super) fn jobs_wait_only_for_closed_node(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for job in view.jobs() {
            let closed = view.blocked(&job.job.key()).iter().any(|(_, why)| {
                matches!(
                    why,
                    PlacementFailure::Ineligible | PlacementFailure::Draining
                )
            });
            let holds = !closed || self.draining.is_closed();
            self.holds(Property::JobsWaitOnlyForClosedNode, holds, || {
                job.job.id.clone()
            })?;
        }
        Ok(())
    }
}

/// Whether a drain that is not forced may stop an allocation beside the others.
fn is_its_turn(agent: &Agent, alloc: &AllocRunner) -> bool {
    let view = agent.view();
    let mut others = view.allocs().filter(|one| !one.is_gone());
    match alloc.job().job_type {
        JobType::Batch => false,
        JobType::System | JobType::Sysbatch => others.all(is_system),
        JobType::Service => {
            let record = alloc.record();
            let siblings = others.filter(|one| {
                let (job, group) = (&one.record().job, &one.record().group);
                (job, group) == (&record.job, &record.group)
            });
            let limits = siblings.clone().filter_map(|one| {
                let group = one.job().group(record.group.as_str());
                group.map(drained_at_a_time)
            });
            let ending = siblings.clone().filter(|one| one.record().drained).count();
            ending <= limits.max().unwrap_or(1)
        }
    }
}
