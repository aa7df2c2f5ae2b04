//! The cluster's side of a node: it is registered at the servers, alive in their eyes, and known as it is.
//!
//! [`Server`] is there if the configuration names a cluster ([`crate::config::ClusterConfig`]). It knows no sockets:
//! it makes *calls* ([`crate::cluster`]), each with a number and a deadline in the table of operations, and takes
//! their answers. Whatever comes late, twice, or as the answer to something else is stale.
//!
//! - **Registration** ([`registration`]), **heartbeats** ([`heartbeat`]) and **events** ([`node_events`]) are small
//!   machines of their own, each with one call under way at most, so that a call that hangs holds up no other.
//! - **Allocations** that servers placed here are watched and pulled ([`watch`]), and what became of them is reported
//!   ([`reports`]). What is done with them is decided in `agent/cluster/allocs.rs`. Those whose groups say so end when
//!   servers are out of reach for too long.
//! - **Services** of those are registered at the servers and removed there ([`services`]).
//! - **Credentials.** A node that was never registered has none; then it is known by its secret, until servers sign an
//!   identity for it. Where servers refuse what it has, it is registered without.
//! - **The servers** are those of the last reply. They are handed on when they changed, and a reply without any is a
//!   failure.
//! - **What outlives the agent** is in [`ServerRecord`]: that the node is registered, so that the next agent beats
//!   at once, its identity and its eligibility.

mod allocs;
pub mod heartbeat;
pub mod node_events;
pub mod registration;
pub mod reports;
mod retry;
pub mod services;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::heartbeat::Heartbeat;
use self::node_events::NodeEvents;
use self::registration::Registration;
use self::reports::Reports;
use self::services::Services;
use self::watch::Watch;
use crate::cluster::{
    Answer, Call, CallError, CallErrorKind, CallKind, ClientNode, Credentials, NodeReply,
    PlacedAlloc,
};
use crate::cx::Cx;
use crate::effect::{Effect, ServerEffect};
use crate::ids::AllocId;
use crate::input::ServerInput;
use crate::model::drain::Eligibility;
use crate::model::remote::RemotePrevious;
use crate::model::secret::Secret;
use crate::op::Op;
use crate::operations::{Owner, Purpose};
use crate::store::server::{ReportedRecord, ServerRecord};
use crate::store::{Key, Record};
use crate::time::{Instant, Span};

/// How many servers are believed to be.
const MAX_SERVERS: usize = 256;

/// How long a heartbeat may take: servers hold one back for 5 s while they elect a leader, and one that is lost shall be
/// tried again before the node counts as lost, which is 10 s after its time.
const HEARTBEAT_TIMEOUT: Span = Span::secs(7);

/// How long servers wait for a heartbeat whose time is over.
const GRACE: Span = Span::secs(10);

/// How long servers may wait with an answer that says nothing new; each adds a sixteenth to it at most.
const MAX_WAIT: Span = Span::secs(300);

/// How long they may wait until they have what they announced.
const MAX_PULL_WAIT: Span = Span::secs(30);

/// How long any other call may take that does not wait for something to happen.
const CALL_TIMEOUT: Span = Span::secs(30);

/// Why [`Server`] wants to be called back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ServerTimer {
    /// The node is registered.
    Register,
    /// A heartbeat is sent.
    Heartbeat,
    /// Events are sent.
    Events,
    /// The servers are asked which allocations there are.
    Watch,
    /// The servers are told what became of allocations.
    Reports,
    /// The servers are told which services there are.
    Services,
    /// An allocation is stopped, because the servers are out of reach.
    OutOfContact,
}

/// What servers said of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Those that are new, or newer than those that are here.
    pub placed: Vec<Arc<PlacedAlloc>>,
    /// What opens the disks of those that they replace on other nodes, for those that have it.
    pub tokens: BTreeMap<AllocId, Secret>,
    /// Those that are so as well and cannot be read, with the servers' index of each, and why.
    pub unreadable: Vec<(AllocId, u64, String)>,
    /// Those that servers do not have any more.
    pub dropped: Vec<AllocId>,
    /// Those of whose services they removed some.
    pub deregistered: Vec<AllocId>,
    /// Those that changed while they were reported.
    pub changed: Vec<AllocId>,
}

/// The node's life in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    record: Arc<ServerRecord>,
    registration: Registration,
    heartbeat: Heartbeat,
    events: NodeEvents,
    watch: Watch,
    reports: Reports,
    services: Services,
    /// How many registrations began or ended.
    registrations: u64,
    /// Those that cannot be run, and why.
    refused: BTreeMap<AllocId, Arc<str>>,
    /// Those that were never run here, because servers gave them up before or because they cannot be run, and what each
    /// was to replace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    passed_over: BTreeMap<AllocId, Option<RemotePrevious>>,
    /// Those that are to end when the servers are out of reach for so long.
    silence: BTreeMap<AllocId, Span>,
    /// When this life of the agent began.
    since: Instant,
    /// All servers, as the last reply said.
    servers: BTreeSet<Arc<str>>,
    /// Whether a new identity is wanted.
    renew_identity: bool,
    /// Why the last call that failed did, until one succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

