//! Disks that are kept for other nodes.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, RequestId};
use drover_core::input::OperatorInput;
use drover_core::store::record::{AllocRecord, DELIVERED, PROMISED};
use drover_core::time::{Span, Timestamp};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Until when which disk is to be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    /// What was asked for, and is not answered yet.
    asked: BTreeMap<RequestId, (AllocId, Kept)>,
    made: BTreeMap<AllocId, Kept>,
    /// What was on its way out when it was promised is no promise.
    going: BTreeSet<AllocId>,
}

/// Until when one is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// As it was promised.
    promised: Timestamp,
    /// If the agent still knows that it was read.
    read: Timestamp,
}

impl Kept {
    /// A clock that was set back makes it no longer, whether or not the agent knows that it was read.
    fn holds(self, wall: Timestamp) -> bool {
        self.read - wall > Span::ZERO && self.promised - wall <= PROMISED
    }
}

impl Promises {
    pub(super) fn agent_died(&mut self) {
        self.asked.clear();
    }

    pub(super) fn asked(&mut self, wall: Timestamp, request: RequestId, asked: &OperatorInput) {
        match asked {
            OperatorInput::Promise { alloc } => {
                let promised = wall + PROMISED;
                let read = promised;
                self.asked
                    .insert(request, (*alloc, Kept { promised, read }));
            }
            OperatorInput::Delivered { alloc } => {
                // Also what was asked for before, and is answered later.
                let asked = self.asked.values_mut().filter(|(of, _)| of == alloc);
                let made = self.made.get_mut(alloc);
                for kept in asked.map(|(_, kept)| kept).chain(made) {
                    kept.read = kept.read.min(wall + DELIVERED);
                }
            }
            OperatorInput::StopAlloc { .. }
            | OperatorInput::Collect { .. }
            | OperatorInput::Restart { .. }
            | OperatorInput::Signal { .. } => {}
        }
    }

    pub(super) fn answered(&mut self, request: RequestId, reply: &Reply) {
        let asked = self.asked.remove(&request);
        if let (Some((alloc, kept)), Reply::Done { .. }) = (asked, reply)
            && !self.going.contains(&alloc)
        {
            self.made.insert(alloc, kept);
        }
    }

    /// Whether this disk is to be there.
    pub(super) fn holds(&self, alloc: AllocId, wall: Timestamp) -> bool {
        self.made.get(&alloc).is_some_and(|kept| kept.holds(wall))
    }
}

impl Checker {
    /// A disk that was promised to another node is there for as long as that was said, unless
    /// somebody asks to clean away just this one, or to forget its job.
    pub(super) fn a_promised_disk_stays(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        if record.destroying && self.one_before_is_promised(record) {
            // What it had of that one goes, and nobody comes by it any more.
            self.note_collection(record.id);
        }
        if !record.destroying {
            self.promises.going.remove(&record.id);
            return Ok(());
        }
        self.promises.going.insert(record.id);
        // What counts is the clock as it was when this was decided: one that was set back can come
        // to where the promise held again, while the disk still goes.
        let held = self.promises.holds(record.id, world.now().wall);
        self.promises.made.remove(&record.id);
        if !held {
            return Ok(());
        }
        let asked = self.replies.collects_one(record.id) || self.job_goes(agent, &record.job);
        self.holds(Property::APromisedDiskStays, asked, || {
            format!("{} goes", record.name)
        })
    }

    /// Whether one of those before it is kept, because it is promised to another node or because one that
    /// is was to get its disk: this one goes first then, though it is younger.
    fn one_before_is_promised(&self, record: &AllocRecord) -> bool {
        let before: BTreeSet<_> = self.lives.with_those_before(record.id).skip(1).collect();
        let mut promised = self.promises.made.keys();
        promised.any(|id| {
            let kept: Vec<_> = self.lives.with_those_before(*id).collect();
            !kept.contains(&record.id) && kept.iter().any(|id| before.contains(id))
        })
    }
}
