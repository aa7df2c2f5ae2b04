//! What is forgotten of jobs because nothing depends on it any more.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::config::Retention;
use drover_core::ids::{EvalId, JobKey};
use drover_core::model::eval::Evaluation;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::store::{Batch, Key, Record, Saved};
use drover_core::time::{Span, Timestamp};

use super::after::After;
use super::history::saved_job;
use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// How long after its time garbage may still be there.
const SLACK: Span = Span::secs(600);

/// The ids of evaluations and the like that something still refers to.
fn alive(saved: &Saved) -> impl Iterator<Item = &AllocRecord> {
    let allocs = saved.allocs.values().map(|alloc| &**alloc);
    allocs.filter(|alloc| !alloc.finished)
}

/// Whether an evaluation is the latest of its job, which is there, of those that do not wait for a replacement.
fn is_latest(saved: &Saved, eval: &Evaluation) -> bool {
    let of_job = saved.evals.values().filter(|other| other.job == eval.job);
    let of_job = of_job.filter(|other| !other.is_waiting());
    saved.jobs.contains_key(&eval.job)
        && of_job.map(|other| other.create_index).max() == Some(eval.create_index)
}

impl Checker {
    /// Looks at a commit that leaves.
    pub(super) fn only_garbage_is_collected(&mut self, world: &World, batch: &Batch) -> Verdict {
        let forgets = |(key, record): (&Key, &Option<Record>)| match (key, record) {
            (Key::Job(_), Some(Record::Job(job))) => job.purge,
            (Key::Job(_) | Key::Eval(_), None) => true,
            _ => false,
        };
        if !batch.iter().any(forgets) {
            return Ok(());
        }
        let saved = world.disk.saved();
        for (key, record) in batch {
            match (key, record) {
                (Key::Job(key), Some(Record::Job(job))) if job.purge => {
                    self.forgotten_job_is_dead(world, batch, &saved, key)?;
                }
                (Key::Job(key), None) => self.forgotten_job_is_dead(world, batch, &saved, key)?,
                (Key::Eval(id), None) => {
                    self.forgotten_evaluation_is_expired(world, batch, &saved, *id)?
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A job that nobody asked to forget is dead, for hours unless somebody asked for all garbage to go,
    /// and no other node is to fetch its disk.
    fn forgotten_job_is_dead(
        &mut self,
        world: &World,
        batch: &Batch,
        saved: &Saved,
        key: &JobKey,
    ) -> Verdict {
        let before = saved_job(world, key);
        self.forgotten_child_is_dead(world, batch, key)?;
        let known = before.filter(|job| !job.purge && !job.job.is_child());
        let Some(job) = known.filter(|_| !self.replies.purges(key)) else {
            return Ok(());
        };
        let wall = world.now().wall;
        let leased = |alloc: &AllocRecord| self.disks.is_leased(&alloc.slot(), alloc.id, wall);
        let mut allocs = After::of(world, batch).allocs_of(key);
        let ended = allocs.all(|alloc| alloc.finished && !leased(alloc));
        let stopped = job.job.stop || self.replies.stops(key);
        let to_completion =
            stopped || job.job.job_type.runs_to_completion() && !job.job.is_template();
        let old = self.replies.collects() || {
            // As it was before it was told to go.
            let before = saved.allocs.values().map(|alloc| &**alloc);
            let records = saved.collected.values().map(|one| &one.alloc);
            let of_job = before.chain(records).filter(|alloc| alloc.job == *key);
            let latest = of_job.map(|alloc| alloc.modify_time).max();
            let since = latest.unwrap_or(job.job.submit_time);
            self.is_old(world, since, |limits| limits.jobs)
        };
        let holds = ended && old && to_completion;
        self.holds(Property::OnlyGarbageIsCollected, holds, || {
            format!("{key}: ended {ended}, old {old}, to an end {to_completion}")
        })
    }

    /// Of the children of a job those are forgotten that are over.
    fn forgotten_child_is_dead(&mut self, world: &World, batch: &Batch, key: &JobKey) -> Verdict {
        let before = saved_job(world, key);
        let asked = self.replies.purges(key) || self.replies.purges(&policy::parent_of(key));
        let child = before.filter(|job| !job.purge && job.job.is_child() && !asked);
        let Some(child) = child else {
            return Ok(());
        };
        // One that failed may still be ended: that goes on.
        let lives = |alloc: &&Arc<AllocRecord>| !alloc.finished && !alloc.status.is_terminal();
        let alive = After::of(world, batch).allocs_of(key).find(lives);
        let holds = child.job.stop || alive.is_none();
        self.holds(Property::OnlyGarbageIsCollected, holds, || {
            format!("{key} is forgotten, and {alive:?} is not over")
        })
    }

    /// An evaluation goes with its job, when there are too many, or when it is old and not the latest.
    fn forgotten_evaluation_is_expired(
        &mut self,
        world: &World,
        batch: &Batch,
        saved: &Saved,
        id: EvalId,
    ) -> Verdict {
        let Some(eval) = saved.evals.get(&id) else {
            return Ok(());
        };
        let gone = |job: &JobRecord| job.purge;
        // It may be there again by the same commit, as a new one.
        let goes_in_batch = match batch.get(&Key::Job(eval.job.clone())) {
            Some(Some(Record::Job(job))) => job.purge || job.job.create_index > eval.create_index,
            Some(_) => true,
            None => false,
        };
        let job_goes = goes_in_batch
            || saved_job(world, &eval.job).is_none_or(gone)
            || self.replies.purges(&eval.job);
        let newer =
            |other: &Evaluation| other.job == eval.job && other.modify_index > eval.modify_index;
        let replaced = batch.values().flatten().any(|record| match record {
            Record::Eval(other) => newer(other),
            _ => false,
        });
        let latest = is_latest(saved, eval) && !replaced;
        let old = self.replies.collects() || self.is_old(world, eval.time, |limits| limits.evals);
        let holds = job_goes || replaced || old && !latest;
        self.holds(Property::OnlyGarbageIsCollected, holds, || {
            format!("{eval:?}: old {old}, latest {latest}")
        })
    }

    /// Whether it was old enough at some time: the clock may be set back before the commit leaves.
    pub(super) fn is_old(
        &self,
        world: &World,
        since: Timestamp,
        limit: impl Fn(Retention) -> Span,
    ) -> bool {
        let latest = self.lives.latest_wall.max(world.now().wall);
        self.retention
            .is_some_and(|limits| latest - since >= limit(limits))
    }

    /// An agent that looks around for a while leaves nothing that is garbage for a while, however busy it is.
    pub(super) fn garbage_is_collected_in_time(&mut self, world: &World, agent: &Agent) -> Verdict {
        let late = agent
            .poll_timeout()
            .is_some_and(|(at, _)| at <= world.scene.at);
        let is_young = world.scene.at - self.lives.began <= SLACK;
        let knows = agent.view().is_fingerprinted();
        if world.scene.wall_jumps > 0 || is_young || late || !knows || self.rests(agent) {
            return Ok(());
        }
        self.garbage_is_collected(world)
    }

    /// Nothing is left that is garbage for a while: since it was seen to be, or since the disk changed last.
    pub(super) fn garbage_is_collected(&mut self, world: &World) -> Verdict {
        let Some(limits) = self.retention else {
            return Ok(());
        };
        let (now, wall) = (world.elapsed(), world.now().wall);
        let known = core::mem::take(&mut self.lives.garbage);
        let since = |id: &String, old: Timestamp| {
            // Of a clock that was set nobody knows how long ago a time is.
            let old_for = if world.scene.wall_jumps > 0 {
                Span::ZERO
            } else {
                wall - old
            };
            let ripe = Span(now.0.saturating_sub(old_for.0));
            let seen = known.get(id).copied().unwrap_or(now);
            seen.min(ripe.max(self.lives.saved_at))
        };
        let garbage = garbage(world, limits, wall);
        let garbage = garbage.map(|(id, old)| (id.clone(), since(&id, old)));
        self.lives.garbage = garbage.collect();
        let mut all = self.lives.garbage.iter();
        let left = all.find(|(_, since)| now.0 - since.0 > SLACK.0);
        let left = left.map(|(id, since)| (id.clone(), *since));
        self.holds(Property::GarbageIsCollected, left.is_none(), || {
            format!("{left:?} is there at {now:?}")
        })
    }
}

/// All that is garbage, with the time since when it is old enough for that.
fn garbage(
    world: &World,
    limits: Retention,
    wall: Timestamp,
) -> impl Iterator<Item = (String, Timestamp)> {
    let saved = world.disk.saved();
    let mut all = Vec::new();
    for eval in saved.evals.values() {
        let used = alive(&saved).any(|alloc| alloc.eval == eval.id);
        if !eval.status.is_open() && !used && !is_latest(&saved, eval) {
            all.push((format!("evaluation {}", eval.id), eval.time + limits.evals));
        }
    }
    for one in saved.deployments.values() {
        let job = saved.jobs.get(&one.job);
        let current = job.is_some_and(|job| job.deployment == Some(one.id));
        let used = alive(&saved).any(|alloc| alloc.deployment == Some(one.id));
        let version = job.and_then(|job| job.version(one.job_version));
        let since = version.map_or(Timestamp(0), |job| job.submit_time);
        if !one.is_active() && !used && !current {
            all.push((format!("deployment {}", one.id), since + limits.deployments));
        }
    }
    let records = world.disk.records().values().filter_map(|it| match it {
        Record::Collected(record) => Some(&record.alloc),
        _ => None,
    });
    let old = |alloc: &AllocRecord| alloc.modify_time + limits.records;
    all.extend(records.map(|alloc| (format!("record of {}", alloc.id), old(alloc))));
    all.into_iter().filter(move |(_, old)| *old <= wall)
}
