//! What a node owes the servers of its cluster, and what the servers are owed: calls that are few and in time, reports
//! that are true and are not made twice, and allocations that are as the servers last said.
//!
//! What servers said is taken from the answers as they are delivered, and what is true from the processes of the
//! world. After an answer that says that servers may have given something up ([`Cluster::doubt`]) it may be said again.

mod calls;
mod placed;
mod reports;
mod silence;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::{
    AllocIndexes, AllocReport, Answer, Call, CallError, CallErrorKind, CallKind, ClientNode,
    NodeReply, PlacedAlloc, ServiceInstance,
};
use drover_core::effect::ServerEffect;
use drover_core::ids::AllocId;
use drover_core::input::ServerInput;
use drover_core::model::alloc::ClientStatus;
use drover_core::op::Op;
use drover_core::operations::{Operation, Owner};
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record};
use drover_core::time::{Instant, Span};

use self::placed::Newest;
use self::silence::Silence;
use super::{Checker, Property, Verdict};
use crate::servers::{GRACE, Servers};
use crate::world::World;

/// So many calls within a second are no busy loop, whatever servers answer.
const MOST_CALLS: usize = 40;

/// So many answers that say nothing new are asked about at once; after more of them within a second there is a pause.
const MOST_STALE: usize = 3;

/// The shortest pause after a call that failed.
const SHORTEST_PAUSE: Span = Span::secs(1);

/// What is remembered of what node and servers said to each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// The calls that are under way.
    open: BTreeMap<Op, Call>,
    /// When the calls of the last second were made.
    recent: VecDeque<Span>,
    /// When answers of the last second came that said nothing new of allocations.
    stale: VecDeque<Span>,
    /// When calls failed last, by their kind; none that were answered since.
    failed: BTreeMap<CallKind, Span>,
    /// Before when no heartbeat is due.
    next_beat: Option<Instant>,
    /// Whether a heartbeat was acknowledged since the node is known.
    ready: bool,
    /// Until when the last heartbeat counts.
    counts_until: Option<Instant>,
    /// What servers acknowledged of allocations.
    kept: BTreeMap<AllocId, Arc<AllocReport>>,
    /// Those that were ever reported as over.
    over: BTreeSet<AllocId>,
    /// The services that servers acknowledged.
    services: BTreeMap<Arc<str>, Arc<ServiceInstance>>,
    /// Those that servers may have: acknowledged, and not known to be removed.
    announced: BTreeMap<Arc<str>, Arc<ServiceInstance>>,
    /// Allocations of which servers acknowledged that they are over; and those of which a call says so.
    ends_known: BTreeSet<AllocId>,
    ends_told: BTreeMap<Op, Vec<AllocId>>,
    /// The node as servers acknowledged it.
    registered: Option<Arc<ClientNode>>,
    /// The servers that were handed on.
    servers: Vec<Arc<str>>,
    /// Calls that had not left when servers were found to have given something up, and what; all of it if none.
    doubted: Vec<(Op, Option<AllocId>)>,
    /// The allocations that servers named last.
    named: BTreeSet<AllocId>,
    /// How often they did not name what is here and, as far as they know, lives: each time, one heartbeat may be early.
    unnamed: usize,
    /// How often the node was lost while there was trouble.
    pub(super) losses: u64,
    /// What servers said last of each allocation: their index, the version of its job, and whether it shall end.
    newest: BTreeMap<AllocId, Newest>,
    /// By which index they named each where they were asked that are not behind: it may be less than before.
    first: BTreeMap<AllocId, u64>,
    /// The versions of those that they said to be older than they had said before.
    older: BTreeMap<AllocId, Option<u64>>,
    /// Those of which they ever said that they shall end.
    told_to_end: BTreeSet<AllocId>,
    silence: Silence,
}

impl Cluster {
    pub(super) fn agent_died(&mut self) {
        self.open.clear();
        self.ends_told.clear();
        self.stale.clear();
        self.doubted.clear();
        self.servers.clear();
        self.counts_until = None;
        self.begin_again();
    }

    /// The node has to register anew.
    fn begin_again(&mut self) {
        self.failed.clear();
        (self.next_beat, self.registered, self.ready) = (None, None, false);
    }

