//! The cluster's side of a node: it is registered at the servers, alive in their eyes, and known as it is.
//!
//! [`Server`] is there if the configuration names a cluster ([`crate::config::ClusterConfig`]). It knows no sockets:
//! it makes *calls* ([`crate::cluster`]), each with a number and a deadline in the table of operations, and takes
//! their answers. Whatever comes late, twice, or as the answer to something else is stale.
//!
//! - **Registration** ([`registration`]), **heartbeats** ([`heartbeat`]) and **events** ([`node_events`]) are small
//!   machines of their own, each with one call under way at most, so that a call that hangs holds up no other.
//! - **Credentials.** A node that was never registered has none; then it is known by its secret, until servers sign an
//!   identity for it. Where servers refuse what it has, it is registered without.
//! - **The servers** are those of the last reply. They are handed on when they changed, and a reply without any is a failure.
//! - **What outlives the agent** is in [`ServerRecord`]: that the node is registered, so that the next agent beats
//!   at once, its identity and its eligibility.

pub mod heartbeat;
pub mod node_events;
pub mod registration;
mod retry;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::heartbeat::Heartbeat;
use self::node_events::NodeEvents;
use self::registration::Registration;
use crate::cluster::{
    Answer, Call, CallError, CallErrorKind, CallKind, ClientNode, Credentials, NodeReply,
};
use crate::cx::Cx;
use crate::effect::{Effect, ServerEffect};
use crate::input::ServerInput;
use crate::model::drain::Eligibility;
use crate::op::Op;
use crate::operations::{Owner, Purpose};
use crate::store::server::ServerRecord;
use crate::store::{Key, Record};
use crate::time::{Instant, Span};

/// How many servers are believed to be.
const MAX_SERVERS: usize = 256;

/// How long a heartbeat may take: servers hold one back for 5 s while they elect a leader, and one that is lost shall be
/// tried again before the node counts as lost, which is 10 s after its time.
const HEARTBEAT_TIMEOUT: Span = Span::secs(7);

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
}

/// The node's life in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    record: Arc<ServerRecord>,
    registration: Registration,
    heartbeat: Heartbeat,
    events: NodeEvents,
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
    pub fn new(saved: Option<&Arc<ServerRecord>>, now: Instant) -> Server {
        let record = saved.cloned().unwrap_or_default();
        let mut server = Server::default();
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
    pub fn on_input(&mut self, cx: &mut Cx<'_>, input: ServerInput) {
        match input {
            ServerInput::Answered { op, result } => {
                let kind = answered_kind(cx, op, &result);
                let operations = &mut cx.shared.operations;
                match kind.filter(|_| operations.answered(&Owner::Server, op, true).is_some()) {
                    Some(kind) => self.answered(cx, kind, result),
                    None => cx.count_stale(),
                }
            }
            ServerInput::RenewIdentity => self.renew_identity = true,
        }
    }

    /// The answer to a call did not come in time.
    pub fn on_overdue(&mut self, cx: &mut Cx<'_>, purpose: &Purpose) {
        if let Purpose::Call(kind) = purpose {
            self.answered(cx, *kind, Err(CallError::too_late()));
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, kind: CallKind, result: Result<Answer, CallError>) {
        match result.and_then(worth_something) {
            Ok(answer) => {
                self.last_error = None;
                match answer {
                    Answer::Registered(reply) => self.registered(cx, reply),
                    Answer::Heartbeat(reply) => self.beaten(cx, reply),
                    Answer::EventsKept => self.events.acknowledge(cx.now.at),
                }
            }
            Err(error) => {
                match kind {
                    CallKind::Register => self.registration_failed(cx, error.kind),
                    CallKind::Heartbeat => self.heartbeat_failed(cx, error.kind),
                    CallKind::EmitEvents => {
                        let again = retry::registration(cx, error.kind);
                        self.events.failed(again);
                    }
                }
                self.last_error = Some(error.message);
            }
        }
    }

    fn registered(&mut self, cx: &mut Cx<'_>, reply: NodeReply) {
        self.registration.acknowledge(cx.now.at);
        self.heartbeat.registered(cx.now.at, reply.heartbeat_ttl);
        self.take(cx, reply, true);
    }

    fn beaten(&mut self, cx: &mut Cx<'_>, reply: NodeReply) {
        self.heartbeat.acknowledge(cx.now.at, reply.heartbeat_ttl);
        self.take(cx, reply, false);
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
        }
        if self.heartbeat.is_due(now) {
            let renew_identity = self.renew_identity && self.record.identity.is_some();
            let op = self.call(cx, Call::Heartbeat { renew_identity }, HEARTBEAT_TIMEOUT);
            self.heartbeat.asked(op);
        }
        if self.heartbeat.is_ready()
            && let Some(events) = self.events.due(now)
        {
            let op = self.call(cx, Call::EmitEvents(events), CALL_TIMEOUT);
            self.events.asked(op);
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
            CallKind::Register => cx.send_after_save(effect),
            CallKind::Heartbeat | CallKind::EmitEvents => cx.send(effect),
        }
        op
    }

    /// When [`Server::handle_timeout`] has something to do, and what.
    pub fn deadline(&self) -> Option<(Instant, ServerTimer)> {
        let events = self.events.deadline();
        [
            (self.registration.deadline(), ServerTimer::Register),
            (self.heartbeat.deadline(), ServerTimer::Heartbeat),
            // Of a node that is not known nothing is taken.
            (
                events.filter(|_| self.heartbeat.is_ready()),
                ServerTimer::Events,
            ),
        ]
        .into_iter()
        .filter_map(|(at, timer)| Some((at?, timer)))
        .min()
    }

    /// The calls whose answers are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Op> {
        let calls = [
            self.registration.awaited(),
            self.heartbeat.awaited(),
            self.events.awaited(),
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
        Answer::EventsKept => false,
    };
    match names_none {
        true => Err(CallError {
            kind: CallErrorKind::Other,
            message: "the reply of the server names no servers".to_owned(),
        }),
        false => Ok(answer),
    }
}
