//! Disks of slots: the reference model of where they lie, who gets them, and for whom they are kept.
//!
//! It knows what was asked for and what happened in the world: which tasks started, and what is in which directory.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::agent::requests::{HandOver, Request, TakeOver, TransferComplete};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, JobKey, RequestId, Slot};
use drover_core::input::HookInput;
use drover_core::model::group::EphemeralDisk;
use drover_core::model::remote::{Remote, RemotePrevious};
use drover_core::op::Op;
use drover_core::store::disk::Disk;
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record};
use drover_core::task::runner::TaskRunner;
use drover_core::time::{Instant, Span, Timestamp};
use drover_core::work::AskRemote;

use super::limits::{DISK_FETCHES, DISK_KEPT_AFTER_TRANSFER, DISK_KEPT_FOR_NODE};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of disks through all lives of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Disks {
    /// The allocations of each slot that were seen, by age.
    of: BTreeMap<Slot, BTreeMap<u64, AllocId>>,
    /// Of them, those that get the disk of the slot.
    sticky: BTreeSet<AllocId>,
    /// Whose words are lost, and nobody can ask for them: they went when nobody was to get them, or what is
    /// newer comes from another node.
    lost: BTreeSet<AllocId>,
    /// The previous allocations on other nodes, and the index of the job since when.
    elsewhere: BTreeMap<Slot, (AllocId, u64)>,
    /// What was asked for and is not answered yet.
    taken_over: BTreeMap<RequestId, Vec<(Slot, AllocId)>>,
    handover: BTreeMap<RequestId, (JobKey, Lease)>,
    /// The disks that are kept for other nodes.
    leases: BTreeMap<Slot, Lease>,
    /// The allocations whose directories are to go.
    going: BTreeSet<AllocId>,
    /// How often a disk was asked for, and whose is out of date: what replaced it started since.
    fetched: BTreeMap<AllocId, u32>,
    outdated: BTreeSet<AllocId>,
    /// When the latest question about one left, in which life of the agent, and on whose behalf.
    asked: BTreeMap<(AllocId, AllocId), (u64, Instant)>,
    /// Which question it was, in this life.
    questions: BTreeMap<Op, (AllocId, AllocId)>,
    /// The index of the latest answer, none after one that was none.
    answers: BTreeMap<(AllocId, AllocId), u64>,
}

/// Until when the directories of these allocations are kept.
#[derive(Clone, Debug, Default)]
struct Lease {
    /// The one that was handed over.
    alloc: AllocId,
    allocs: BTreeSet<AllocId>,
    since: Timestamp,
    /// Of whom another node said that it has all, and when.
    read: BTreeMap<AllocId, Timestamp>,
}

impl Lease {
    /// Whether it has to be kept. A clock that was set back makes that no longer.
    fn holds(&self, now: Timestamp) -> bool {
        let read = self
            .read
            .get(&self.alloc)
            .map(|at| *at + DISK_KEPT_AFTER_TRANSFER);
        let until = self.since + DISK_KEPT_FOR_NODE;
        read.unwrap_or(until).min(until) - now > Span::ZERO && now - self.since >= Span::ZERO
    }
}

pub(super) fn saved_disk<'a>(world: &'a World, slot: &Slot) -> Option<&'a Disk> {
    match world.disk.records().get(&Key::Disk(slot.clone())) {
        Some(Record::Disk(disk)) => Some(disk),
        _ => None,
    }
}

fn settings(alloc: &AllocRunner) -> EphemeralDisk {
    let group = alloc.job().group(alloc.record().group.as_str());
    let disk = group.and_then(|group| group.ephemeral_disk);
    disk.unwrap_or_default()
}

/// Whether anything of an allocation ever ran.
fn ran(world: &World, id: AllocId) -> bool {
    let mut processes = world.processes.all.values();
    processes.any(|process| process.key.alloc == id && process.starts > 0)
}

impl Disks {
    pub(super) fn agent_died(&mut self) {
        self.questions.clear();
        self.answers.clear();
        self.taken_over.clear();
        self.handover.clear();
        self.going.clear();
    }

