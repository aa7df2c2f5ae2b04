//! What a node owes the servers of its cluster, and what the servers are owed: calls that are few and in time, reports
//! that are true and are not made twice, and allocations that are as the servers last said.
//!
//! What servers said is taken from the answers as they are delivered, and what is true from the processes of the
//! world. After an answer that says that servers may have given something up ([`Cluster::doubt`]) it may be said again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::{
    AllocReport, Answer, Call, CallError, CallErrorKind, CallKind, ClientNode, NodeReply,
    PlacedAlloc, ServiceInstance,
};
use drover_core::effect::ServerEffect;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::input::ServerInput;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::task::{Hook, Stage};
use drover_core::op::Op;
use drover_core::operations::{Operation, Owner};
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record};
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict};
use crate::process::Process;
use crate::servers::{GRACE, Servers};
use crate::world::World;

/// So many calls within a second are no busy loop, whatever servers answer.
const MOST_CALLS: usize = 40;

/// The shortest pause after a call that failed.
const SHORTEST_PAUSE: Span = Span::secs(1);

/// What is remembered of what node and servers said to each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// The calls that are under way.
    open: BTreeMap<Op, Call>,
    /// When the calls of the last second were made.
    recent: VecDeque<Span>,
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
}

#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    index: u64,
    version: Option<u64>,
    ends: bool,
    /// Whether it counts for a roll-out.
    rolls: bool,
}

impl Newest {
    fn of(placed: &PlacedAlloc) -> Newest {
        Newest {
            index: placed.modify_index,
            version: placed.job.as_ref().ok().map(|it| it.version),
            ends: placed.desired.is_terminal(),
            rolls: placed.deployment.is_some(),
        }
    }
}

