//! Allocations of servers are as the servers last said, wherever they are.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::PlacedAlloc;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::task::Hook;

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What servers said last of an allocation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newest {
    pub(super) index: u64,
    pub(super) version: Option<u64>,
    pub(super) ends: bool,
    /// Whether it counts for a roll-out.
    pub(super) rolls: bool,
}

impl Newest {
    pub(super) fn of(placed: &PlacedAlloc) -> Newest {
        Newest {
            index: placed.modify_index,
            version: placed.job.as_ref().ok().map(|it| it.version),
            ends: placed.desired.is_terminal(),
            rolls: placed.deployment.is_some(),
        }
    }
}

impl Checker {
    /// What servers placed starts here if they placed it here, and did not say since that it shall end.
    pub(in crate::check) fn placed_alloc_starts_where_it_was_placed(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let record = alloc.record();
        let Some(servers) = world.link.servers.as_ref().filter(|_| record.of_servers) else {
            return Ok(());
        };
        let task = alloc.task(&key.task).map(|task| task.spec().task());
        let lifecycle = task.and_then(|task| task.lifecycle.as_ref());
        let is_last = lifecycle.is_some_and(|it| it.hook == Hook::Poststop);
        let here = servers.alloc(record.id);
        let here = here.is_some_and(|it| it.node == world.link.node_id);
        let ends = self.cluster.newest.get(&record.id);
        let ends = ends.is_some_and(|it| it.ends) && !is_last;
        let holds = here && !ends;
        self.holds(Property::PlacedAllocStartsWhereItWasPlaced, holds, || {
            let name = world.scene.names.task(key);
            match here {
                true => format!("{name} starts, and servers said that it shall end"),
                false => format!("{name} starts, and servers did not place it on this node"),
            }
        })
    }

    /// Whether an allocation may end though servers did not say so: they are silent, or the agent was told to end all.
    fn may_end_unasked(&self, id: AllocId) -> bool {
        self.ends_tasks || self.cluster.silence.ended.contains(&id)
    }

    /// What servers said last of an allocation holds, and nothing that they said before.
    pub(in crate::check) fn placed_allocs_are_as_servers_said(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        if self.leaving || self.cluster.newest.is_empty() {
            return Ok(());
        }
        let view = agent.view();
        let newest: Vec<(AllocId, Newest)> = (self.cluster.newest.iter())
            .map(|(id, it)| (*id, *it))
            .collect();
        for (id, newest) in newest {
            let Some(alloc) = view.alloc(id).filter(|it| it.record().of_servers) else {
                continue;
            };
            self.servers_that_answer_end_no_alloc_by_silence(world, alloc)?;
            let record = alloc.record();
            let has_version = newest.version.is_none_or(|it| it == record.job_version);
            let is_right = record.status.is_terminal()
                || match (newest.ends, record.desired.is_terminal()) {
                    (true, ends) => ends,
                    // They may have forgotten it, or that it was to end.
                    (false, true) => {
                        self.may_end_unasked(id)
                            || !self.cluster.named.contains(&id)
                            || self.cluster.told_to_end.contains(&id)
                    }
                    (false, false) => has_version,
                };
            self.holds(Property::PlacedAllocIsAsServersSaid, is_right, || {
                let (name, has) = (world.scene.names.alloc(id), record.job_version);
                let desired = record.desired.as_str();
                format!("{name} has version {has} and shall {desired}; servers said {newest:?}")
            })?;
        }
        Ok(())
    }
}