    /// What was acknowledged and not saved may be said again.
    pub(super) fn agent_restored(&mut self, world: &World) {
        let records = world.disk.records();
        let is_saved = |id: &AllocId| {
            let saved = match records.get(&Key::Alloc(*id)) {
                Some(Record::Alloc(alloc)) => Some(alloc.modify_index),
                _ => None,
            };
            match records.get(&Key::Reported(*id)) {
                Some(Record::Reported(reported)) => saved == Some(reported.modify_index),
                _ => false,
            }
        };
        self.kept.retain(|id, _| is_saved(id));
        let is_acknowledged = |id: &Arc<str>, service: &ServiceInstance| {
            let announced = match records.get(&Key::Announced(service.alloc)) {
                Some(Record::Announced(announced)) => announced.services.get(id),
                _ => None,
            };
            announced.is_some_and(|it| it.acknowledged)
        };
        self.services.retain(|id, it| is_acknowledged(id, it));
        self.announced.retain(|id, it| is_acknowledged(id, it));
        self.silence.agent_restored(world);
        self.first.clear();
        self.newest.clear();
        for (key, record) in records {
            if let (Key::Placed(id), Record::Placed(placed)) = (key, record) {
                let alloc = match records.get(&Key::Alloc(*id)) {
                    Some(Record::Alloc(alloc)) => Some(alloc),
                    _ => None,
                };
                let newest = Newest {
                    index: placed.modify_index,
                    version: Some(placed.job.version),
                    ends: alloc.is_some_and(|it| it.desired.is_terminal()),
                    rolls: alloc.is_some_and(|it| it.deployment.is_some()),
                };
                self.says(*id, newest);
            }
        }
    }

    /// Servers may have given up what they had: of one allocation, or of all.
    fn doubt(&mut self, agent: &Agent, alloc: Option<AllocId>) {
        let is_meant = |id: AllocId| alloc.is_none_or(|it| it == id);
        self.kept.retain(|id, _| !is_meant(*id));
        self.services.retain(|_, it| !is_meant(it.alloc));
        self.announced.retain(|_, it| !is_meant(it.alloc));
        // Nor does it say anything when what is under way is acknowledged, or what waits to be saved first.
        self.open.values_mut().for_each(|call| forget(call, alloc));
        let view = agent.view();
        let waits = |(op, operation): &(Op, &Operation)| {
            operation.owner == Owner::Server && !self.open.contains_key(op)
        };
        let waiting = view.operations().iter().filter(waits);
        self.doubted.extend(waiting.map(|(op, _)| (op, alloc)));
    }

    /// Whether an allocation is one of servers that they did not name last.
    pub(super) fn is_dropped(&self, alloc: &AllocRecord) -> bool {
        alloc.of_servers && !self.named.contains(&alloc.id)
    }

    /// Whether servers went back to the version that an allocation has.
    pub(super) fn went_back_to(&self, alloc: &AllocRecord) -> bool {
        self.older.get(&alloc.id) == Some(&Some(alloc.job_version))
    }

    /// What servers said last of an allocation, for people.
    pub(super) fn sent(&self, id: AllocId) -> Option<String> {
        let newest = self.newest.get(&id)?;
        let desired = if newest.ends { "stop" } else { "run" };
        Some(format!("{desired} by index {}", newest.index))
    }

    /// A call leaves.
    fn leaves(&mut self, op: Op, mut call: Call) {
        let doubted = self.doubted.extract_if(.., |(it, _)| *it == op);
        if let Call::ReportAllocs(reports) = &call {
            let over = reports.iter().filter(|it| it.status.is_terminal());
            self.ends_told.insert(op, over.map(|it| it.id).collect());
        }
        doubted.for_each(|(_, alloc)| forget(&mut call, alloc));
        self.open.insert(op, call);
    }

    /// Calls whose answers are not awaited any more.
    fn prune(&mut self, agent: &Agent, now: Instant) {
        let operations = agent.view();
        let is_over = |op: &Op| operations.operations().get(*op).is_none();
        let over: Vec<Op> = self.open.keys().copied().filter(is_over).collect();
        for op in over {
            let kind = self.open.remove(&op).map(|it| it.kind());
            if kind == Some(CallKind::Heartbeat) {
                self.next_beat = Some(now + Span::secs(1));
            }
            self.silence.failed(kind);
        }
    }

