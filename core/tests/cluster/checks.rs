//! What must hold at every moment, whatever the servers do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::servers::Servers;
use drover_core::agent::{Agent, Input};
use drover_core::cluster::{Answer, Call, CallErrorKind, ClientNode};
use drover_core::ids::AllocId;
use drover_core::input::ServerInput;
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

/// So many calls in a second are no busy loop.
const MOST_CALLS: usize = 12;

/// What was seen, and what of it was wrong.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) wrong: Vec<String>,
    /// The calls that are under way.
    open: BTreeMap<Op, Call>,
    /// The calls of the last second.
    recent: VecDeque<Instant>,
    /// Before when no heartbeat is asked for.
    next_beat: Option<Instant>,
    /// Whether a heartbeat was acknowledged since the node is known.
    ready: bool,
    /// What servers acknowledged and do have.
    registered: Option<Arc<ClientNode>>,
    pub(crate) servers: Vec<Arc<str>>,
    pub(crate) beats: u64,
    pub(crate) registrations: u64,
}

impl Checks {
    fn says(&mut self, what: String) {
        if self.wrong.len() < 20 {
            self.wrong.push(what);
        }
    }

    pub(crate) fn agent_started(&mut self, _: Instant) {
        self.open.clear();
        self.servers.clear();
        self.ready = false;
        (self.next_beat, self.registered) = (None, None);
    }

    pub(crate) fn servers_handed_on(&mut self, servers: Vec<Arc<str>>) {
        if servers == self.servers {
            self.says(format!(
                "the same servers were handed on again: {servers:?}"
            ));
        }
        if servers.is_empty() {
            self.says("no servers were handed on".to_owned());
        }
        self.servers = servers;
    }

    /// The agent asks.
    pub(crate) fn call(&mut self, now: Instant, op: Op, call: &Call) {
        self.recent.push_back(now);
        while self
            .recent
            .front()
            .is_some_and(|at| now - *at > Span::secs(1))
        {
            self.recent.pop_front();
        }
        if self.recent.len() > MOST_CALLS {
            self.says(format!(
                "{} calls in a second at {now:?}",
                self.recent.len()
            ));
        }
        if self.open.values().any(|it| it.kind() == call.kind()) {
            self.says(format!("two calls of one kind at {now:?}: {call:?}"));
        }
        match call {
            Call::Heartbeat { .. } => {
                self.beats += 1;
                if let Some(next) = self.next_beat.filter(|next| now < *next) {
                    self.says(format!("a heartbeat at {now:?}, due at {next:?}"));
                }
            }
            Call::Register(node) => {
                self.registrations += 1;
                if self.registered.as_ref() == Some(node) {
                    self.says(format!("the same node was registered again at {now:?}"));
                }
                if node.drivers.is_empty() {
                    self.says("a registration without drivers".to_owned());
                }
                self.registered = None;
            }
            Call::EmitEvents(events) => {
                if events.is_empty() || events.len() > 10 {
                    self.says(format!("{} events in a call", events.len()));
                }
            }
        }
        self.open.insert(op, call.clone());
    }

    /// The agent is about to hear this.
    pub(crate) fn input(&mut self, now: Instant, agent: &Agent, input: &Input) {
        let Input::Server(ServerInput::Answered { op, result }) = input else {
            return;
        };
        let Some(asked) = self.open.get(op).cloned() else {
            return;
        };
        let fits = result
            .as_ref()
            .map_or(true, |it| it.answers() == asked.kind());
        // One that came too late changes nothing.
        if !fits || agent.view().operations().get(*op).is_none() {
            return;
        }
        self.open.remove(op);
        let unknown = |kind| {
            matches!(
                kind,
                CallErrorKind::UnknownNode | CallErrorKind::PermissionDenied
            )
        };
        match (asked, result) {
            (Call::Heartbeat { .. }, Ok(Answer::Heartbeat(reply))) if !reply.servers.is_empty() => {
                (self.next_beat, self.ready) = (Some(now + reply.heartbeat_ttl), true);
            }
            (Call::Heartbeat { .. }, Err(why)) if unknown(why.kind) => {
                (self.next_beat, self.registered, self.ready) = (None, None, false);
            }
            (Call::Heartbeat { .. }, _) => self.next_beat = Some(now + Span::secs(1)),
            (Call::Register(node), Ok(Answer::Registered(reply))) if !reply.servers.is_empty() => {
                self.registered = Some(node);
                // The first heartbeat follows at once.
                let sooner = now + reply.heartbeat_ttl;
                let next = self.next_beat.filter(|_| self.ready);
                self.next_beat = next.map(|at| at.min(sooner));
            }
            (Call::Register(_) | Call::EmitEvents(_), _) => {}
        }
    }

    /// After each step.
    pub(crate) fn step(&mut self, now: Instant, agent: &Agent) {
        let overdue = |op: &Op| agent.view().operations().get(*op).is_none();
        let over: Vec<Op> = self.open.keys().copied().filter(overdue).collect();
        for op in over {
            if let Some(Call::Heartbeat { .. }) = self.open.remove(&op) {
                self.next_beat = Some(now + Span::secs(1));
            }
        }
    }

    /// A task is started.
    pub(crate) fn started(&mut self, _: Instant, _: AllocId, _: &Servers) {}
}
