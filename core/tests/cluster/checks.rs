//! What must hold at every moment, whatever the servers do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::world::Process;
use drover_core::agent::{Agent, Input};
use drover_core::cluster::{AllocReport, Answer, Call, CallErrorKind, ClientNode, ServiceInstance};
use drover_core::ids::{AllocId, TaskKey};
use drover_core::input::ServerInput;
use drover_core::model::alloc::ClientStatus;
use drover_core::op::Op;
use drover_core::store::record::AllocRecord;
use drover_core::time::{Instant, Span};

/// So many calls in a second are no busy loop.
const MOST_CALLS: usize = 20;

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
    /// How often servers did not name what is here and, as far as they know, lives: each time, one may be early.
    unnamed: u64,
    /// Whether a heartbeat was acknowledged since the node is known.
    ready: bool,
    /// Until when the last heartbeat counts.
    counts_until: Option<Instant>,
    /// What servers acknowledged, and when.
    kept: BTreeMap<AllocId, (Instant, Arc<AllocReport>)>,
    /// The services that servers acknowledged, and when.
    services: BTreeMap<Arc<str>, (Instant, Arc<ServiceInstance>)>,
    /// How many services were sent, and in how many calls.
    pub(crate) services_sent: usize,
    pub(crate) service_calls: u64,
    /// How often each was started.
    pub(crate) starts: BTreeMap<AllocId, u64>,
    pub(crate) reports: u64,
    pub(crate) report_calls: u64,
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

    pub(crate) fn agent_died(&mut self, now: Instant) {
        // What was acknowledged just now may not have been saved.
        self.kept.retain(|_, (at, _)| now - *at > Span::secs(1));
        self.services.retain(|_, (at, _)| now - *at > Span::secs(1));
    }

    pub(crate) fn agent_started(&mut self) {
        self.open.clear();
        self.servers.clear();
        self.ready = false;
        self.counts_until = None;
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

    /// Nobody awaits the answer any more.
    pub(crate) fn cancelled(&mut self, op: Op) {
        self.open.remove(&op);
    }

    /// The agent asks.
    pub(crate) fn call(&mut self, now: Instant, calm: bool, op: Op, call: &Call) {
        self.recent.push_back(now);
        while self
            .recent
            .front()
            .is_some_and(|at| now - *at > Span::secs(1))
        {
            self.recent.pop_front();
        }
        // Servers that are behind are asked again and again; those that are not have no reason.
        let most = if calm { MOST_CALLS } else { 2 * MOST_CALLS };
        if self.recent.len() > most {
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
                let early = self.next_beat.filter(|next| now < *next);
                let is_wanted = self.unnamed > 0;
                self.unnamed -= u64::from(early.is_some() && is_wanted);
                if let Some(next) = early.filter(|_| !is_wanted) {
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
            Call::ReportAllocs(reports) => self.reported(now, reports),
            Call::RegisterServices(services) => self.registers(now, services),
            Call::RemoveServices(services) => self.removes(now, services),
            Call::WatchAllocs { .. } | Call::PullAllocs { .. } => {}
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
                let late = self
                    .counts_until
                    .is_some_and(|at| now - at > Span::secs(10));
                if late || reply.index > 0 {
                    self.doubt();
                }
                let next = Some(now + reply.heartbeat_ttl);
                (self.next_beat, self.counts_until, self.ready) = (next, next, true);
            }
            (Call::Heartbeat { .. }, Err(why)) if unknown(why.kind) => {
                (self.next_beat, self.registered, self.ready) = (None, None, false);
                self.doubt();
            }
            (Call::Heartbeat { .. }, _) => self.next_beat = Some(now + Span::secs(1)),
            (Call::Register(node), Ok(Answer::Registered(reply))) if !reply.servers.is_empty() => {
                self.registered = Some(node);
                // The first heartbeat follows at once.
                let sooner = now + reply.heartbeat_ttl;
                let next = self.next_beat.filter(|_| self.ready);
                self.next_beat = next.map(|at| at.min(sooner));
            }
            (Call::ReportAllocs(reports), Ok(_)) => {
                let kept = reports.into_iter().map(|it| (it.id, (now, it)));
                self.kept.extend(kept);
            }
            (Call::RegisterServices(services), Ok(_)) => {
                let kept = services.into_iter().map(|it| (it.id.clone(), (now, it)));
                self.services.extend(kept);
            }
            (Call::WatchAllocs { index, .. }, Ok(Answer::Indexes(round)))
                if round.index > index =>
            {
                let lives = |id| {
                    !agent
                        .view()
                        .server()
                        .is_some_and(|it| it.knows_end(id, None))
                };
                let mut here = agent.view().allocs().map(|it| it.record());
                let lacks = here
                    .any(|it| it.of_servers && !round.allocs.contains_key(&it.id) && lives(it.id));
                self.unnamed += u64::from(lacks);
            }
            (Call::PullAllocs { .. }, Ok(Answer::Pulled(pulled))) => {
                for alloc in &pulled.allocs {
                    if alloc.client_status == ClientStatus::Unknown {
                        self.kept.remove(&alloc.id);
                        self.services.retain(|_, (_, it)| it.alloc != alloc.id);
                        self.doubt_asked(|id| id == alloc.id);
                    }
                }
            }
            (
                Call::Register(_)
                | Call::EmitEvents(_)
                | Call::WatchAllocs { .. }
                | Call::PullAllocs { .. }
                | Call::ReportAllocs(_)
                | Call::RegisterServices(_)
                | Call::RemoveServices(_),
                _,
            ) => {}
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

    /// A task is started, while these processes are alive.
    pub(crate) fn started<'a>(
        &mut self,
        alloc: &AllocRecord,
        sent: bool,
        others: impl Iterator<Item = &'a Process>,
    ) {
        if !alloc.of_servers {
            return;
        }
        let id = alloc.id;
        if !sent {
            self.says(format!("{id} is started, and no reply named it"));
        }
        if alloc.desired.is_terminal() {
            self.says(format!("{id} is started, and is to end"));
        }
        let previous = alloc.previous;
        let alive = others
            .map(|it| it.task.alloc)
            .any(|it| Some(it) == previous);
        if alive {
            self.says(format!("{id} is started, and {previous:?} is alive"));
        }
        let starts = self.starts.entry(id).or_default();
        *starts += 1;
        if *starts > 1 {
            self.says(format!("{id} is started again"));
        }
    }

    fn reported(&mut self, now: Instant, reports: &[Arc<AllocReport>]) {
        self.report_calls += 1;
        if reports.is_empty() || reports.len() > 1000 {
            self.says(format!("{} reports in a call", reports.len()));
        }
        let ids: BTreeSet<AllocId> = reports.iter().map(|it| it.id).collect();
        if ids.len() != reports.len() {
            self.says("two reports of one allocation in a call".to_owned());
        }
        for report in reports {
            self.reports += 1;
            let id = report.id;
            if report.status == ClientStatus::Running && !self.starts.contains_key(&id) {
                self.says(format!("{id} is reported as running, and never ran"));
            }
            let known = self.kept.remove(&id);
            if known.is_some_and(|(_, known)| known == *report) {
                self.says(format!("{id} is reported again at {now:?}: {report:?}"));
            }
        }
    }

    fn registers(&mut self, now: Instant, services: &[Arc<ServiceInstance>]) {
        self.service_call(now, services);
        for service in services {
            let known = self.services.remove(&service.id);
            if known.is_some_and(|(_, known)| known == *service) {
                self.says(format!("registered again at {now:?}: {service:?}"));
            }
        }
    }

    fn removes(&mut self, now: Instant, services: &[Arc<ServiceInstance>]) {
        self.service_call(now, services);
        for service in services {
            self.services.remove(&service.id);
        }
    }

    fn service_call(&mut self, now: Instant, services: &[Arc<ServiceInstance>]) {
        self.service_calls += 1;
        self.services_sent += services.len();
        if services.is_empty() {
            self.says(format!("no services in a call at {now:?}"));
        }
        let is_one = |it: &Call| matches!(it, Call::RegisterServices(_) | Call::RemoveServices(_));
        if self.open.values().any(is_one) {
            self.says(format!("two calls about services at {now:?}"));
        }
    }

    /// A task is asked to end, while servers have these services.
    pub(crate) fn asked_to_end<'a>(
        &mut self,
        task: &TaskKey,
        mut services: impl Iterator<Item = &'a Arc<ServiceInstance>>,
    ) {
        let of_it = |it: &&Arc<ServiceInstance>| {
            let of_task = it.task.as_ref().is_none_or(|of| *of == task.task);
            it.alloc == task.alloc && of_task
        };
        if let Some(left) = services.find(of_it) {
            self.says(format!("{task:?} is asked to end, and there is {left:?}"));
        }
    }

    /// Servers may have given up what they had.
    fn doubt(&mut self) {
        self.kept.clear();
        self.services.clear();
        self.doubt_asked(|_| true);
    }

    /// Nor does it say anything when a report that is under way is acknowledged.
    fn doubt_asked(&mut self, which: impl Fn(AllocId) -> bool) {
        for call in self.open.values_mut() {
            if let Call::ReportAllocs(reports) = call {
                reports.retain(|it| !which(it.id));
            }
            if let Call::RegisterServices(services) = call {
                services.retain(|it| !which(it.alloc));
            }
        }
    }
}
