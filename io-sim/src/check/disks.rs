//! Disks: what a replacement takes over, from whom, and when.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, JobKey};
use drover_core::store::record::AllocRecord;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// A task of a group with a sticky disk starts with what was written before it.
    pub(super) fn a_disk_is_handed_on(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let group = alloc.job().group(alloc.record().group.as_str());
        let disk = group.and_then(|group| group.ephemeral_disk);
        if !disk.is_some_and(|disk| disk.sticky || disk.migrate) {
            return Ok(());
        }
        let Some(before) = self.last_that_wrote(world, agent, alloc) else {
            return Ok(());
        };
        let record = alloc.record();
        let disk = world.dirs.disks.get(&record.id);
        let there = disk.is_some_and(|disk| disk.contains(&before));
        self.sometimes(Property::SometimesADiskIsHandedOn, there);
        self.holds(Property::ADiskIsHandedOn, there, || {
            let (name, id, before) = (&record.name, record.id.short(), before.short());
            format!("{name} {id} starts without what {before} wrote, with {disk:?}")
        })
    }

    /// Of those whose place this allocation took, the last of which anything ever ran, unless it was
    /// purged.
    fn last_that_wrote(
        &self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Option<AllocId> {
        let ran = |id: AllocId| {
            let mut processes = world.processes.values();
            processes.any(|process| process.key.alloc == id && process.starts > 0)
        };
        let mut heir = alloc.record();
        loop {
            let previous = heir.previous?;
            let lives = &self.lives;
            if lives.purged.contains(&previous) || lives.without_heritage.contains(&heir.id) {
                return None;
            }
            if ran(previous) {
                return Some(previous);
            }
            heir = agent.view().alloc(previous)?.record();
        }
    }

    /// An allocation that is new; of what is being cleaned away it gets nothing.
    pub(super) fn note_heritage(&mut self, agent: &Agent, new: &AllocRecord) {
        if let Some(previous) = new.previous {
            self.lives.previous.insert(new.id, previous);
        }
        let previous = new.previous.and_then(|id| agent.view().alloc(id));
        let previous = previous.map(AllocRunner::record);
        // What another node has is newer than what is left here.
        let job = agent.view().job(&new.job).map(|known| &known.job);
        let group = job.and_then(|job| job.group(new.group.as_str()));
        let disk = group.and_then(|group| group.ephemeral_disk);
        let moved = disk.is_some_and(|disk| disk.migrate) && new.remote.is_some();
        if moved || previous.is_none_or(|previous| previous.destroying) {
            self.lives.without_heritage.insert(new.id);
        }
    }

    /// Of a job that is purged nothing is kept for anybody.
    pub(super) fn note_purge(&mut self, agent: &Agent, job: &JobKey) {
        let of_job = agent.view().allocs_of(job).map(|alloc| alloc.record().id);
        self.lives.purged.extend(of_job);
    }

    /// What an allocation has that somebody wants to be gone may be the disk of those before it.
    pub(super) fn note_collection(&mut self, alloc: AllocId) {
        let before: Vec<_> = self.lives.with_those_before(alloc).collect();
        self.lives.purged.extend(before);
    }

    /// A disk is taken over when nobody writes to it any more, unless patience is over.
    pub(crate) fn a_disk_moves_at_rest(
        &mut self,
        world: &World,
        agent: &Agent,
        from: &[AllocId],
    ) -> Verdict {
        let given_up = |alloc: AllocId, task| {
            let task = agent.view().alloc(alloc).and_then(|alloc| alloc.task(task));
            task.is_some_and(TaskRunner::is_dead)
        };
        let mut alive = world.alive().map(|(_, process)| process);
        let writer = alive.find(|process| {
            let key = &process.key;
            from.contains(&key.alloc) && !given_up(key.alloc, &key.task)
        });
        let name = writer.map(|process| process.name.to_string());
        self.holds(Property::ADiskMovesAtRest, name.is_none(), || {
            format!("{name:?} still writes")
        })
    }
}
