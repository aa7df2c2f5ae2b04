//! The model of the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::cluster::{
    AllocIndexes, AllocReport, Answer, Call, CallError, CallErrorKind, ClientNode, Credentials,
    NodeReply, PlacedAlloc, PulledAllocs, ServiceInstance,
};
use drover_core::cx::Rng;
use drover_core::ids::AllocId;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::drain::Eligibility;
use drover_core::model::node::NodeEvent;
use drover_core::model::secret::Secret;
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

use crate::world::{World, dice};

/// What an agent hears after a while.
pub(crate) struct Reaction {
    pub(crate) life: u32,
    pub(crate) after: Span,
    pub(crate) op: Op,
    pub(crate) result: Result<Answer, CallError>,
}

/// How likely troubles are, in percent of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// A call or its answer is lost.
    pub(crate) lost: u64,
    /// A call is refused.
    pub(crate) refused: u64,
    /// An answer is late, doubled or of another kind.
    pub(crate) strange: u64,
    /// The node is forgotten.
    pub(crate) forgotten: u64,
    /// A server is behind.
    pub(crate) behind: u64,
}

/// What servers know of the node.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) node: Arc<ClientNode>,
    pub(crate) ready: bool,
    /// When it counts as lost.
    pub(crate) lost_at: Instant,
    pub(crate) eligibility: Eligibility,
}

/// An allocation, as servers know it.
#[derive(Clone, Debug)]
pub(crate) struct Alloc {
    pub(crate) placed: PlacedAlloc,
    pub(crate) reported: Option<Arc<AllocReport>>,
}

/// A call that waits for news.
struct Waiting {
    life: u32,
    op: Op,
    index: u64,
    until: Instant,
}

/// All allocations at an index.
type Past = (u64, BTreeMap<AllocId, PlacedAlloc>);

/// The servers.
pub(crate) struct Servers {
    pub(crate) known: Option<Known>,
    pub(crate) trouble: Trouble,
    pub(crate) names: Vec<Arc<str>>,
    /// How often the node was lost: no heartbeat came in time.
    pub(crate) losses: u64,
    pub(crate) allocs: BTreeMap<AllocId, Alloc>,
    /// Those that a reply ever named in full.
    pub(crate) sent: BTreeSet<AllocId>,
    /// What opens the disks that allocations here get from other nodes.
    pub(crate) migrate_tokens: BTreeMap<AllocId, Secret>,
    /// The most that a call asked for in full.
    pub(crate) largest_pull: usize,
    /// The services that are registered.
    pub(crate) services: BTreeMap<Arc<str>, Arc<ServiceInstance>>,
    pub(crate) index: u64,
    past: Vec<Past>,
    waiting: Vec<Waiting>,
    /// When something changed that a waiting call wants.
    changed_at: Option<Instant>,
    /// How many identities were signed for the node, and when those are over that servers believe.
    identities: u64,
    signed: BTreeMap<u64, Instant>,
    /// For how long they count.
    pub(crate) identity_ttl: Span,
    /// The events of the node that each call about them brought.
    pub(crate) events: Vec<Vec<NodeEvent>>,
    /// By what the node was registered each time that it was.
    pub(crate) registered_by: Vec<Credentials>,
    rng: Rng,
}

/// After its time, a node has so much longer.
const GRACE: Span = Span::secs(10);

fn error(kind: CallErrorKind) -> CallError {
    CallError {
        kind,
        message: format!("{kind:?}"),
    }
}

impl Servers {
    pub(crate) fn new(seed: u64) -> Servers {
        let mut rng = Rng::new(seed ^ 0xacdc);
        // In half of the worlds each trouble is there or not; in the others there is some of each.
        let swarm = seed.is_multiple_of(2);
        let mut level = |most: u64| match swarm {
            true => [0, most][usize::try_from(dice(&mut rng, 2)).unwrap_or(0)],
            false => most / 3,
        };
        let trouble = Trouble {
            lost: level(40),
            refused: level(40),
            strange: level(40),
            forgotten: level(10),
            behind: level(50),
        };
        Servers {
            known: None,
            trouble,
            names: World::names(),
            losses: 0,
            allocs: BTreeMap::new(),
            sent: BTreeSet::new(),
            migrate_tokens: BTreeMap::new(),
            largest_pull: 0,
            services: BTreeMap::new(),
            index: 1,
            past: Vec::new(),
            waiting: Vec::new(),
            changed_at: None,
            identities: 0,
            signed: BTreeMap::new(),
            // Longer than between three heartbeats, or than most tests take.
            identity_ttl: Span::secs(if seed % 4 == 2 { 60 } else { 24 * 3600 }),
            events: Vec::new(),
            registered_by: Vec::new(),
            rng,
        }
    }