impl Cluster {
    pub(super) fn agent_died(&mut self) {
        self.open.clear();
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
                self.newest.insert(*id, newest);
            }
        }
    }

    /// Servers may have given up what they had: of one allocation, or of all.
    fn doubt(&mut self, agent: &Agent, alloc: Option<AllocId>) {
        let is_meant = |id: AllocId| alloc.is_none_or(|it| it == id);
        self.kept.retain(|id, _| !is_meant(*id));
        self.services.retain(|_, it| !is_meant(it.alloc));
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

    /// What servers said last of an allocation, for people.
    pub(super) fn sent(&self, id: AllocId) -> Option<String> {
        let newest = self.newest.get(&id)?;
        let desired = if newest.ends { "stop" } else { "run" };
        Some(format!("{desired} by index {}", newest.index))
    }

    /// A call leaves.
    fn leaves(&mut self, op: Op, mut call: Call) {
        let doubted = self.doubted.extract_if(.., |(it, _)| *it == op);
        doubted.for_each(|(_, alloc)| forget(&mut call, alloc));
        self.open.insert(op, call);
    }

    /// Calls whose answers are not awaited any more.
    fn prune(&mut self, agent: &Agent, now: Instant) {
        let operations = agent.view();
        let is_over = |op: &Op| operations.operations().get(*op).is_none();
        let over: Vec<Op> = self.open.keys().copied().filter(is_over).collect();
        for op in over {
            if let Some(Call::Heartbeat { .. }) = self.open.remove(&op) {
                self.next_beat = Some(now + Span::secs(1));
            }
        }
    }

    /// The agent is about to take this.
    pub(super) fn delivered(&mut self, world: &World, agent: &Agent, input: &ServerInput) {
        let now = world.at;
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
            match result.as_ref().is_ok_and(names_servers) {
                true => self.failed.remove(&asked.kind()),
                false => self.failed.insert(asked.kind(), world.elapsed),
            };
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
                self.services.extend(kept);
            }
            // What servers say that are behind is not heeded.
            (Call::WatchAllocs { index, .. }, Ok(Answer::Indexes(round)))
                if round.index > index =>
            {
                self.named = round.allocs.keys().copied().collect();
                let view = agent.view();
                let lives = |id| !view.server().is_some_and(|it| it.knows_end(id, None));
                let mut here = view.allocs().map(AllocRunner::record);
                self.unnamed += usize::from(here.any(|it| self.is_dropped(it) && lives(it.id)));
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
        let newest = self.newest.entry(placed.id).or_default();
        if newest.index < placed.modify_index {
            *newest = Newest::of(placed);
        }
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
        self.cluster.losses = world.servers.as_ref().map_or(0, Servers::losses);
    }

    /// After each step: which calls are not awaited any more.
    pub(crate) fn after_step(&mut self, world: &World, agent: &Agent) {
        self.cluster.prune(agent, world.at);
    }

    pub(super) fn server_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        effect: &ServerEffect,
    ) -> Verdict {
        self.cluster.prune(agent, world.at);
        match effect {
            ServerEffect::Servers(servers) => self.new_servers_are_handed_on(servers),
            ServerEffect::Cancel { op } => {
                self.cluster.open.remove(op);
                Ok(())
            }
            ServerEffect::Call { op, call, .. } => {
                self.calls_to_servers_are_few(world)?;
                self.failed_call_is_repeated_after_a_pause(world, call)?;
                self.calls_of_one_kind_follow_each_other(call)?;
                match call {
                    Call::Heartbeat { .. } => self.heartbeat_waits_for_its_time(world)?,
                    Call::Register(node) => self.unchanged_node_is_not_registered_again(node)?,
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

    fn new_servers_are_handed_on(&mut self, servers: &[Arc<str>]) -> Verdict {
        let news = !servers.is_empty() && self.cluster.servers != servers;
        self.cluster.servers = servers.to_vec();
        self.holds(Property::NewServersAreHandedOn, news, || {
            format!("handed on again, or none: {servers:?}")
        })
    }

    fn calls_to_servers_are_few(&mut self, world: &World) -> Verdict {
        let now = world.elapsed;
        let recent = &mut self.cluster.recent;
        recent.push_back(now);
        while recent
            .front()
            .is_some_and(|at| now.0 - at.0 > Span::secs(1).0)
        {
            recent.pop_front();
        }
        let count = recent.len();
        self.holds(Property::CallsToServersAreFew, count <= MOST_CALLS, || {
            format!("expected at most {MOST_CALLS} calls within a second, found {count}")
        })
    }

    fn failed_call_is_repeated_after_a_pause(&mut self, world: &World, call: &Call) -> Verdict {
        let (kind, now) = (call.kind(), world.elapsed);
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
        let is_early = next.is_some_and(|next| world.at < next);
        let is_wanted = !is_early || self.cluster.unnamed > 0;
        self.cluster.unnamed -= usize::from(is_early && is_wanted);
        self.holds(Property::HeartbeatWaitsForItsTime, is_wanted, || {
            format!("sent at {:?}, due at {next:?}", world.at)
        })
    }

    fn unchanged_node_is_not_registered_again(&mut self, node: &Arc<ClientNode>) -> Verdict {
        let known = self.cluster.registered.take();
        let is_new = known.as_ref() != Some(node);
        self.holds(Property::UnchangedNodeIsNotRegisteredAgain, is_new, || {
            format!("{node:?}")
        })
    }

    fn report_to_servers_is_true(
        &mut self,
        world: &World,
        agent: &Agent,
        report: &AllocReport,
    ) -> Verdict {
        let id = report.id;
        let mut all = world.processes().filter(|(_, it)| it.key.alloc == id);
        // What nobody can find, and what does not end by any means, is said to be over.
        let is_known = |launch: &LaunchId, it: &Process| {
            !it.unknowable && !world.unread.contains(&it.key) && !self.ending.is_destroyed(*launch)
        };
        let alive = all.clone().filter(|(_, it)| it.alive);
        let alive = alive.filter(|(launch, it)| is_known(launch, it));
        let mut alive = alive.map(|(_, it)| it.key.clone());
        let tasks = agent.view().alloc(id).map(AllocRunner::tasks);
        // What ran for too long is said to be over when its tasks are asked to end.
        let group = agent.view().alloc(id);
        let group = group.and_then(|it| it.job().group(it.record().group.as_str()));
        let limited = group.is_some_and(|it| it.max_run_duration.is_some());
        // Poststop tasks come after.
        let is_main = |key: &TaskKey| {
            let mut tasks = tasks.into_iter().flatten();
            let task = tasks.find(|it| it.spec().key == *key);
            task.is_none_or(|it| it.spec().stage() != Stage::Poststop)
        };
        let is_true = match report.status {
            ClientStatus::Running => all.any(|(_, it)| it.claims > 0),
            ClientStatus::Complete => limited || !alive.any(|key| is_main(&key)),
            // One of its tasks failed: the others are about to end.
            ClientStatus::Failed => alive.count() < tasks.map_or(usize::MAX, <[_]>::len),
            ClientStatus::Pending => true,
            ClientStatus::Lost | ClientStatus::Unknown => false,
        };
        let was_over = self.cluster.over.contains(&id);
        let is_over = report.status.is_terminal();
        if is_over {
            self.cluster.over.insert(id);
        }
        let holds = is_true && (is_over || !was_over);
        self.holds(Property::ReportToServersIsTrue, holds, || {
            let name = world.names.alloc(id);
            let before = if was_over {
                ", and was over before"
            } else {
                ""
            };
            format!("{name} is reported as {}{before}", report.status.as_str())
        })
    }

    /// What failed of a roll-out, as servers placed it, is reported as healthy or not.
    fn failed_alloc_is_reported_with_health(&mut self, report: &AllocReport) -> Verdict {
        let placed = self.cluster.newest.get(&report.id);
        let rolls = placed.is_some_and(|it| it.rolls);
        // What could not be run at all has no tasks, and the reason as its description.
        let ran = !report.tasks.is_empty();
        if !rolls || !ran || report.status != ClientStatus::Failed {
            return Ok(());
        }
        let has_one = report.health.is_some();
        self.holds(Property::FailedAllocIsReportedWithHealth, has_one, || {
            format!("{report:?}")
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

    /// What servers placed starts here if they placed it here, and did not say since that it shall end.
    pub(super) fn placed_alloc_starts_where_it_was_placed(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let record = alloc.record();
        let Some(servers) = world.servers.as_ref().filter(|_| record.of_servers) else {
            return Ok(());
        };
        let task = alloc.task(&key.task).map(|task| task.spec().task());
        let lifecycle = task.and_then(|task| task.lifecycle.as_ref());
        let is_last = lifecycle.is_some_and(|it| it.hook == Hook::Poststop);
        let here = servers.alloc(record.id);
        let here = here.is_some_and(|it| it.node == world.node_id);
        let ends = self.cluster.newest.get(&record.id);
        let ends = ends.is_some_and(|it| it.ends) && !is_last;
        let holds = here && !ends;
        self.holds(Property::PlacedAllocStartsWhereItWasPlaced, holds, || {
            let name = world.names.task(key);
            match here {
                true => format!("{name} starts, and servers said that it shall end"),
                false => format!("{name} starts, and servers did not place it on this node"),
            }
        })
    }

    /// Whether an allocation may end though servers did not say so: servers are silent, or the agent was told to end all.
    fn may_end_unasked(&self, alloc: &AllocRunner) -> bool {
        let group = alloc.job().group(alloc.record().group.as_str());
        let ends_in_silence = group
            .is_some_and(|it| it.stop_after_client_disconnect.is_some() || it.disconnect.is_some());
        ends_in_silence || self.ends_tasks
    }

    /// What servers said last of an allocation holds, and nothing that they said before.
    pub(super) fn placed_allocs_are_as_servers_said(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        if self.leaving || self.cluster.newest.is_empty() {
            return Ok(());
        }
        let view = agent.view();
        let newest: Vec<(AllocId, Newest)> = (self.cluster.newest.iter())
            .map(|(id, it)| (*id, *it))
            .collect();
        for (id, newest) in newest {
            let Some(alloc) = view.alloc(id).filter(|it| it.record().of_servers) else {
                continue;
            };
            let record = alloc.record();
            let has_version = newest.version.is_none_or(|it| it == record.job_version);
            let is_right = record.status.is_terminal()
                || match (newest.ends, record.desired.is_terminal()) {
                    (true, ends) => ends,
                    // They may have forgotten it.
                    (false, true) => {
                        self.may_end_unasked(alloc) || !self.cluster.named.contains(&id)
                    }
                    (false, false) => has_version,
                };
            self.holds(Property::PlacedAllocIsAsServersSaid, is_right, || {
                let (name, has) = (world.names.alloc(id), record.job_version);
                let desired = record.desired.as_str();
                format!("{name} has version {has} and shall {desired}; servers said {newest:?}")
            })?;
        }
        Ok(())
    }
}
