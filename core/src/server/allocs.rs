//! Allocations that servers placed here, in the eyes of servers: what is reported of each, its services, which were
//! refused or passed over, and which end when servers are out of reach.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reports::Sent;
use super::{CALL_TIMEOUT, HEARTBEAT_TIMEOUT, Server};
use crate::announced::{Announced, Instances};
use crate::cluster::{AllocReport, Call};
use crate::cx::Cx;
use crate::ids::AllocId;
use crate::model::alloc::ClientStatus;
use crate::model::remote::RemotePrevious;
use crate::time::{Instant, Span};

impl Server {
    /// The allocations that servers are to be told of now.
    pub fn reports_due(&self, now: Instant) -> Vec<AllocId> {
        match self.may_report() {
            true => self.reports.due(now),
            false => Vec::new(),
        }
    }

    /// What servers have is known, and they know the node.
    pub(super) fn may_report(&self) -> bool {
        self.watch.is_applied() && self.heartbeat.is_ready()
    }

    /// These are the reports that are due, of `asked`: what servers do not have of them is sent.
    pub fn report(&mut self, cx: &mut Cx<'_>, reports: Vec<Sent>, asked: &[AllocId]) {
        let news = self.reports.news(cx, reports, asked);
        if news.is_empty() {
            return;
        }
        let reports = news.iter().map(|(report, _)| report.clone()).collect();
        let op = self.call(cx, Call::ReportAllocs(reports), CALL_TIMEOUT);
        self.reports.asked(cx.now.at, op, news);
    }

    /// Whether servers have an allocation as it is by this index of its record.
    pub fn has_report(&self, id: AllocId, index: u64) -> bool {
        self.reports.has(id, index)
    }

    /// An allocation is this one from now on.
    pub fn note(&mut self, cx: &mut Cx<'_>, report: Sent) {
        self.reports.note(cx, report);
    }

    /// Servers may have something else of an allocation than they acknowledged.
    pub fn doubt(&mut self, cx: &mut Cx<'_>, id: AllocId) {
        self.reports.doubt(cx, id);
        self.services.doubt(cx, id);
    }

    /// An allocation has these services from now on, for servers to know.
    pub fn note_services(&mut self, cx: &mut Cx<'_>, id: AllocId, services: Instances) {
        self.services.note(cx, id, services);
    }

    /// Servers may have these services of an earlier life of the agent.
    pub fn restore_services(&mut self, cx: &mut Cx<'_>, announced: Announced) {
        let all: Vec<AllocId> = announced.allocs().collect();
        cx.shared.announced = announced;
        all.into_iter().for_each(|id| self.services.review(cx, id));
    }

    /// An allocation cannot be run.
    pub fn refuse(&mut self, cx: &mut Cx<'_>, id: AllocId, why: String) {
        self.refused.insert(id, why.into());
        if let Some(report) = self.refusal(id) {
            self.reports.note(cx, report);
        }
    }

    /// An allocation that was to replace this one is not run here, and never was.
    pub fn pass_over(&mut self, id: AllocId, replaces: Option<RemotePrevious>) {
        self.passed_over.insert(id, replaces);
    }

    /// What an allocation was to replace that was never run here.
    pub fn passed_over(&self, id: AllocId) -> Option<Option<&RemotePrevious>> {
        self.passed_over.get(&id).map(Option::as_ref)
    }

    /// What is reported of an allocation that cannot be run.
    pub fn refusal(&self, id: AllocId) -> Option<Sent> {
        let report = AllocReport {
            id,
            status: ClientStatus::Failed,
            description: self.refused.get(&id)?.clone(),
            tasks: BTreeMap::new(),
            health: None,
            address: None,
            found: None,
        };
        // There is no record of it that could change.
        Some((Arc::new(report), 0))
    }

    /// An allocation is to end when servers are out of reach for so long; not for that if none.
    pub fn stops_after(&mut self, id: AllocId, silence: Option<Span>) {
        match silence {
            Some(silence) => drop(self.silence.insert(id, silence)),
            None => drop(self.silence.remove(&id)),
        }
    }

    /// The allocations that are to end because servers are out of reach for too long.
    pub fn out_of_contact(&mut self, now: Instant) -> Vec<AllocId> {
        if self.heartbeat.is_late(now) {
            // It was the agent that stood still: servers are asked first.
            return Vec::new();
        }
        let over = |(_, silence): &(&AllocId, &Span)| self.ends_after(**silence) <= now;
        let over: Vec<AllocId> = self
            .silence
            .iter()
            .filter(over)
            .map(|(id, _)| *id)
            .collect();
        self.silence.retain(|id, _| !over.contains(id));
        over
    }

    /// When an allocation ends if servers are out of reach until then; none if it goes on.
    pub fn ends_without_contact(&self, id: AllocId) -> Option<Instant> {
        self.silence
            .get(&id)
            .map(|silence| self.ends_after(*silence))
    }

    /// When the next allocation ends if servers are out of reach until then.
    pub(super) fn next_without_contact(&self) -> Option<Instant> {
        let silence = self.silence.values().min();
        silence.map(|silence| self.ends_after(*silence))
    }

    /// When servers are out of reach for so long. The node says nothing while its last heartbeat counts, however long
    /// that is: only when the next one is not answered in time, they are silent.
    fn ends_after(&self, silence: Span) -> Instant {
        let last = self.last_contact();
        (last + silence).max(self.heartbeat.owed_since(last) + HEARTBEAT_TIMEOUT)
    }

    /// When servers last acknowledged a heartbeat, or this life of the agent began.
    pub fn last_contact(&self) -> Instant {
        self.heartbeat.last().unwrap_or(self.since)
    }

    /// Whether servers acknowledged that an allocation ended, as it is by this index of its record, if it has one.
    pub fn knows_end(&self, id: AllocId, index: Option<u64>) -> bool {
        self.reports.knows_end(id, index)
    }

    /// How often servers acknowledged something new of allocations in this life of the agent.
    pub fn acknowledgements(&self) -> u64 {
        self.reports.acknowledgements()
    }

    /// An allocation that ended is removed here; what servers know of it, and that they do, is remembered.
    pub fn keep_end(&mut self, cx: &mut Cx<'_>, id: AllocId) {
        self.services.note(cx, id, Instances::new());
        self.silence.remove(&id);
    }

    /// Nothing of an allocation is left here.
    pub fn forget(&mut self, cx: &mut Cx<'_>, id: AllocId) {
        self.watch.forget(id);
        self.reports.forget(cx, id);
        self.services.note(cx, id, Instances::new());
        self.refused.remove(&id);
        self.passed_over.remove(&id);
        self.silence.remove(&id);
    }
}