impl Server {
    /// The life of a node of which this was remembered.
    /// `known` are the allocations of servers that are here, with the servers' index of each, and `reported` is what
    /// servers acknowledged of them.
    pub fn new(
        saved: Option<&Arc<ServerRecord>>,
        known: BTreeMap<AllocId, u64>,
        reported: BTreeMap<AllocId, Arc<ReportedRecord>>,
        now: Instant,
    ) -> Server {
        let record = saved.cloned().unwrap_or_default();
        let mut server = Server {
            watch: Watch::restored(known),
            reports: Reports::restored(reported),
            since: now,
            ..Server::default()
        };
        if record.registered {
            server.heartbeat.registered(now, Span::ZERO);
        }
        server.record = record;
        server
    }

    /// The node is this one from now on.
    pub fn observe(&mut self, cx: &Cx<'_>, node: ClientNode) {
        self.events.observe(cx.now.at, cx.now.wall, &node);
        self.registration.observe(cx.now.at, node);
    }

    /// Takes what comes from the servers.
    pub fn on_input(&mut self, cx: &mut Cx<'_>, input: ServerInput) -> News {
        match input {
            ServerInput::Answered { op, result } => {
                let kind = answered_kind(cx, op, &result);
                let operations = &mut cx.shared.operations;
                match kind.filter(|_| operations.answered(&Owner::Server, op, true).is_some()) {
                    Some(kind) => self.answered(cx, kind, result),
                    None => {
                        cx.count_stale();
                        News::default()
                    }
                }
            }
            ServerInput::RenewIdentity => {
                self.renew_identity = true;
                News::default()
            }
        }
    }