    /// Somebody asks something: what was said before of these copies, and of who keeps what, counts no more.
    pub(super) fn asked(
        &mut self,
        world: &World,
        agent: &Agent,
        request: RequestId,
        asked: &Request,
    ) {
        match asked {
            Request::TakeOver(TakeOver { job, from }) => {
                let known = agent.view().job(&job.key());
                if known.is_some_and(|known| !known.job.stop) {
                    return;
                }
                let slot = |takeover: &drover_core::model::remote::Takeover| Slot {
                    job: job.key(),
                    group: takeover.group.clone(),
                    index: takeover.index,
                    lane: 0,
                    alloc: None,
                };
                let slots = from
                    .iter()
                    .map(|takeover| (slot(takeover), takeover.from.alloc));
                let slots: Vec<_> = slots.collect();
                for (slot, _) in &slots {
                    self.elsewhere.remove(slot);
                }
                self.taken_over.retain(|_, old| {
                    let mut old = old.iter();
                    old.all(|(slot, _)| slot.job != job.key())
                });
                self.taken_over.insert(request, slots);
            }
            Request::HandOver(HandOver { job }) => {
                self.leases.retain(|slot, _| slot.job != *job);
                let since = world.now().wall;
                let lease = Lease {
                    since,
                    ..Lease::default()
                };
                self.handover.insert(request, (job.clone(), lease));
            }
            Request::TransferComplete(TransferComplete { alloc }) => {
                // Also by who was asked before, and is answered later.
                let asked = self.handover.values_mut().map(|(_, lease)| lease);
                for lease in asked.chain(self.leases.values_mut()) {
                    lease.read.entry(*alloc).or_insert(world.now().wall);
                }
            }
            _ => {}
        }
    }

    pub(super) fn answered(&mut self, world: &World, request: RequestId, reply: &Reply) {
        match reply {
            Reply::Registered { job_index, .. } => {
                let slots = self.taken_over.remove(&request);
                for (slot, previous) in slots.into_iter().flatten() {
                    self.outdated.remove(&previous);
                    self.elsewhere.insert(slot, (previous, *job_index));
                }
            }
            Reply::HandedOver(slots) => {
                let Some((_, lease)) = self.handover.remove(&request) else {
                    return;
                };
                for (slot, alloc) in slots {
                    let newest = self.newest(world, slot, u64::MAX);
                    let newest = newest.filter(|_| self.sticky.contains(alloc));
                    let has = |(id, disk): (&AllocId, &BTreeSet<AllocId>)| {
                        let has = newest.is_some_and(|newest| disk.contains(&newest));
                        has.then_some(*id)
                    };
                    let lies_at = world.dirs.disks.iter().filter_map(has);
                    let kept = lies_at.chain([*alloc]);
                    let allocs = kept.filter(|id| !self.going.contains(id)).collect();
                    let lease = Lease {
                        alloc: *alloc,
                        allocs,
                        ..lease.clone()
                    };
                    self.leases.insert(slot.clone(), lease);
                }
            }
            Reply::Dispatched { .. }
            | Reply::NodeChanged { .. }
            | Reply::Stopping { .. }
            | Reply::Deployment { .. }
            | Reply::Variable(_)
            | Reply::AclToken(_)
            | Reply::Volume(_)
            | Reply::Done { .. }
            | Reply::Refused(_) => drop(self.handover.remove(&request)),
        }
    }

    /// The last that wrote to the disk of a slot, of those placed before this index, if its words are not lost.
    fn newest(&self, world: &World, slot: &Slot, before: u64) -> Option<AllocId> {
        let of_slot = self.of.get(slot)?.range(..before).rev();
        let newest = of_slot.map(|(_, id)| *id).find(|id| ran(world, *id));
        newest.filter(|id| !self.lost.contains(id))
    }

    /// Whether a disk is kept for another node.
    pub(super) fn is_leased(&self, slot: &Slot, alloc: AllocId, now: Timestamp) -> bool {
        let lease = self.leases.get(slot);
        lease.is_some_and(|lease| lease.allocs.contains(&alloc) && lease.holds(now))
    }

    /// Of a job that is forgotten nothing is kept for anybody. One that is purged may be wanted again
    /// before that.
    /// Another node answers, or does not.
    pub(super) fn node_answered(&mut self, reported: &HookInput) {
        let Some(key) = self.questions.remove(&reported.op) else {
            return;
        };
        let remote = reported.result.as_ref().ok().and_then(|it| it.remote);
        match remote {
            Some(Remote::Runs { index }) => self.answers.insert(key, index),
            Some(Remote::Ended | Remote::Unknown) | None => self.answers.remove(&key),
        };
    }

    pub(super) fn forget(&mut self, agent: &Agent) {
        let is_known = |slot: &Slot| agent.view().job(&slot.job).is_some();
        self.elsewhere.retain(|slot, _| is_known(slot));
        self.taken_over
            .retain(|_, slots| slots.iter().any(|(slot, _)| is_known(slot)));
    }
}

