//! Disks that migrate: what must hold where a copy and the one that it replaces are on different nodes.
//!
//! What an allocation had last is known to the model of the servers, whatever became of its directory since. Where the
//! one before ended before it got the disk itself, what the one before that had is asked for, and so on.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::View;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, NodeId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::MAX_EVENTS;
use drover_core::model::remote::RemotePrevious;
use drover_core::store::disk::MAX_LINKS;

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

    /// All is over: each disk lies where its copy lives, nobody else who lives has anything of it, and it has what was
    /// written before, unless its task was told that it has not.
    pub(super) fn disks_that_migrate_came_along(&self) -> Verdict {
        // Who has what these wrote.
        let mut holders = BTreeMap::<AllocId, AllocId>::new();
        for (node, alloc) in self.live_migrating() {
            let (id, at) = (alloc.record().id, node.world.link.node_id);
            let name = || node.world.scene.names.alloc(id);
            let has = node.world.dirs.disks.get(&id);
            for writer in has.into_iter().flatten() {
                let other = holders.insert(*writer, id);
                ensure(
                    other.is_none(),
                    "disk_that_migrates_lies_in_one_place",
                    || format!("{} on {at} has what {writer} wrote, as {other:?}", name()),
                )?;
            }
            ensure(
                has.is_some_and(|has| has.contains(&id)),
                "disk_that_migrates_is_where_its_copy_lives",
                || format!("{} on {at} has {has:?}", name()),
            )?;
            let lacks = self.lacks(node, id);
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
    fn lacks(&self, node: &Sim, id: AllocId) -> BTreeSet<AllocId> {
        let disks = &node.world.dirs.disks;
        let from = self.got_from(id).filter(|from| {
            let is_here =
                self.servers.alloc(*from).map(|it| it.node) == Some(node.world.link.node_id);
            // What was on this node may have been removed since.
            !is_here || disks.get(from).is_some_and(|left| left.contains(from))
        });
        let left = from.and_then(|from| self.servers.disk_left_by(from));
        let has = disks.get(&id);
        let left = left.into_iter().flatten();
        let lacks = left.filter(|one| has.is_none_or(|has| !has.contains(one)));
        lacks.copied().collect()
    }

    /// The last one before an allocation that had their disk.
    fn got_from(&self, id: AllocId) -> Option<AllocId> {
        let mut from = id;
        for _ in 0..MAX_LINKS {
            from = self.servers.alloc(from)?.states().next()?.previous?;
            // One that servers gave up may have gone on after it was asked for its disk.
            let known = self.servers.alloc(from);
            known.filter(|known| !was_given_up(known))?;
            if self.servers.disk_left_by(from).is_some() {
                return Some(from);
            }
            // Whose task was told that its disk is empty hands on nothing older, though it never ran.
            if self.began_empty(from) {
                return None;
            }
        }
        None
    }

    /// Whether the task of one that ended was told that its disk is empty; nobody can say where it is forgotten.
    fn began_empty(&self, id: AllocId) -> bool {
        let at = self.servers.alloc(id).map(|known| known.node);
        let mut nodes = self.nodes.iter();
        let node = nodes.find(|node| Some(node.world.link.node_id) == at);
        let alloc = node.and_then(|node| node.view()?.alloc(id));
        alloc.is_none_or(begins_empty)
    }

    /// How many of the copies that live have what another node's disk had.
    pub fn disks_that_came_along(&self) -> usize {
        let came = |(node, alloc): &(&Sim, &AllocRunner)| {
            let id = alloc.record().id;
            let from = self.got_from(id).filter(|_| self.comes_from(id).is_some());
            let has = node.world.dirs.disks.get(&id);
            from.is_some_and(|from| has.is_some_and(|has| has.contains(&from)))
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

/// What a node says of those that ended before they got their disks: from where they were to get them.
pub(super) fn awaited(node: &Sim) -> Vec<(AllocId, RemotePrevious)> {
    let Some(view) = node.view() else {
        return Vec::new();
    };
    let of_servers = view.disks().iter().filter_map(|(slot, disk)| {
        let alloc = view.alloc(slot.alloc?)?.record();
        let awaited = disk.elsewhere_of(alloc.id).filter(|_| alloc.finished)?;
        Some((alloc.id, awaited.clone()))
    });
    of_servers.collect()
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