    fn happens(&mut self, percent: u64, calm: bool) -> bool {
        !calm && dice(&mut self.rng, 100) < percent
    }

    /// Something changed: whoever waits for news has some.
    pub(crate) fn changed(&mut self, now: Instant) {
        let placed = self.allocs.iter().map(|(id, it)| (*id, it.placed.clone()));
        self.past.push((self.index, placed.collect()));
        if self.past.len() > 20 {
            self.past.remove(0);
        }
        self.index += 1;
        self.changed_at = Some(now);
    }

    /// Servers change an allocation.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        id: AllocId,
        change: impl FnOnce(&mut PlacedAlloc),
    ) {
        self.changed(now);
        if let Some(alloc) = self.allocs.get_mut(&id) {
            change(&mut alloc.placed);
            alloc.placed.modify_index = self.index;
        }
    }

    pub(crate) fn place(&mut self, now: Instant, mut placed: PlacedAlloc) {
        self.changed(now);
        placed.modify_index = self.index;
        let reported = None;
        self.allocs.insert(placed.id, Alloc { placed, reported });
    }

    /// Servers collect an allocation as garbage.
    pub(crate) fn collect(&mut self, now: Instant, id: AllocId) {
        self.changed(now);
        self.allocs.remove(&id);
        self.services.retain(|_, it| it.alloc != id);
    }

    /// Servers have what they had by this index, and count on from there. Whoever waits hears at once.
    pub(crate) fn restore(&mut self, now: Instant, index: u64, allocs: BTreeMap<AllocId, Alloc>) {
        (self.index, self.allocs) = (index, allocs);
        self.past.clear();
        self.waiting.iter_mut().for_each(|one| one.until = now);
    }

    /// When something happens here by itself.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let known = self.known.as_ref().filter(|it| it.ready);
        let lost = known.map(|it| it.lost_at);
        let waiting = self.waiting.iter().map(|it| it.until).min();
        let changed = self.changed_at.filter(|_| !self.waiting.is_empty());
        [lost, waiting, changed].into_iter().flatten().min()
    }

    pub(crate) fn time_passes(&mut self, now: Instant) -> Vec<Reaction> {
        if let Some(known) = self
            .known
            .as_mut()
            .filter(|it| it.ready && it.lost_at <= now)
        {
            self.losses += 1;
            known.ready = false;
            // As of one that is down; one that is only disconnected keeps them.
            if dice(&mut self.rng, 2) == 0 {
                self.services.clear();
            }
            for id in self.allocs.keys().copied().collect::<Vec<_>>() {
                let live = |it: &Alloc| !it.placed.client_status.is_terminal();
                if self.allocs.get(&id).is_some_and(live) {
                    self.change(now, id, |it| it.client_status = ClientStatus::Unknown);
                }
            }
        }
        self.changed_at = self.changed_at.filter(|at| *at > now);
        let (index, mut over) = (self.index, Vec::new());
        self.waiting.retain(|one| {
            let is_over = one.index < index || one.until <= now;
            if is_over {
                over.push((one.life, one.op));
            }
            !is_over
        });
        let indexes = self.indexes(None);
        let react = |(life, op)| Reaction {
            life,
            after: Span::millis(1),
            op,
            result: Ok(Answer::Indexes(indexes.clone())),
        };
        over.into_iter().map(react).collect()
    }

    /// Which allocations the node has, now or in the past.
    fn indexes(&self, past: Option<&Past>) -> AllocIndexes {
        let of = |allocs: &BTreeMap<AllocId, PlacedAlloc>| {
            let all = allocs.iter();
            all.map(|(id, it)| (*id, it.modify_index)).collect()
        };
        let (index, allocs) = match (past, &self.known) {
            (Some((index, allocs)), _) => (*index, of(allocs)),
            // Of a node that they do not know, they know nothing.
            (None, None) => (self.index, BTreeMap::new()),
            (None, Some(_)) => {
                let all = self.allocs.iter();
                let all = all.map(|(id, it)| (*id, it.placed.modify_index));
                (self.index, all.collect())
            }
        };
        AllocIndexes {
            index,
            allocs,
            migrate_tokens: self.migrate_tokens.clone(),
        }
    }

    fn past(&mut self, calm: bool) -> Option<Past> {
        let count = u64::try_from(self.past.len()).unwrap_or(0);
        let behind = self.happens(self.trouble.behind, calm) && count > 0;
        let at = usize::try_from(dice(&mut self.rng, count)).unwrap_or(0);
        self.past.get(at).filter(|_| behind).cloned()
    }

    /// A call arrives.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        calm: bool,
        (life, op): (u32, Op),
        credentials: &Credentials,
        call: Call,
    ) -> Vec<Reaction> {
        if self.happens(self.trouble.forgotten, calm) {
            self.forget_node(now);
        }
        if self.happens(self.trouble.refused, calm) {
            let kinds = [
                CallErrorKind::NoServers,
                CallErrorKind::NoLeader,
                CallErrorKind::Other,
                CallErrorKind::PermissionDenied,
            ];
            let kind = kinds[usize::try_from(dice(&mut self.rng, 4)).unwrap_or(0)];
            return self.answer(calm, life, op, Err(error(kind)));
        }
        if self.happens(self.trouble.strange / 4, calm) {
            return self.answer(calm, life, op, Ok(Answer::Heartbeat(NodeReply::default())));
        }
        if let Call::WatchAllocs { index, max_wait } = &call {
            // By index 0 a server is asked that is not behind.
            let past = self.past(calm).filter(|_| *index > 0);
            let answer = self.indexes(past.as_ref());
            if answer.index <= *index && past.is_none() {
                let (index, until) = (*index, now + *max_wait);
                self.waiting.push(Waiting {
                    life,
                    op,
                    index,
                    until,
                });
                return Vec::new();
            }
            return self.answer(calm, life, op, Ok(Answer::Indexes(answer)));
        }
        let result = self.handle(now, calm, credentials, call);
        if self.happens(self.trouble.lost, calm) {
            return Vec::new();
        }
        self.answer(calm, life, op, result)
    }

    /// The node is purged; in half of all cases what it has is forgotten, too.
    pub(crate) fn forget_node(&mut self, now: Instant) {
        self.known = None;
        self.changed(now);
        if dice(&mut self.rng, 2) == 0 {
            self.allocs.clear();
            self.services.clear();
        }
    }

    /// The answer comes once and soon, unless it does not.
    fn answer(
        &mut self,
        calm: bool,
        life: u32,
        op: Op,
        result: Result<Answer, CallError>,
    ) -> Vec<Reaction> {
        let mut all = vec![Span::millis(1)];
        if self.happens(self.trouble.strange, calm) {
            let after = [0, 1, 6999, 7000, 7001, 29_999, 60_000].map(Span::millis);
            let mut some = || after[usize::try_from(dice(&mut self.rng, 7)).unwrap_or(0)];
            all = vec![some(), some()];
        }
        let react = |after| Reaction {
            life,
            after,
            op,
            result: result.clone(),
        };
        all.into_iter().map(react).collect()
    }

    /// Whether servers believe that it is the node who calls. By an identity that is over it can still register.
    fn is_believed(&self, now: Instant, credentials: &Credentials, call: &Call) -> bool {
        let registers = matches!(call, Call::Register(_));
        match credentials {
            Credentials::None => registers,
            Credentials::NodeSecret => self.known.is_some(),
            Credentials::Identity(text) => {
                let until = self.until(text);
                until.is_some_and(|until| registers || now < until)
            }
        }
    }

    /// Until when an identity counts, if servers believe it.
    fn until(&self, identity: &Secret) -> Option<Instant> {
        let number = identity.expose().strip_prefix("identity ")?;
        self.signed.get(&number.parse().ok()?).copied()
    }

    /// Servers have new keys: nobody believes what they signed before.
    pub(crate) fn new_keys(&mut self) {
        self.signed.clear();
    }

    fn handle(
        &mut self,
        now: Instant,
        calm: bool,
        credentials: &Credentials,
        call: Call,
    ) -> Result<Answer, CallError> {
        if !self.is_believed(now, credentials, &call) {
            return Err(error(CallErrorKind::PermissionDenied));
        }
        match call {
            Call::Register(node) => {
                self.registered_by.push(credentials.clone());
                let reply = self.reply(now, calm, credentials);
                let lost_at = now + reply.heartbeat_ttl + GRACE;
                let before = self.known.take();
                self.known = Some(Known {
                    node,
                    ready: before.as_ref().is_some_and(|it| it.ready),
                    lost_at,
                    eligibility: before.map_or(Eligibility::Eligible, |it| it.eligibility),
                });
                self.changed(now);
                Ok(Answer::Registered(reply))
            }
            Call::Heartbeat { .. } => {
                let mut reply = self.reply(now, calm, credentials);
                let Some(known) = &mut self.known else {
                    return Err(error(CallErrorKind::UnknownNode));
                };
                let was_ready = core::mem::replace(&mut known.ready, true);
                known.lost_at = now + reply.heartbeat_ttl + GRACE;
                if !was_ready || reply.identity.is_some() {
                    self.changed(now);
                    reply.index = self.index;
                }
                Ok(Answer::Heartbeat(reply))
            }
            Call::EmitEvents(events) => match self.known {
                Some(_) => {
                    self.events.push(events);
                    Ok(Answer::EventsKept)
                }
                None => Err(error(CallErrorKind::UnknownNode)),
            },
            Call::WatchAllocs { .. } => Err(error(CallErrorKind::Other)),
            Call::PullAllocs { ids, .. } => Ok(Answer::Pulled(self.pull(calm, &ids))),
            Call::ReportAllocs(reports) => match &self.known {
                Some(known) if known.ready => {
                    self.take(now, reports);
                    Ok(Answer::ReportsKept)
                }
                Some(_) | None => Err(error(CallErrorKind::Other)),
            },
            Call::RegisterServices(_) | Call::RemoveServices(_) if self.known.is_none() => {
                Err(error(CallErrorKind::PermissionDenied))
            }
            Call::RegisterServices(services) => {
                let services = services.into_iter().map(|it| (it.id.clone(), it));
                self.services.extend(services);
                Ok(Answer::ServicesRegistered)
            }
            Call::RemoveServices(services) => {
                for service in services {
                    self.services.remove(&service.id);
                }
                Ok(Answer::ServicesRemoved)
            }
        }
    }

    fn pull(&mut self, calm: bool, ids: &[AllocId]) -> PulledAllocs {
        self.largest_pull = self.largest_pull.max(ids.len());
        let past = self.past(calm);
        let mut allocs = Vec::new();
        for id in ids {
            let present = || self.allocs.get(id).map(|it| &it.placed);
            let found = match &past {
                Some((_, allocs)) => allocs.get(id),
                None => present(),
            };
            allocs.extend(found.cloned().map(Arc::new));
        }
        self.sent.extend(allocs.iter().map(|it| it.id));
        if self.happens(self.trouble.strange, calm) {
            allocs.extend(allocs.clone());
            allocs.reverse();
        }
        let index = past.map_or(self.index, |(index, _)| index);
        PulledAllocs {
            index,
            allocs,
            unreadable: Vec::new(),
        }
    }

    fn take(&mut self, now: Instant, reports: Vec<Arc<AllocReport>>) {
        self.changed(now);
        for report in reports {
            if let Some(alloc) = self.allocs.get_mut(&report.id) {
                alloc.placed.client_status = report.status;
                if report.status.is_terminal() {
                    self.services.retain(|_, it| it.alloc != report.id);
                }
                alloc.reported = Some(report);
            }
        }
    }

    fn reply(&mut self, now: Instant, calm: bool, credentials: &Credentials) -> NodeReply {
        if self.happens(self.trouble.strange / 2, calm) {
            self.names = World::names();
            let count = dice(&mut self.rng, 4);
            self.names.truncate(usize::try_from(count).unwrap_or(0));
        }
        if calm && self.names.is_empty() {
            self.names = World::names();
        }
        let ends_soon = match credentials {
            Credentials::Identity(text) => {
                let soon = now + Span(self.identity_ttl.0 / 3);
                self.until(text).is_some_and(|until| until < soon)
            }
            Credentials::NodeSecret => true,
            Credentials::None => false,
        };
        let renews = ends_soon || !calm && dice(&mut self.rng, 10) == 0;
        let identity = renews.then(|| {
            self.identities += 1;
            self.signed.insert(self.identities, now + self.identity_ttl);
            format!("identity {}", self.identities).into()
        });
        let seconds = 10 + dice(&mut self.rng, 10);
        let known = self.known.as_ref();
        NodeReply {
            heartbeat_ttl: Span::secs(i64::try_from(seconds).unwrap_or(10)),
            servers: self.names.clone(),
            eligibility: known.map(|it| it.eligibility),
            identity,
            index: 0,
        }
    }
}