    /// The answer to a call did not come in time.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, purpose: &Purpose) {
        if let Purpose::Call(kind) = purpose {
            self.answered(cx, *kind, Err(CallError::too_late()));
        }
    }

    fn answered(
        &mut self,
        cx: &mut Cx<'_>,
        kind: CallKind,
        result: Result<Answer, CallError>,
    ) -> News {
        match result.and_then(worth_something) {
            Ok(answer) => {
                self.last_error = None;
                self.watch.wake(cx.now.at);
                self.services.wake(cx.now.at);
                self.succeeded(cx, answer)
            }
            Err(error) => {
                self.failed(cx, kind, error.kind);
                self.last_error = Some(error.message);
                News::default()
            }
        }
    }

    fn succeeded(&mut self, cx: &mut Cx<'_>, answer: Answer) -> News {
        let mut news = News::default();
        match answer {
            Answer::Registered(reply) => self.registered(cx, reply),
            Answer::Heartbeat(reply) => news.dropped = self.beaten(cx, reply),
            Answer::EventsKept => self.events.acknowledge(cx.now.at),
            Answer::Indexes(round) => self.watch.on_indexes(cx, round),
            Answer::Pulled(pulled) => {
                let pulled = self.watch.on_pulled(cx, pulled);
                (news.placed, news.tokens) = (pulled.placed, pulled.tokens);
                news.unreadable = pulled.unreadable;
            }
            Answer::ReportsKept => {
                news.changed = self.reports.acknowledge(cx);
            }
            Answer::ServicesRegistered | Answer::ServicesRemoved => {
                news.deregistered = self.services.acknowledge(cx);
            }
        }
        news
    }

    fn failed(&mut self, cx: &mut Cx<'_>, kind: CallKind, why: CallErrorKind) {
        match kind {
            CallKind::Register => self.registration_failed(cx, why),
            CallKind::Heartbeat => self.heartbeat_failed(cx, why),
            CallKind::EmitEvents => {
                let again = retry::registration(cx, why);
                self.events.failed(again);
            }
            CallKind::WatchAllocs | CallKind::PullAllocs => self.watch.failed(cx),
            CallKind::ReportAllocs => self.reports.failed(cx),
            CallKind::RegisterServices | CallKind::RemoveServices => self.services.failed(cx),
        }
    }

    fn registered(&mut self, cx: &mut Cx<'_>, reply: NodeReply) {
        self.registrations += 1;
        self.registration.acknowledge(cx.now.at);
        self.heartbeat.registered(cx.now.at, reply.heartbeat_ttl);
        self.take(cx, reply, true);
    }

    /// Returns the allocations that servers do not have any more.
    fn beaten(&mut self, cx: &mut Cx<'_>, reply: NodeReply) -> Vec<AllocId> {
        let now = cx.now.at;
        let was_late = self
            .heartbeat
            .counts_until()
            .is_some_and(|until| now - until > GRACE);
        // An index without an identity says that the node counted as something else before.
        if was_late || reply.index > 0 && reply.identity.is_none() {
            self.reports.doubt_live(cx);
            self.services.doubt_all(cx);
        }
        let sent = self.heartbeat.sent_at();
        self.heartbeat.acknowledge(now, reply.heartbeat_ttl);
        self.watch.start(now);
        self.take(cx, reply, false);
        self.watch.confirmed(cx, sent, self.registrations)
    }

    /// What a reply says besides.
    fn take(&mut self, cx: &mut Cx<'_>, reply: NodeReply, registers: bool) {
        let servers: BTreeSet<Arc<str>> = reply.servers.into_iter().take(MAX_SERVERS).collect();
        if self.servers != servers {
            let all = servers.iter().cloned().collect();
            cx.send(Effect::Server(ServerEffect::Servers(all)));
            self.servers = servers;
        }
        self.renew_identity &= reply.identity.is_none();
        self.edit(cx, |record| {
            record.registered |= registers;
            if reply.eligibility.is_some() {
                record.eligibility = reply.eligibility;
            }
            if reply.identity.is_some() {
                record.identity = reply.identity;
            }
        });
    }

    fn registration_failed(&mut self, cx: &mut Cx<'_>, why: CallErrorKind) {
        self.registrations += 1;
        let refused = why == CallErrorKind::PermissionDenied;
        if refused && self.credentials(CallKind::Register) != Credentials::None {
            // Nobody knows it by that any more: it registers as one that is new.
            self.edit(cx, |record| {
                (record.registered, record.identity) = (false, None);
            });
            let again = retry::registration(cx, CallErrorKind::NoServers);
            return self.registration.failed(again);
        }
        let again = retry::registration(cx, why);
        self.registration.failed(again);
    }

    fn heartbeat_failed(&mut self, cx: &mut Cx<'_>, why: CallErrorKind) {
        match why {
            CallErrorKind::UnknownNode | CallErrorKind::PermissionDenied => {
                self.heartbeat.forgotten();
                self.watch.stop(cx);
                self.reports.doubt_live(cx);
                self.services.doubt_all(cx);
                let pause = retry::up_to_twice(cx, registration::TAKES_EFFECT);
                self.registration.forgotten(cx.now.at, pause);
            }
            CallErrorKind::NoServers | CallErrorKind::NoLeader | CallErrorKind::Other => {
                let until = self.heartbeat.counts_until();
                let again = retry::heartbeat(cx, why, until);
                self.heartbeat.failed(again);
            }
        }
    }

    fn edit(&mut self, cx: &mut Cx<'_>, change: impl FnOnce(&mut ServerRecord)) {
        let mut record = ServerRecord::clone(&self.record);
        change(&mut record);
        if record != *self.record {
            self.record = Arc::new(record);
            cx.remember(Key::Server, Record::Server(self.record.clone()));
        }
    }

    /// By what servers know the node when it makes this call.
    fn credentials(&self, kind: CallKind) -> Credentials {
        let is_new = kind == CallKind::Register && !self.record.registered;
        match &self.record.identity {
            Some(identity) => Credentials::Identity(identity.clone()),
            None if is_new => Credentials::None,
            None => Credentials::NodeSecret,
        }
    }

    /// Makes the calls that are due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now.at;
        if let Some(node) = self.registration.due(now) {
            let op = self.call(cx, Call::Register(node.clone()), CALL_TIMEOUT);
            self.registration.asked(op, node);
            self.registrations += 1;
        }
        if self.next_beat().is_some_and(|at| at <= now) {
            let renew_identity = self.renew_identity && self.record.identity.is_some();
            let op = self.call(cx, Call::Heartbeat { renew_identity }, HEARTBEAT_TIMEOUT);
            self.heartbeat.asked(now, op);
        }
        if self.heartbeat.is_ready()
            && let Some(events) = self.events.due(now)
        {
            let op = self.call(cx, Call::EmitEvents(events), CALL_TIMEOUT);
            self.events.asked(op);
        }
        if let Some(index) = self.watch.due(now) {
            let max_wait = MAX_WAIT;
            let call = Call::WatchAllocs { index, max_wait };
            let op = self.call(cx, call, blocking(max_wait));
            let rests = self.registration.awaited().is_none();
            self.watch.asked(op, rests.then_some(self.registrations));
        }
        if let Some((ids, newer_than)) = self.watch.lacks() {
            let max_wait = MAX_PULL_WAIT;
            let call = Call::PullAllocs {
                ids,
                newer_than,
                max_wait,
            };
            let op = self.call(cx, call, blocking(max_wait));
            self.watch.pulls(op);
        }
        if self.may_report()
            && let Some(call) = self.services.due(cx)
        {
            let op = self.call(cx, call.clone(), CALL_TIMEOUT);
            self.services.asked(now, op, &call);
        }
    }

    /// What is decided up to now is saved before the servers hear of it: that a node of this id is here, for one.
    fn call(&self, cx: &mut Cx<'_>, call: Call, limit: Span) -> Op {
        let kind = call.kind();
        let op = cx.operation(Owner::Server, Purpose::Call(kind), limit);
        let credentials = self.credentials(kind);
        let effect = Effect::Server(ServerEffect::Call {
            op,
            credentials,
            call,
        });
        match kind {
            CallKind::Register
            | CallKind::ReportAllocs
            | CallKind::RegisterServices
            | CallKind::RemoveServices => cx.send_after_save(effect),
            CallKind::Heartbeat
            | CallKind::EmitEvents
            | CallKind::WatchAllocs
            | CallKind::PullAllocs => cx.send(effect),
        }
        op
    }

    /// When [`Server::handle_timeout`] has something to do, and what.
    pub fn deadline(&self) -> Option<(Instant, ServerTimer)> {
        let events = self.events.deadline();
        let reports = self.reports.deadline();
        let services = self.services.deadline();
        [
            (self.registration.deadline(), ServerTimer::Register),
            (self.next_beat(), ServerTimer::Heartbeat),
            // Of a node that is not known nothing is taken.
            (
                events.filter(|_| self.heartbeat.is_ready()),
                ServerTimer::Events,
            ),
            (self.watch.deadline(), ServerTimer::Watch),
            (reports.filter(|_| self.may_report()), ServerTimer::Reports),
            (
                services.filter(|_| self.may_report()),
                ServerTimer::Services,
            ),
            (self.next_without_contact(), ServerTimer::OutOfContact),
        ]
        .into_iter()
        .filter_map(|(at, timer)| Some((at?, timer)))
        .min()
    }

    /// When the next heartbeat is sent.
    fn next_beat(&self) -> Option<Instant> {
        let status = |id| self.reports.acknowledged(id);
        let lived = |id| status(id).is_some_and(|it| !it.is_terminal());
        let unnamed = self.watch.dropped_since(lived);
        let soon = unnamed.and_then(|since| self.heartbeat.confirms(since));
        soon.or(self.heartbeat.deadline())
    }

    /// The calls whose answers are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Op> {
        let calls = [
            self.registration.awaited(),
            self.heartbeat.awaited(),
            self.events.awaited(),
            self.watch.awaited(),
            self.reports.awaited(),
            self.services.awaited(),
        ];
        calls.into_iter().flatten()
    }

    /// What is remembered.
    pub fn record(&self) -> &ServerRecord {
        &self.record
    }

    /// The registration.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    /// The heartbeats.
    pub fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    /// What is known of the allocations that servers placed here.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// What servers are told of them.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// What servers are told of their services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// All servers, as the last reply said; none before the first.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.servers.iter()
    }

    /// Whether the node gets new allocations, as the servers said last.
    pub fn eligibility(&self) -> Option<Eligibility> {
        self.record.eligibility
    }

    /// Why the last call failed, if it did.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