impl Checker {
    /// An allocation is new. What is to come from another node is newer than all that is here.
    pub(super) fn disk_of_a_new_alloc(&mut self, alloc: &AllocRunner) {
        let (record, slot) = (alloc.record(), alloc.record().slot());
        let mut asked = self.disks.taken_over.values().flatten();
        let comes = self.disks.elsewhere.contains_key(&slot) || asked.any(|(of, _)| *of == slot);
        let of_slot = self.disks.of.entry(slot).or_default();
        if comes && settings(alloc).migrate {
            self.disks.lost.extend(of_slot.values());
        }
        of_slot.insert(record.create_index, record.id);
        let wants = settings(alloc);
        if wants.sticky || wants.migrate {
            self.disks.sticky.insert(record.id);
        }
    }

    /// Looks at a disk whose directory is to go: it is kept for no other node, and who is to get it will miss it,
    /// unless somebody asked for just this.
    pub(super) fn leased_disk_is_kept(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let (record, slot) = (alloc.record(), alloc.record().slot());
        if !record.destroying {
            self.disks.going.remove(&record.id);
            return Ok(());
        }
        if !self.disks.going.insert(record.id) {
            return Ok(());
        }
        let asked = self.replies.collects_one(record.id) || self.job_goes(agent, &record.job);
        let awaits = |other: &&AllocRunner| {
            let other = other.record();
            let comes_later = other.create_index > record.create_index && other.slot() == slot;
            let may_get_it = !other.finished || !self.replies.collects();
            comes_later && !other.destroying && !ran(world, other.id) && may_get_it
        };
        let is_awaited = agent.view().allocs_of(&record.job).any(|it| awaits(&it));
        if asked || !is_awaited {
            let has = world.dirs.disks.get(&record.id).into_iter().flatten();
            self.disks.lost.extend(has);
        }
        let leased = self.disks.is_leased(&slot, record.id, world.now().wall);
        if let Some(lease) = self.disks.leases.get_mut(&slot) {
            lease.allocs.remove(&record.id);
        }
        self.holds(Property::LeasedDiskIsKept, !leased || asked, || {
            format!("{} {} goes", record.name, record.id.short())
        })
    }

    /// A task starts when the previous allocation on another node is over, and with the disk of its slot.
    pub(super) fn a_start_has_its_disk(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let (record, slot) = (alloc.record(), alloc.record().slot());
        let migrates = settings(alloc).migrate;
        let previous = self.disks.elsewhere.get(&slot).copied();
        if let Some((id, _)) = previous.filter(|(_, since)| record.create_index > *since) {
            self.disks.elsewhere.remove(&slot);
            let remote = world.remotes.get(id);
            let over = remote.ended || remote.forgotten;
            self.holds(
                Property::NoStartWhilePreviousAllocRunsOnOtherNode,
                over,
                || format!("{} {} replaces {id}", record.name, record.id.short()),
            )?;
            let tries = self.disks.fetched.get(&id).copied().unwrap_or(0);
            self.disks.outdated.insert(id);
            let tried = remote.given || remote.forgotten || tries >= DISK_FETCHES;
            self.sometimes(Property::SometimesDiskIsFetched, remote.given);
            self.holds(
                Property::DiskOfPreviousNodeIsFetched,
                !migrates || tried,
                || format!("{} starts without the disk of {id}", record.name),
            )?;
        }
        let newest = match record.of_servers {
            false => self.disks.newest(world, &slot, record.create_index),
            // Servers say whose it gets.
            true => {
                let previous = record.previous.filter(|id| ran(world, *id));
                // Who had it last may have been forgotten, or collected while the node was cut off, and goes with it.
                let servers = world.link.servers.as_ref();
                let is_gone = |id| servers.is_some_and(|it| it.forgot_who_replaced(id));
                previous.filter(|id| !self.disks.lost.contains(id) && !is_gone(*id))
            }
        };
        let gets_it = self.disks.sticky.contains(&record.id) && !ran(world, record.id);
        let Some(before) = newest.filter(|_| gets_it) else {
            return Ok(());
        };
        let disk = world.dirs.disks.get(&record.id);
        let there = disk.is_some_and(|disk| disk.contains(&before));
        self.sometimes(Property::SometimesStickyDiskMoves, there);
        self.holds(Property::StickyDiskMovesToReplacement, there, || {
            let (name, id, before) = (&record.name, record.id.short(), before.short());
            format!("{name} {id} starts without what {before} wrote, with {disk:?}")
        })
    }