    /// The agent is about to take this.
    pub(super) fn delivered(&mut self, world: &World, agent: &Agent, input: &ServerInput) {
        let now = world.scene.at;
        self.prune(agent, now);
        let ServerInput::Answered { op, result } = input else {
            return;
        };
        let Some(asked) = self.open.get(op) else {
            return;
        };
        let fits = |it: &Answer| it.answers() == asked.kind();
        if !result.as_ref().map_or(true, fits) {
            return;
        }
        if let Some(asked) = self.open.remove(op) {
            let over = self.ends_told.remove(op).filter(|_| result.is_ok());
            self.ends_known.extend(over.into_iter().flatten());
            let kind = asked.kind();
            if result.as_ref().is_ok_and(names_servers) {
                self.failed.remove(&kind);
                self.silence.answered(kind, world.scene.elapsed);
                if is_stale(&asked, result) {
                    self.stale.push_back(world.scene.elapsed);
                }
            } else {
                self.failed.insert(kind, world.scene.elapsed);
                self.silence.failed(Some(kind));
            }
            self.answered(agent, now, asked, result);
        }
    }

    fn answered(
        &mut self,
        agent: &Agent,
        now: Instant,
        asked: Call,
        result: &Result<Answer, CallError>,
    ) {
        match (asked, result) {
            (Call::Heartbeat { .. }, Ok(Answer::Heartbeat(reply))) if !reply.servers.is_empty() => {
                self.beaten(agent, now, reply);
            }
            (Call::Heartbeat { .. }, Err(why)) if is_unknown(why.kind) => {
                self.begin_again();
                self.doubt(agent, None);
            }
            (Call::Heartbeat { .. }, _) => self.next_beat = Some(now + Span::secs(1)),
            (Call::Register(node), Ok(Answer::Registered(reply))) if !reply.servers.is_empty() => {
                self.registered = Some(node);
                self.failed.remove(&CallKind::Heartbeat);
                // The first heartbeat follows at once.
                let sooner = now + reply.heartbeat_ttl;
                let next = self.next_beat.filter(|_| self.ready);
                self.next_beat = next.map(|at| at.min(sooner));
            }
            (Call::ReportAllocs(reports), Ok(_)) => {
                let kept = reports.into_iter().map(|it| (it.id, it));
                self.kept.extend(kept);
            }
            (Call::RegisterServices(services), Ok(_)) => {
                let kept = services.into_iter().map(|it| (it.id.clone(), it));
                let kept: BTreeMap<_, _> = kept.collect();
                self.announced.extend(kept.clone());
                self.services.extend(kept);
            }
            (Call::RemoveServices(services), Ok(_)) => {
                services
                    .iter()
                    .for_each(|it| drop(self.announced.remove(&it.id)));
            }
            // What servers say that are behind is not heeded.
            (Call::WatchAllocs { index, .. }, Ok(Answer::Indexes(round)))
                if round.index > index =>
            {
                self.first.clear();
                if index == 0 {
                    self.first.clone_from(&round.allocs);
                }
                self.is_named(agent, round);
            }
            (Call::PullAllocs { ids, .. }, Ok(Answer::Pulled(pulled))) => {
                let asked = pulled.allocs.iter().filter(|it| ids.contains(&it.id));
                asked.for_each(|placed| self.pulled(agent, placed));
            }
            _ => {}
        }
    }

    fn beaten(&mut self, agent: &Agent, now: Instant, reply: &NodeReply) {
        let late = self.counts_until.is_some_and(|at| now - at > GRACE);
        if late || reply.index > 0 {
            self.doubt(agent, None);
        }
        let next = Some(now + reply.heartbeat_ttl);
        (self.next_beat, self.counts_until, self.ready) = (next, next, true);
    }

    fn pulled(&mut self, agent: &Agent, placed: &PlacedAlloc) {
        let lost = [ClientStatus::Unknown, ClientStatus::Lost];
        if lost.contains(&placed.client_status) {
            self.doubt(agent, Some(placed.id));
        }
        let is = placed.modify_index;
        let known = self.newest.get(&placed.id).map_or(0, |it| it.index);
        if known < is || self.first.get(&placed.id) == Some(&is) {
            let newest = Newest::of(placed);
            if is < known {
                self.older.insert(placed.id, newest.version);
            }
            self.says(placed.id, newest);
        }
    }

