//! What became of the allocations, as servers are told.
//!
//! - Servers know what they acknowledged last. What is the same is never sent, and the latest state counts: what came
//!   between is not told.
//! - **Urgent** is a status that the servers do not have. It leaves at once, unless a call was made less than 200 ms
//!   ago; so a thousand changes are a few calls. Everything else waits for a second, and goes with what is
//!   urgent.
//! - Nothing is sent before it is known which allocations the servers have, and nothing of what is not saved.
//! - What was acknowledged is remembered ([`ReportedRecord`]), so that the next agent sends nothing again.
//! - Servers that did not hear of the node in time may have given up what runs here. Then all that runs is reported
//!   again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::retry::up_to_twice;
use crate::cluster::AllocReport;
use crate::cx::Cx;
use crate::ids::AllocId;
use crate::model::alloc::ClientStatus;
use crate::op::Op;
use crate::store::server::ReportedRecord;
use crate::store::{Key, Record};
use crate::time::{Instant, Span};

/// Between two calls.
const TICK: Span = Span::millis(200);
/// How long what is not urgent waits for more.
const GATHERED: Span = Span::secs(1);
/// The pause after an error, and what is added to it at most.
const ERROR_PAUSE: Span = Span::secs(5);
/// How many allocations are in a call.
const MAX_REPORTS: usize = 1000;

/// What servers are to be told of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Reports {
    acknowledged: BTreeMap<AllocId, Acknowledged>,
    /// How often servers acknowledged something new in this life of the agent.
    acknowledgements: u64,
    /// What may have changed.
    changed: BTreeSet<AllocId>,
    /// When it is sent.
    due: Option<Instant>,
    /// The call that is under way, and what is in it.
    asked: Option<(Op, Vec<Sent>)>,
    /// When the last call was made.
    last: Option<Instant>,
    /// Until when there is a pause after an error.
    pause: Option<Instant>,
}

/// What servers acknowledged last of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Acknowledged {
    record: Arc<ReportedRecord>,
    /// In full, if that was in this life of the agent.
    report: Option<Arc<AllocReport>>,
}

impl Acknowledged {
    /// Whether this is what it says.
    fn has(&self, report: &Arc<AllocReport>, index: u64) -> bool {
        self.record.modify_index == index || self.report.as_ref() == Some(report)
    }
}

/// A report, and the index of the allocation's record that it was made of.
pub type Sent = (Arc<AllocReport>, u64);

impl Reports {
    /// The servers acknowledged this in an earlier life of the agent.
    pub(super) fn restored(saved: BTreeMap<AllocId, Arc<ReportedRecord>>) -> Reports {
        let acknowledged = |(id, record)| {
            let report = None;
            (id, Acknowledged { record, report })
        };
        Reports {
            acknowledged: saved.into_iter().map(acknowledged).collect(),
            ..Reports::default()
        }
    }

    /// Whether servers have an allocation as it is by this index of its record, and what they have is known here.
    pub(super) fn has(&self, id: AllocId, index: u64) -> bool {
        let known = self.acknowledged.get(&id);
        known.is_some_and(|known| known.record.modify_index == index && known.report.is_some())
    }

    /// Whether servers acknowledged that an allocation ended, as it is by this index of its record, if it has one.
    pub(super) fn knows_end(&self, id: AllocId, index: Option<u64>) -> bool {
        let known = self.acknowledged.get(&id).map(|known| &known.record);
        known.is_some_and(|known| {
            known.status.is_terminal() && index.is_none_or(|index| known.modify_index == index)
        })
    }

    /// An allocation is this one from now on. What servers cannot see of a change is no change; that is
    /// remembered together with it, so that a crash does not make it one.
    pub(super) fn note(&mut self, cx: &mut Cx<'_>, (report, index): Sent) {
        let (id, status, now) = (report.id, report.status, cx.now.at);
        let known = self.acknowledged.get(&id);
        if known.is_some_and(|known| known.has(&report, index)) {
            self.changed.remove(&id);
            return self.remember(cx, report, index);
        }
        // Servers take what they know nothing of for pending.
        let is_urgent = status != known.map_or(ClientStatus::Pending, |known| known.record.status);
        self.changed.insert(id);
        let at = match is_urgent {
            true => self.last.map_or(now, |last| now.max(last + TICK)),
            false => now + GATHERED,
        };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// When something is sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let may_send = self.asked.is_none() && !self.changed.is_empty();
        let due = self.due.filter(|_| may_send)?;
        Some(self.pause.map_or(due, |until| due.max(until)))
    }

    /// The allocations that are to be reported now, if it is time.
    pub(super) fn due(&self, now: Instant) -> Vec<AllocId> {
        match self.deadline().is_some_and(|at| at <= now) {
            true => self.changed.iter().take(MAX_REPORTS).copied().collect(),
            false => Vec::new(),
        }
    }

