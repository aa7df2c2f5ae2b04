//! What comes from other nodes: that nothing starts beside what it replaces, or without its disk.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::remote::DISK_TRIES;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, GroupName, JobKey, RequestId};
use drover_core::model::job::Job;
use drover_core::model::remote::{Handed, RemotePrevious};
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// A copy of a group.
type Copy = (JobKey, GroupName, u32);

/// What is remembered of other nodes through all lives of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Remotes {
    /// What is replaced by which copy, and the index of the job since then.
    replaced: BTreeMap<AllocId, (Copy, u64)>,
    /// What is asked for and not answered yet.
    asked_for: BTreeMap<RequestId, (JobKey, Vec<Handed>)>,
    /// How often a disk was asked for.
    fetched: BTreeMap<AllocId, u32>,
    /// Whose disks are out of date: a copy that replaces them started since, with or without.
    outdated: BTreeSet<AllocId>,
    /// When the latest question about one left, in which life of the agent, and on whose behalf.
    asked: BTreeMap<(AllocId, AllocId), (u64, Instant)>,
}

impl Checker {
    /// Somebody says what copies of a job replace: what was said before counts no more, and this
    /// counts when it is answered.
    pub(super) fn is_handed(
        &mut self,
        agent: &Agent,
        request: RequestId,
        job: &Job,
        from: &[Handed],
    ) {
        let key = job.key();
        if agent.view().job(&key).is_some_and(|known| !known.job.stop) {
            return;
        }
        self.remotes.replaced.retain(|_, ((of, group, index), _)| {
            let mut from = from.iter();
            *of != key || !from.any(|handed| handed.is_for(group, *index))
        });
        let asked_for = &mut self.remotes.asked_for;
        asked_for.retain(|_, (of, _)| *of != key);
        asked_for.insert(request, (key, from.to_vec()));
    }

    /// A job is taken in.
    pub(super) fn is_registered(&mut self, request: RequestId, job_index: u64) {
        let Some((key, from)) = self.remotes.asked_for.remove(&request) else {
            return;
        };
        for handed in from {
            self.remotes.outdated.remove(&handed.from.alloc);
            let copy = (key.clone(), handed.group, handed.index);
            self.remotes
                .replaced
                .insert(handed.from.alloc, (copy, job_index));
        }
    }

    /// Of a job that is forgotten nothing is kept for anybody. One that is purged may be wanted again
    /// before that.
    pub(super) fn forget_handed(&mut self, agent: &Agent) {
        let is_known = |job: &JobKey| agent.view().job(job).is_some();
        let Remotes {
            replaced,
            asked_for,
            ..
        } = &mut self.remotes;
        replaced.retain(|_, ((job, _, _), _)| is_known(job));
        asked_for.retain(|_, (job, _)| is_known(job));
    }

    /// A task starts when what its allocation replaces on another node is over, and with what that
    /// left on its disk.
    pub(super) fn a_start_comes_after_the_remote_one(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        let group = alloc.job().group(record.group.as_str());
        let disk = group.and_then(|group| group.ephemeral_disk);
        let migrates = disk.is_some_and(|disk| disk.migrate);
        let own = (record.job.clone(), record.group.clone(), record.index);
        let replaced = self.remotes.replaced.iter();
        let replaced: Vec<AllocId> = replaced
            .filter(|(_, (copy, since))| *copy == own && record.create_index > *since)
            .map(|(id, _)| *id)
            .collect();
        for id in replaced {
            let remote = world.remotes.get(id);
            let over = remote.ended || remote.forgotten;
            self.holds(Property::NoStartBesideTheRemoteOne, over, || {
                format!("{} {} replaces {id}", record.name, record.id.short())
            })?;
            let tries = self.remotes.fetched.get(&id).copied().unwrap_or(0);
            let first = self.remotes.outdated.insert(id);
            let tried = !first || remote.given || remote.forgotten || tries >= DISK_TRIES;
            self.sometimes(Property::SometimesADiskIsFetched, remote.given);
            self.holds(Property::ARemoteDiskIsFetched, !migrates || tried, || {
                format!("{} starts without the disk of {id}", record.name)
            })?;
        }
        Ok(())
    }

    /// Another node is not asked without a pause.
    pub(crate) fn questions_have_a_pause(
        &mut self,
        world: &World,
        alloc: AllocId,
        previous: &RemotePrevious,
    ) -> Verdict {
        let (life, now) = (world.life, world.now().at);
        let key = (alloc, previous.alloc);
        let before = self.remotes.asked.insert(key, (life, now));
        let soon = before.is_some_and(|(of, at)| of == life && now - at < Span::secs(1));
        self.holds(Property::QuestionsHaveAPause, !soon, || {
            format!("{previous:?}, last asked {before:?}, now {now:?}")
        })
    }

    /// A disk is fetched when nobody writes to it any more.
    pub(crate) fn a_remote_disk_moves_at_rest(
        &mut self,
        world: &World,
        previous: &RemotePrevious,
    ) -> Verdict {
        *self.remotes.fetched.entry(previous.alloc).or_default() += 1;
        let remote = world.remotes.get(previous.alloc);
        let over = remote.ended || remote.forgotten;
        self.holds(Property::ARemoteDiskMovesAtRest, over, || {
            format!("{previous:?}")
        })?;
        let newest = !self.remotes.outdated.contains(&previous.alloc);
        self.holds(Property::NoOlderDiskComes, newest, || {
            format!("{previous:?}, and what replaced it ran already")
        })
    }
}