    /// Servers say what an allocation is.
    fn says(&mut self, id: AllocId, newest: Newest) {
        if newest.ends {
            self.told_to_end.insert(id);
        }
        self.newest.insert(id, newest);
    }

    /// These are the allocations that servers name.
    fn is_named(&mut self, agent: &Agent, round: &AllocIndexes) {
        self.named = round.allocs.keys().copied().collect();
        let view = agent.view();
        let lives = |id| !view.server().is_some_and(|it| it.knows_end(id, None));
        let mut here = view.allocs().map(AllocRunner::record);
        self.unnamed += usize::from(here.any(|it| self.is_dropped(it) && lives(it.id)));
    }
}

/// That a call is acknowledged says nothing of an allocation, or of any.
fn forget(call: &mut Call, alloc: Option<AllocId>) {
    let is_meant = |id: AllocId| alloc.is_none_or(|it| it == id);
    match call {
        Call::ReportAllocs(reports) => reports.retain(|it| !is_meant(it.id)),
        Call::RegisterServices(services) => services.retain(|it| !is_meant(it.alloc)),
        Call::Register(_)
        | Call::Heartbeat { .. }
        | Call::EmitEvents(_)
        | Call::WatchAllocs { .. }
        | Call::PullAllocs { .. }
        | Call::RemoveServices(_) => {}
    }
}

/// Whether the servers know nothing newer than what was asked for.
fn is_stale(asked: &Call, result: &Result<Answer, CallError>) -> bool {
    match (asked, result) {
        (Call::WatchAllocs { index, .. }, Ok(Answer::Indexes(round))) => round.index <= *index,
        _ => false,
    }
}

/// Whether an answer that names servers names any: one without is no answer.
fn names_servers(answer: &Answer) -> bool {
    match answer {
        Answer::Registered(reply) | Answer::Heartbeat(reply) => !reply.servers.is_empty(),
        Answer::EventsKept
        | Answer::Indexes(_)
        | Answer::Pulled(_)
        | Answer::ReportsKept
        | Answer::ServicesRegistered
        | Answer::ServicesRemoved => true,
    }
}

fn is_unknown(kind: CallErrorKind) -> bool {
    matches!(
        kind,
        CallErrorKind::UnknownNode | CallErrorKind::PermissionDenied
    )
}

impl Checker {
    /// The trouble is over: from now on the node is not lost.
    pub(crate) fn trouble_ended(&mut self, world: &World) {
        self.cluster.losses = world.link.servers.as_ref().map_or(0, Servers::losses);
    }

    /// After each step: which calls are not awaited any more.
    pub(crate) fn after_step(&mut self, world: &World, agent: &Agent) {
        self.cluster.prune(agent, world.scene.at);
    }