/// How long a call may take that servers hold back for `max_wait`.
fn blocking(max_wait: Span) -> Span {
    Span(max_wait.0 + max_wait.0 / 16 + CALL_TIMEOUT.0)
}

/// To which kind of call this is an answer, if one of that kind is under way by that number.
fn answered_kind(cx: &Cx<'_>, op: Op, result: &Result<Answer, CallError>) -> Option<CallKind> {
    let operation = cx.shared.operations.get(op)?;
    let Purpose::Call(asked) = operation.purpose else {
        return None;
    };
    let is_other = result.as_ref().is_ok_and(|it| it.answers() != asked);
    (!is_other).then_some(asked)
}

/// A reply that names no server comes from one that does not know its cluster.
///
/// # Errors
/// It names none.
fn worth_something(answer: Answer) -> Result<Answer, CallError> {
    let names_none = match &answer {
        Answer::Registered(reply) | Answer::Heartbeat(reply) => reply.servers.is_empty(),
        Answer::EventsKept
        | Answer::Indexes(_)
        | Answer::Pulled(_)
        | Answer::ReportsKept
        | Answer::ServicesRegistered
        | Answer::ServicesRemoved => false,
    };
    match names_none {
        true => Err(CallError {
            kind: CallErrorKind::Other,
            message: "the reply of the server names no servers".to_owned(),
        }),
        false => Ok(answer),
    }
}