    /// Of these reports, what the servers do not have; they are not to be made again before something changes.
    pub(super) fn news(
        &mut self,
        cx: &mut Cx<'_>,
        reports: Vec<Sent>,
        asked: &[AllocId],
    ) -> Vec<Sent> {
        for id in asked {
            self.changed.remove(id);
        }
        self.due = (!self.changed.is_empty()).then_some(cx.now.at + TICK);
        let known = |one: &Sent| self.acknowledged.get(&one.0.id);
        let is_known = |one: &Sent| known(one).is_some_and(|known| known.has(&one.0, one.1));
        let (same, news): (Vec<Sent>, Vec<Sent>) = reports.into_iter().partition(is_known);
        for (report, index) in same {
            self.remember(cx, report, index);
        }
        news
    }

    pub(super) fn asked(&mut self, now: Instant, op: Op, sent: Vec<Sent>) {
        (self.asked, self.last, self.pause) = (Some((op, sent)), Some(now), None);
        self.due = self.due.map(|at| at.max(now + TICK));
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        self.asked.as_ref().map(|(op, _)| *op)
    }

    /// The servers have it. Returns the allocations that changed meanwhile: perhaps servers cannot see that, and need
    /// not hear of it.
    pub(super) fn acknowledge(&mut self, cx: &mut Cx<'_>) -> Vec<AllocId> {
        let (_, sent) = self.asked.take().unwrap_or_default();
        let ids = sent.iter().map(|(report, _)| report.id);
        let changed = ids.filter(|id| self.changed.contains(id)).collect();
        for (report, index) in sent {
            self.remember(cx, report, index);
        }
        changed
    }

    fn remember(&mut self, cx: &mut Cx<'_>, report: Arc<AllocReport>, modify_index: u64) {
        let (id, status) = (report.id, report.status);
        let record = Arc::new(ReportedRecord {
            modify_index,
            status,
        });
        cx.remember(Key::Reported(id), Record::Reported(record.clone()));
        let acknowledged = Acknowledged {
            record: record.clone(),
            report: Some(report),
        };
        let before = self.acknowledged.insert(id, acknowledged);
        self.acknowledgements += u64::from(before.is_none_or(|before| before.record != record));
    }

    /// How often servers acknowledged something new in this life of the agent.
    pub(super) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// Nobody knows whether the servers have it.
    pub(super) fn failed(&mut self, cx: &mut Cx<'_>) {
        let sent = self.asked.take().map(|(_, sent)| sent);
        for (report, _) in sent.into_iter().flatten() {
            self.again(cx.now.at, report.id);
        }
        self.pause = Some(cx.now.at + up_to_twice(cx, ERROR_PAUSE));
    }

    /// The servers have something else of it than they acknowledged; so the next agent has to know, too.
    pub(super) fn doubt(&mut self, cx: &mut Cx<'_>, id: AllocId) {
        cx.forget(Key::Reported(id));
        self.again(cx.now.at, id);
    }

    fn again(&mut self, now: Instant, id: AllocId) {
        self.acknowledged.remove(&id);
        self.take_back(id);
        self.changed.insert(id);
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    /// The same of all that had not ended when they acknowledged it, or were told of it.
    pub(super) fn doubt_live(&mut self, cx: &mut Cx<'_>) {
        let known = self.acknowledged.iter();
        let known = known.map(|(id, known)| (*id, known.record.status));
        let asked = self.asked.iter().flat_map(|(_, sent)| sent);
        let asked = asked.map(|(report, _)| (report.id, report.status));
        let live = known
            .chain(asked)
            .filter(|(_, status)| !status.is_terminal());
        for id in live.map(|(id, _)| id).collect::<BTreeSet<_>>() {
            self.doubt(cx, id);
        }
    }

    /// Nothing of an allocation is left here.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, id: AllocId) {
        self.changed.remove(&id);
        self.acknowledged.remove(&id);
        self.take_back(id);
        cx.forget(Key::Reported(id));
    }

    /// That a call which is under way is acknowledged says nothing of an allocation any more.
    fn take_back(&mut self, id: AllocId) {
        if let Some((_, sent)) = &mut self.asked {
            sent.retain(|(report, _)| report.id != id);
        }
    }

    /// Whether servers have all that became of the allocations.
    pub fn is_at_rest(&self) -> bool {
        self.changed.is_empty() && self.asked.is_none()
    }

    /// The status that servers acknowledged last of an allocation.
    pub fn acknowledged(&self, id: AllocId) -> Option<ClientStatus> {
        self.acknowledged.get(&id).map(|known| known.record.status)
    }
}