    /// The record of a disk names allocations of its slot alone, each once and the latest first, none of which is to go.
    pub(super) fn disk_has_one_location(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let mut takers = BTreeMap::new();
        for (slot, disk) in view.disks() {
            let named = disk.holder.iter().chain(&disk.sources);
            let known = named.clone().filter_map(|id| view.alloc(*id));
            let records = known.map(AllocRunner::record);
            // What servers placed is a slot of its own, and gets what others of its group had.
            let is_of_slot = |one: &AllocRecord| match slot.alloc {
                None => one.slot() == *slot,
                Some(_) => one.of_servers && one.job == slot.job && one.group == slot.group,
            };
            let right = records
                .clone()
                .filter(|one| is_of_slot(one) && !one.destroying);
            let ages: Vec<u64> = records.map(|one| one.create_index).collect();
            let in_order = ages.is_sorted_by(|one, other| one > other);
            let holds = right.count() == named.count() && in_order && !disk.is_forgotten();
            self.holds(Property::DiskHasOneLocation, holds, || {
                format!("{slot}: {disk:?}")
            })?;
            let lives = |id: &AllocId| view.alloc(*id).is_some_and(|it| !it.record().finished);
            let Some(holder) = disk.holder.filter(lives) else {
                continue;
            };
            // One that is to get it from another that was to get it comes after that one.
            let comes_before = |other: &AllocId| {
                let before = |one: AllocId, other: &AllocId| {
                    let disk = view.alloc(one).and_then(|it| view.disk_of(it.record()));
                    disk.is_some_and(|disk| disk.sources.contains(other))
                };
                before(holder, other) || before(*other, &holder)
            };
            let others = disk
                .sources
                .iter()
                .filter_map(|source| takers.insert(*source, holder));
            // What servers do not name any more is about to go.
            let goes = |id: AllocId| {
                let alloc = view.alloc(id).map(AllocRunner::record);
                alloc.is_some_and(|it| self.cluster.is_dropped(it))
            };
            let is_second =
                |other: &AllocId| !comes_before(other) && !goes(*other) && !goes(holder);
            let twice = others.into_iter().find(is_second);
            self.holds(Property::DiskHasOneLocation, twice.is_none(), || {
                format!("{slot}: {disk:?}, of which {twice:?} gets something, too")
            })?;
        }
        Ok(())
    }

    /// Requests to another node are separated by a backoff.
    pub(crate) fn requests_to_other_nodes_have_a_backoff(
        &mut self,
        world: &World,
        alloc: AllocId,
        previous: &RemotePrevious,
    ) -> Verdict {
        let (life, now) = (world.scene.life, world.now().at);
        let key = (alloc, previous.alloc);
        let before = self.disks.asked.insert(key, (life, now));
        let soon = before.is_some_and(|(of, at)| of == life && now - at < Span::secs(1));
        self.holds(Property::RequestsToOtherNodesHaveABackoff, !soon, || {
            format!("{previous:?}, last asked {before:?}, now {now:?}")
        })
    }

    /// Another node is asked for what changed since its last answer; after it gave none, for everything: its numbers may
    /// have begun anew.
    pub(crate) fn question_to_other_node_follows_its_answer(
        &mut self,
        alloc: AllocId,
        op: Op,
        asked: &AskRemote,
    ) -> Verdict {
        let key = (alloc, asked.previous.alloc);
        self.disks.questions.insert(op, key);
        let known = self.disks.answers.get(&key).copied();
        let holds = asked.index == 0 || Some(asked.index) == known;
        self.holds(Property::QuestionToOtherNodeFollowsItsAnswer, holds, || {
            format!("{asked:?}, and the last answer was {known:?}")
        })
    }

    /// A disk is fetched when nobody writes to it any more, and before anything ran that replaces it.
    pub(crate) fn disk_of_previous_node_is_fetched_when_unused(
        &mut self,
        world: &World,
        previous: &RemotePrevious,
    ) -> Verdict {
        *self.disks.fetched.entry(previous.alloc).or_default() += 1;
        let remote = world.remotes.get(previous.alloc);
        let over = match previous.of_servers {
            // They may say something else since.
            true => world.remotes.was_said_over(previous.alloc),
            false => remote.ended || remote.forgotten,
        };
        self.holds(
            Property::DiskOfPreviousNodeIsFetchedWhenUnused,
            over,
            || format!("{previous:?}"),
        )?;
        let newest = !self.disks.outdated.contains(&previous.alloc);
        self.holds(Property::NoOlderDiskReplacesNewer, newest, || {
            format!("{previous:?}, and what replaced it ran already")
        })
    }

    /// A sticky disk moves only when no process of its holder runs, or the wait for it timed out.
    pub(crate) fn sticky_disk_moves_when_unused(
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
        self.holds(Property::StickyDiskMovesWhenUnused, name.is_none(), || {
            format!("{name:?} still writes")
        })
    }
}
