//! The services of allocations that servers placed here: registered at the servers, and removed there.
//!
//! What they may have and shall have is in [`crate::announced`]; here is decided when they are told.
//!
//! - **One call at a time**, so that no registration overtakes the removal that follows it. While one is under way the
//!   rest gathers; so many services that come together are a few calls.
//! - **Removals go first**: tasks wait for them before they are asked to end. What servers do not have is removed.
//! - What they acknowledged and did not change is not sent again, also not by the next agent. Servers that may have
//!   given up what runs here are told all of it again.
//! - A call that failed is made again after a pause, which grows; sooner once servers answer anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::retry::up_to_twice;
use crate::announced::Instances;
use crate::cluster::{Call, ServiceInstance};
use crate::cx::Cx;
use crate::ids::AllocId;
use crate::op::Op;
use crate::store::server::Announcement;
use crate::store::{Key, Record};
use crate::time::{Instant, Span};

/// Between a call and a removal.
const REMOVAL_TICK: Span = Span::millis(50);
/// Between a call and a registration.
const TICK: Span = Span::millis(200);
/// The pause after the first error; each that follows doubles it, up to the longest, and up to as much is added.
const ERROR_PAUSE: Span = Span::secs(1);
/// The longest.
const MAX_PAUSE: Span = Span::secs(30);
/// How soon after an error another call's success lets it be tried again.
const SOONEST: Span = Span::secs(1);
/// How many services are registered by a call.
const MAX_REGISTERED: usize = 500;
/// How many are removed by one: servers take them one by one.
const MAX_REMOVED: usize = 100;

/// What servers are to be told of services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Services {
    /// The allocations of which servers may have something that they shall not have.
    unwanted: BTreeSet<AllocId>,
    /// Those of which they may lack something.
    missing: BTreeSet<AllocId>,
    /// The call that is under way, and what is in it.
    asked: Option<(Op, Sent)>,
    /// When the last call was made or answered.
    last: Option<Instant>,
    /// When it failed, and until when there is a pause for that.
    pause: Option<(Instant, Instant)>,
    /// How often in a row it failed.
    failures: u32,
}

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Sent {
    Registered(Vec<Arc<ServiceInstance>>),
    Removed(Vec<Arc<ServiceInstance>>),
}

impl Services {
    /// Servers shall have these of an allocation.
    pub(super) fn note(&mut self, cx: &mut Cx<'_>, alloc: AllocId, wanted: Instances) {
        if cx.shared.announced.want(alloc, wanted) {
            self.review(cx, alloc);
        }
    }

    /// Something changed of what servers have or shall have of an allocation.
    pub(super) fn review(&mut self, cx: &Cx<'_>, alloc: AllocId) {
        let announced = &cx.shared.announced;
        match announced.unwanted(alloc).next() {
            Some(_) => self.unwanted.insert(alloc),
            None => self.unwanted.remove(&alloc),
        };
        match announced.missing(alloc).next() {
            Some(_) => self.missing.insert(alloc),
            None => self.missing.remove(&alloc),
        };
    }

