//! Disks that migrate: what must hold where a copy and the one that it replaces are on different nodes.
//!
//! What an allocation had last is known to the model of the servers, whatever became of its directory since. No more is
//! asked for than what the one before had: where that one ended before it got the disk itself, nobody goes further back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::View;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, NodeId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::MAX_EVENTS;

use super::Fleet;
use crate::check::{Verdict, ensure};
use crate::servers::Alloc;
use crate::sim::Sim;

/// How the words begin by which a task is told that it has an empty disk.
const BEGINS_EMPTY: &str = "Did not migrate the disk";

impl Fleet {
    /// Nobody writes on a disk that migrates while the one that it is to come from lives on another node, and is not over
    /// for the servers.
    pub(super) fn disk_that_migrates_has_one_writer(
        &self,
        living: &[(AllocId, NodeId)],
    ) -> Verdict {
        for (id, node) in living {
            let Some((previous, known)) = self.comes_from(*id) else {
                continue;
            };
            let lives = living.iter().any(|(of, _)| *of == previous);
            let holds = !lives || is_over(known);
            ensure(holds, "disk_that_migrates_has_one_writer", || {
                format!("{id} on {node} and {previous} on {}", known.node)
            })?;
        }
        Ok(())
    }

    /// What lies on another node and is to come along to this allocation.
    fn comes_from(&self, id: AllocId) -> Option<(AllocId, &Alloc)> {
        let alloc = self.servers.alloc(id)?;
        let placed = alloc.states().next()?;
        let previous = placed.previous?;
        let known = self.servers.alloc(previous)?;
        let job = placed.job.as_ref().ok()?;
        let disk = job.group(placed.group.as_str())?.ephemeral_disk?;
        (disk.migrate && known.node != alloc.node).then_some((previous, known))
    }

    /// All is over: each disk lies where its copy lives, once, and has what was written on another node before, unless
    /// its task was told that it has not.
    pub(super) fn disks_that_migrate_came_along(&self) -> Verdict {
        let mut places = BTreeMap::<Arc<str>, NodeId>::new();
        for (node, alloc) in self.live_migrating() {
            let (id, at) = (alloc.record().id, node.world.node_id);
            let name = || node.world.names.alloc(id);
            let other = places.insert(alloc.record().name.clone(), at);
            ensure(
                other.is_none_or(|other| other == at),
                "disk_that_migrates_lies_in_one_place",
                || format!("{} on {at} and {other:?}", name()),
            )?;
            let has = node.world.dirs.disks.get(&id);
            ensure(
                has.is_some_and(|has| has.contains(&id)),
                "disk_that_migrates_is_where_its_copy_lives",
                || format!("{} on {at} has {has:?}", name()),
            )?;
            let lacks = self.lacks(id, has);
            ensure(
                lacks.is_empty() || begins_empty(alloc),
                "disk_that_migrates_comes_along",
                || format!("{} on {at} has {has:?}, and not {lacks:?}", name()),
            )?;
        }
        Ok(())
    }

    /// The copies of jobs with disks that migrate that live.
    fn live_migrating(&self) -> impl Iterator<Item = (&Sim, &AllocRunner)> {
        self.nodes.iter().flat_map(|node| {
            let alive = node.world.alive().map(|(_, process)| process.key.alloc);
            let alive: BTreeSet<AllocId> = alive.collect();
            let alloc = move |id| node.view()?.alloc(id).filter(|it| migrates(it));
            alive
                .into_iter()
                .filter_map(alloc)
                .map(move |it| (node, it))
        })
    }

    /// What should have come along to an allocation and is not on its disk.
    fn lacks(&self, id: AllocId, has: Option<&BTreeSet<AllocId>>) -> BTreeSet<AllocId> {
        // One that servers gave up may have gone on after it was asked for its disk.
        let from = self
            .comes_from(id)
            .filter(|(_, known)| !was_given_up(known));
        let left = from.and_then(|(previous, _)| self.servers.disk_left_by(previous));
        let left = left.into_iter().flatten();
        let lacks = left.filter(|one| has.is_none_or(|has| !has.contains(one)));
        lacks.copied().collect()
    }

    /// How many of the copies that live have what another node's disk had.
    pub fn disks_that_came_along(&self) -> usize {
        let came = |(node, alloc): &(&Sim, &AllocRunner)| {
            let from = self.comes_from(alloc.record().id);
            let has = node.world.dirs.disks.get(&alloc.record().id);
            from.is_some_and(|(previous, _)| has.is_some_and(|has| has.contains(&previous)))
        };
        self.live_migrating().filter(came).count()
    }

    /// Whether a node may still fetch a disk from another one.
    pub(super) fn is_disk_on_its_way(&self) -> bool {
        let views = self.nodes.iter().filter_map(|node| node.view());
        let mut disks = views.flat_map(|view: View<'_>| view.disks().values());
        disks.any(|disk| disk.elsewhere.is_some())
    }
}

fn migrates(alloc: &AllocRunner) -> bool {
    let group = alloc.job().group(alloc.record().group.as_str());
    let disk = group.and_then(|group| group.ephemeral_disk);
    disk.is_some_and(|disk| disk.migrate)
}

/// Whether servers ever had it as one that does not run any more, or have it no more.
fn is_over(alloc: &Alloc) -> bool {
    let mut states = alloc.states();
    alloc.now().is_none() || was_given_up(alloc) || states.any(|it| it.client_status.is_terminal())
}

/// Whether servers ever lost sight of it.
fn was_given_up(alloc: &Alloc) -> bool {
    let given_up = [ClientStatus::Lost, ClientStatus::Unknown];
    let mut states = alloc.states();
    states.any(|it| given_up.contains(&it.client_status))
}

/// Whether its tasks were told that their disk is empty; of one with more events than are kept nobody can say.
fn begins_empty(alloc: &AllocRunner) -> bool {
    let mut events = alloc.tasks().iter().map(|task| &task.state().events);
    events.any(|events| {
        let mut words = events.iter().map(|event| &event.display_message);
        events.len() >= MAX_EVENTS || words.any(|it| it.starts_with(BEGINS_EMPTY))
    })
}
