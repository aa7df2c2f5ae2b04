//! Free space on the disk. As long as something that ended could be removed, the agent measures now
//! and then whether enough is left; if not, the oldest ended allocation is removed. Then it
//! measures again, because nobody knows how much one allocation frees before it is gone.
//!
//! Nothing is measured while nothing could be removed (unless operators are to be told), and the first measurement comes an interval
//! after something ended: on a full disk, too, people want to see why it ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::effect::{Effect, NodeEffect, Notification};
use crate::ids::AllocId;
use crate::input::DiskUsage;
use crate::model::notice::Notice;
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::time::Instant;

/// What is known of the room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DiskPressure {
    /// The question that is out.
    asked: Option<Op>,
    /// When it is asked next.
    due: Option<Instant>,
    /// Whether there was too little the last time, and nobody goes for it yet.
    exceeded: bool,
    /// Who goes because there was too little.
    removing: Option<AllocId>,
    /// Whether the pause before the next question is over.
    due_now: bool,
    /// Whether there was too little the last time, as operators were notified.
    told: bool,
}

impl DiskPressure {
    /// Whether nothing is known and nothing is awaited.
    pub(super) fn is_idle(&self) -> bool {
        *self == DiskPressure::default()
    }

    /// When it is to be measured again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The question whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        self.asked
    }

    /// It may be time to measure again.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_some_and(|at| at <= now) {
            self.measure_again();
        }
    }

    /// Who did not answer is not waited for any longer.
    pub(super) fn measure_again(&mut self) {
        *self = DiskPressure {
            due_now: true,
            told: self.told,
            ..DiskPressure::default()
        };
    }

    /// Takes the answer.
    pub(super) fn on_answer(&mut self, cx: &mut Cx<'_>, op: Op, room: Result<DiskUsage, Failure>) {
        let Some(limits) = cx.config.disk_limits.filter(|_| self.is_asked(op)) else {
            return cx.count_stale();
        };
        self.asked = None;
        self.due = Some(cx.now.at + limits.interval);
        let Ok(room) = room else {
            self.exceeded = false;
            return;
        };
        self.exceeded = limits.is_exceeded(room);
        self.tell(cx, room);
    }

    /// Tells operators when it begins and when it is over.
    fn tell(&mut self, cx: &mut Cx<'_>, room: DiskUsage) {
        if !cx.config.notices || self.told == self.exceeded {
            return;
        }
        self.told = self.exceeded;
        let percent = (room.disk_percent, room.inode_percent);
        let notice = Notice::disk(self.exceeded, percent, cx.now.wall);
        cx.send(Effect::Notify(Notification::Notice(Arc::new(notice))));
    }

    fn is_asked(&self, op: Op) -> bool {
        self.asked == Some(op)
    }

    /// Whether there is too little and nobody goes for it yet, or it is time to measure again.
    pub(super) fn awaits_collection(&self) -> bool {
        self.exceeded || self.due_now
    }

    /// Whether there is too little, and nobody goes for it yet. True once.
    pub(super) fn take_pressure(&mut self) -> bool {
        core::mem::take(&mut self.exceeded)
    }

    /// `goes` is garbage-collected for want of disk space. Asks how much there is, unless that was done lately,
    /// as long as anything is `left` that could go. The first question comes after a pause: who just
    /// ended is of interest to people.
    pub(super) fn check(&mut self, cx: &mut Cx<'_>, goes: Option<AllocId>, left: bool) {
        self.removing = goes.or(self.removing);
        let due_now = core::mem::take(&mut self.due_now);
        let idle = self.asked.is_none() && self.due.is_none();
        let Some(limits) = cx.config.disk_limits.filter(|_| left && idle) else {
            return;
        };
        if !due_now {
            self.due = Some(cx.now.at + limits.interval);
            return;
        }
        let limit = cx.config.timeouts.probe;
        let op = cx.operation(Owner::Machine, Purpose::DiskUsage, limit);
        self.asked = Some(op);
        cx.send(Effect::Node(NodeEffect::MeasureDiskUsage { op }));
    }

    /// An allocation is gone. If it went for want of disk space, it is checked again at once.
    pub(super) fn on_removed(&mut self, alloc: AllocId) {
        if self.removing == Some(alloc) {
            self.removing = None;
            self.due = None;
            self.due_now = true;
        }
    }
}