    /// When the next call is made.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let tick = match (self.unwanted.is_empty(), self.missing.is_empty()) {
            _ if self.asked.is_some() => return None,
            (true, true) => return None,
            (false, _) => REMOVAL_TICK,
            (true, false) => TICK,
        };
        let due = self.last.map_or(Instant::default(), |last| last + tick);
        Some(self.pause.map_or(due, |(_, until)| due.max(until)))
    }

    /// The call that is due, if it is time. What it registers, servers may have from now on; what it removes, they may
    /// have or not.
    pub(super) fn due(&mut self, cx: &mut Cx<'_>) -> Option<Call> {
        if self.deadline().is_none_or(|at| at > cx.now.at) {
            return None;
        }
        let announced = &cx.shared.announced;
        let unwanted = self.unwanted.iter();
        let unwanted = unwanted.flat_map(|id| announced.unwanted(*id));
        let removed: Vec<_> = unwanted.take(MAX_REMOVED).cloned().collect();
        if !removed.is_empty() {
            self.doubtful(cx, &removed);
            return Some(Call::RemoveServices(removed));
        }
        let missing = self.missing.iter();
        let missing = missing.flat_map(|id| announced.missing(*id));
        let registered: Vec<_> = missing.take(MAX_REGISTERED).cloned().collect();
        self.doubtful(cx, &registered);
        (!registered.is_empty()).then_some(Call::RegisterServices(registered))
    }

    /// Nobody knows whether servers have these.
    fn doubtful(&mut self, cx: &mut Cx<'_>, services: &[Arc<ServiceInstance>]) {
        for (alloc, services) in by_alloc(services) {
            edit(cx, alloc, |known| {
                for instance in services {
                    let (id, instance) = (instance.id.clone(), instance.clone());
                    let acknowledged = false;
                    let doubtful = Announcement {
                        instance,
                        acknowledged,
                    };
                    known.insert(id, doubtful);
                }
            });
        }
    }

    pub(super) fn asked(&mut self, now: Instant, op: Op, call: &Call) {
        let sent = match call {
            Call::RegisterServices(services) => Sent::Registered(services.clone()),
            Call::RemoveServices(services) => Sent::Removed(services.clone()),
            Call::Register(_)
            | Call::Heartbeat { .. }
            | Call::EmitEvents(_)
            | Call::WatchAllocs { .. }
            | Call::PullAllocs { .. }
            | Call::ReportAllocs(_) => return,
        };
        (self.asked, self.last, self.pause) = (Some((op, sent)), Some(now), None);
    }

    /// Whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        self.asked.as_ref().map(|(op, _)| *op)
    }

    /// The servers did what they were asked for. Returns the allocations of which they removed something.
    pub(super) fn acknowledge(&mut self, cx: &mut Cx<'_>) -> Vec<AllocId> {
        self.failures = 0;
        match self.asked.take() {
            Some((_, Sent::Registered(services))) => {
                self.registered(cx, &services);
                Vec::new()
            }
            Some((_, Sent::Removed(services))) => {
                let removed = by_alloc(&services);
                for (alloc, services) in &removed {
                    edit(cx, *alloc, |known| {
                        for instance in services {
                            known.remove(&instance.id);
                        }
                    });
                    self.review(cx, *alloc);
                }
                removed.into_keys().collect()
            }
            None => Vec::new(),
        }
    }

    fn registered(&mut self, cx: &mut Cx<'_>, services: &[Arc<ServiceInstance>]) {
        for (alloc, services) in by_alloc(services) {
            edit(cx, alloc, |known| {
                for instance in services {
                    if let Some(one) = known.get_mut(&instance.id) {
                        one.acknowledged = one.instance == *instance;
                    }
                }
            });
            self.review(cx, alloc);
        }
    }

    /// Nobody knows whether the servers did it.
    pub(super) fn failed(&mut self, cx: &mut Cx<'_>) {
        self.asked = None;
        let doubled = ERROR_PAUSE.0 << self.failures.min(5);
        self.failures = self.failures.saturating_add(1);
        let pause = up_to_twice(cx, Span(doubled).min(MAX_PAUSE));
        self.pause = Some((cx.now.at, cx.now.at + pause));
    }

    /// A call succeeded: servers can be reached.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Some((failed, until)) = &mut self.pause {
            *until = now.max(*failed + SOONEST).min(*until);
        }
    }

    /// Servers may not have what they acknowledged of an allocation.
    pub(super) fn doubt(&mut self, cx: &mut Cx<'_>, alloc: AllocId) {
        // That a registration which is under way is acknowledged says nothing of what came after it.
        if let Some((_, Sent::Registered(services))) = &mut self.asked {
            services.retain(|one| one.alloc != alloc);
        }
        edit(cx, alloc, |known| {
            for one in known.values_mut() {
                one.acknowledged = false;
            }
        });
        self.review(cx, alloc);
    }

    /// The same of all.
    pub(super) fn doubt_all(&mut self, cx: &mut Cx<'_>) {
        let all: Vec<AllocId> = cx.shared.announced.allocs().collect();
        all.into_iter().for_each(|id| self.doubt(cx, id));
    }

    /// Whether servers have the services that they shall have, and no others.
    pub fn is_at_rest(&self) -> bool {
        self.unwanted.is_empty() && self.missing.is_empty() && self.asked.is_none()
    }
}

/// Changes what servers may have of an allocation, and remembers it.
fn edit(
    cx: &mut Cx<'_>,
    alloc: AllocId,
    change: impl FnOnce(&mut BTreeMap<Arc<str>, Announcement>),
) {
    let Some(known) = cx.shared.announced.edit(alloc, change) else {
        return;
    };
    let key = Key::Announced(alloc);
    match known.services.is_empty() {
        true => cx.forget(key),
        false => cx.remember(key, Record::Announced(known)),
    }
}

fn by_alloc(services: &[Arc<ServiceInstance>]) -> BTreeMap<AllocId, Vec<&Arc<ServiceInstance>>> {
    let mut all: BTreeMap<AllocId, Vec<&Arc<ServiceInstance>>> = BTreeMap::new();
    for one in services {
        all.entry(one.alloc).or_default().push(one);
    }
    all
}