    pub(super) fn server_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        effect: &ServerEffect,
    ) -> Verdict {
        self.cluster.prune(agent, world.scene.at);
        match effect {
            ServerEffect::Servers(servers) => self.new_servers_are_handed_on(servers),
            ServerEffect::Cancel { op } => {
                self.cluster.open.remove(op);
                Ok(())
            }
            ServerEffect::Call { op, call, .. } => {
                self.calls_to_servers_are_few(world, call)?;
                self.failed_call_is_repeated_after_a_pause(world, call)?;
                self.calls_of_one_kind_follow_each_other(call)?;
                match call {
                    Call::Heartbeat { .. } => self.heartbeat_waits_for_its_time(world)?,
                    Call::Register(node) => {
                        self.registered_node_is_known(agent)?;
                        self.unchanged_node_is_not_registered_again(node)?;
                    }
                    Call::ReportAllocs(reports) => {
                        for report in reports {
                            self.report_to_servers_is_true(world, agent, report)?;
                            self.failed_alloc_is_reported_with_health(report)?;
                            self.unchanged_report_is_not_sent_again(report)?;
                        }
                    }
                    Call::RegisterServices(services) => {
                        for service in services {
                            self.unchanged_service_is_not_registered_again(service)?;
                        }
                    }
                    Call::RemoveServices(services) => {
                        for service in services {
                            self.cluster.services.remove(&service.id);
                        }
                    }
                    Call::EmitEvents(_) | Call::WatchAllocs { .. } | Call::PullAllocs { .. } => {}
                }
                self.cluster.leaves(*op, call.clone());
                Ok(())
            }
        }
    }

    /// Servers would place nothing on a node whose drivers are missing, or take what runs there for lost.
    fn registered_node_is_known(&mut self, agent: &Agent) -> Verdict {
        let drivers = agent.view().machine().drivers();
        let awaited = drivers.awaits_first_report();
        self.holds(Property::RegisteredNodeIsKnown, !awaited, || {
            let awaited = drivers.awaited().collect::<Vec<_>>();
            format!("nothing is known yet of {awaited:?}")
        })
    }

    fn new_servers_are_handed_on(&mut self, servers: &[Arc<str>]) -> Verdict {
        let news = !servers.is_empty() && self.cluster.servers != servers;
        self.cluster.servers = servers.to_vec();
        self.holds(Property::NewServersAreHandedOn, news, || {
            format!("handed on again, or none: {servers:?}")
        })
    }

    fn calls_to_servers_are_few(&mut self, world: &World, call: &Call) -> Verdict {
        let now = world.scene.elapsed;
        let recent = &mut self.cluster.recent;
        recent.push_back(now);
        recent.retain(|at| now.0 - at.0 <= Span::secs(1).0);
        let count = recent.len();
        self.holds(Property::CallsToServersAreFew, count <= MOST_CALLS, || {
            format!("expected at most {MOST_CALLS} calls within a second, found {count}")
        })?;
        if call.kind() != CallKind::WatchAllocs {
            return Ok(());
        }
        let stale = &mut self.cluster.stale;
        stale.retain(|at| now.0 - at.0 < Span::secs(1).0);
        let count = stale.len();
        self.holds(Property::CallsToServersAreFew, count <= MOST_STALE, || {
            format!("asked again after {count} answers within a second that said nothing new")
        })
    }

    fn failed_call_is_repeated_after_a_pause(&mut self, world: &World, call: &Call) -> Verdict {
        let (kind, now) = (call.kind(), world.scene.elapsed);
        let failed = self.cluster.failed.remove(&kind);
        let paused = failed.is_none_or(|at| now.0 - at.0 >= SHORTEST_PAUSE.0);
        self.holds(Property::FailedCallIsRepeatedAfterAPause, paused, || {
            format!("{} at {now:?}, failed at {failed:?}", kind.as_str())
        })
    }

    fn calls_of_one_kind_follow_each_other(&mut self, call: &Call) -> Verdict {
        let kind = call.kind();
        let open = self.cluster.open.values().any(|it| it.kind() == kind);
        self.holds(Property::CallsOfOneKindFollowEachOther, !open, || {
            format!("another {} is under way", kind.as_str())
        })
    }

    fn heartbeat_waits_for_its_time(&mut self, world: &World) -> Verdict {
        let next = self.cluster.next_beat;
        let is_early = next.is_some_and(|next| world.scene.at < next);
        let is_wanted = !is_early || self.cluster.unnamed > 0;
        self.cluster.unnamed -= usize::from(is_early && is_wanted);
        self.holds(Property::HeartbeatWaitsForItsTime, is_wanted, || {
            format!("sent at {:?}, due at {next:?}", world.scene.at)
        })
    }

    fn unchanged_node_is_not_registered_again(&mut self, node: &Arc<ClientNode>) -> Verdict {
        let known = self.cluster.registered.take();
        let is_new = known.as_ref() != Some(node);
        self.holds(Property::UnchangedNodeIsNotRegisteredAgain, is_new, || {
            format!("{node:?}")
        })
    }

    fn unchanged_report_is_not_sent_again(&mut self, report: &Arc<AllocReport>) -> Verdict {
        let known = self.cluster.kept.remove(&report.id);
        let is_new = known.as_ref() != Some(report);
        self.holds(Property::UnchangedReportIsNotSentAgain, is_new, || {
            format!("{report:?}")
        })
    }

    fn unchanged_service_is_not_registered_again(
        &mut self,
        service: &Arc<ServiceInstance>,
    ) -> Verdict {
        let known = self.cluster.services.remove(&service.id);
        let is_new = known.as_ref() != Some(service);
        self.holds(
            Property::UnchangedServiceIsNotRegisteredAgain,
            is_new,
            || format!("{service:?}"),
        )
    }
}
