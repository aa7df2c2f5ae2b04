//! The servers of a cluster, as a model: what they know of nodes and allocations, what they answer, and how they
//! decide what runs where.
//!
//! They are one consistent whole with an index that only rises. What a *single* server says may be older
//! ([`Flaws`]): of each allocation every state is kept with its index, so a server that is behind answers as all of
//! them did before. Calls arrive and answers go out by `link.rs`, where the faults are: lost calls and answers,
//! refusals, nodes that are cut off or forgotten.
//!
//! - `calls.rs`: what is answered to each call.
//! - `placing.rs`: jobs become allocations on nodes that are ready, and what is lost or fails is replaced.
//! - `snapshot.rs`: they go back to what they were, as servers that are restored from a snapshot.
//!
//! Time is what passed since the beginning of the world, which no reboot of a node sets back. One value of this type
//! serves all nodes of a [`crate::fleet::Fleet`]: it lies in the world of the node whose turn it is.

mod calls;
pub(crate) mod link;
mod placing;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::cluster::{
    AllocReport, Answer, CallError, CallErrorKind, ClientNode, PlacedAlloc, ServiceInstance,
};
use drover_core::ids::{AllocId, NodeId};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::drain::Eligibility;
use drover_core::model::remote::RemotePrevious;
use drover_core::op::Op;
use drover_core::time::Span;

use snapshot::Snapshot;

pub use placing::ClusterJob;

/// After the time of a heartbeat is over, a node has so much longer.
pub(crate) const GRACE: Span = Span::secs(10);

/// The names of the servers.
pub const NAMES: [&str; 3] = ["s1:4647", "s2:4647", "s3:4647"];

/// What a node is for the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStatus {
    /// It has to beat yet, or to report what became of its allocations.
    Initializing,
    /// It beats.
    Ready,
    /// It missed a beat.
    Down,
    /// It missed a beat, and allocations go on there that outlive that.
    Disconnected,
}

impl NodeStatus {
    /// Whether it missed no beat.
    fn beats(self) -> bool {
        match self {
            NodeStatus::Ready | NodeStatus::Initializing => true,
            NodeStatus::Down | NodeStatus::Disconnected => false,
        }
    }
}

/// A node, as servers know it.
#[derive(Clone, Debug)]
pub struct Known {
    /// As it registered last.
    pub node: Arc<ClientNode>,
    /// What it is for them.
    pub status: NodeStatus,
    /// Whether it missed a beat while allocations were to go on, and reported nothing since.
    owes_report: bool,
    /// Whether it gets new allocations.
    pub eligibility: Eligibility,
    /// When it counts as lost, if no heartbeat comes before.
    lost_at: Span,
    beats: u64,
}

/// What an allocation was, by the index since which it was that; nothing from when it was removed on.
type Versions = Vec<(u64, Option<Arc<PlacedAlloc>>)>;

/// An allocation, as servers know it.
#[derive(Clone, Debug)]
pub struct Alloc {
    /// Where it was placed.
    pub node: NodeId,
    versions: Versions,
    /// What it was that servers forgot when they went back.
    forgotten: Versions,
    reported: Option<Arc<AllocReport>>,
}

impl Alloc {
    /// As it is; none if it was removed.
    pub fn now(&self) -> Option<&Arc<PlacedAlloc>> {
        self.versions.last().and_then(|(_, it)| it.as_ref())
    }

    /// What was reported of it last.
    pub fn reported(&self) -> Option<&Arc<AllocReport>> {
        self.reported.as_ref()
    }

    /// Every state that servers ever had of it.
    pub fn states(&self) -> impl Iterator<Item = &Arc<PlacedAlloc>> {
        let all = self.versions.iter().chain(&self.forgotten);
        all.filter_map(|(_, it)| it.as_ref())
    }

    fn at(&self, index: u64) -> Option<&Arc<PlacedAlloc>> {
        self.changed_at(index).map(|(_, it)| it)
    }

    /// The same, with the index since which it is that.
    fn changed_at(&self, index: u64) -> Option<(u64, &Arc<PlacedAlloc>)> {
        let mut before = self.versions.iter().rev();
        let (since, it) = before.find(|(since, _)| *since <= index)?;
        Some((*since, it.as_ref()?))
    }
}

/// What servers know of the allocations of a node.
#[derive(Clone, Debug, Default)]
struct OfNode {
    /// Also those that were removed.
    ever: BTreeSet<AllocId>,
    waiting: Vec<Waiting>,
}

/// A call that waits for news.
#[derive(Clone, Debug)]
struct Waiting {
    whose: Caller,
    index: u64,
    until: Span,
    /// How many allocations the node had when it called.
    had: usize,
}

/// Who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) node: NodeId,
    /// In which life of its agent.
    pub(crate) life: u64,
    pub(crate) op: Op,
}

/// What is wrong with the answer of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// How many changes it is behind.
    pub behind: u64,
    /// Whether it says things twice, in another order.
    pub doubles: bool,
    /// How many of the servers it names.
    pub names: usize,
}

/// The answer to a call that waited.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) to: Caller,
    pub(crate) result: Result<Answer, CallError>,
}

/// The servers.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    nodes: BTreeMap<NodeId, Known>,
    allocs: BTreeMap<AllocId, Alloc>,
    of_node: BTreeMap<NodeId, OfNode>,
    services: BTreeMap<Arc<str>, Arc<ServiceInstance>>,
    jobs: BTreeMap<String, ClusterJob>,
    next_versions: BTreeMap<String, u64>,
    index: u64,
    /// The index of the last change to any allocation.
    allocs_index: u64,
    /// Whether the first answer to a call bears that index, as since Nomad 2.0.5; else always the one of the last
    /// change to an allocation that the node has.
    answers_by_all: bool,
    now: Span,
    answers: Vec<Answered>,
    /// When nodes count as lost.
    lost_at: BTreeSet<(Span, NodeId)>,
    /// When calls that wait are answered though there is nothing new.
    waits_until: BTreeSet<(Span, NodeId)>,
    /// Whether something happened that may lead to other allocations.
    evaluates: bool,
    /// Nodes of whose allocations something changed.
    changed: BTreeSet<NodeId>,
    /// How many identities they signed for nodes; up to which number they are over, and up to which they are signed with keys
    /// that servers do not have any more.
    identities: u64,
    over: u64,
    of_older_keys: u64,
    losses: u64,
    /// Whether a job has a disk that migrates.
    migrates: bool,
    /// What lies on the disks of nodes that can be reached: tasks of which allocations wrote it.
    disks: BTreeMap<AllocId, BTreeSet<AllocId>>,
    /// From where those that ended before they got their disks were to get them, as their nodes know.
    awaited: BTreeMap<AllocId, RemotePrevious>,
    snapshot: Option<Snapshot>,
    /// Whether nodes may be silent for long: nothing happens any more.
    is_calm: bool,
}

impl Servers {
    /// From now on nodes are heard seldom, as in a large cluster, or often.
    pub(crate) fn set_calm(&mut self, is_calm: bool) {
        self.is_calm = is_calm;
    }

    /// Servers that know nothing yet; of which release, chance says.
    pub fn new(seed: u64) -> Servers {
        Servers {
            index: 1,
            allocs_index: 1,
            answers_by_all: seed.is_multiple_of(2),
            ..Servers::default()
        }
    }

    /// A node, if they know it.
    pub fn node(&self, id: NodeId) -> Option<&Known> {
        self.nodes.get(&id)
    }

    /// Every allocation that ever was, also those that were removed.
    pub fn allocs(&self) -> impl Iterator<Item = (AllocId, &Alloc)> {
        self.allocs.iter().map(|(id, alloc)| (*id, alloc))
    }

    /// One of them.
    pub fn alloc(&self, id: AllocId) -> Option<&Alloc> {
        self.allocs.get(&id)
    }

    /// Their index.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// A node has these disks now. Nobody asks for them where no job wants that.
    pub(crate) fn node_has_disks(&mut self, disks: &BTreeMap<AllocId, BTreeSet<AllocId>>) {
        for (id, disk) in disks.iter().filter(|_| self.migrates) {
            if self.disks.get(id) != Some(disk) {
                self.disks.insert(*id, disk.clone());
            }
        }
    }

    /// Whether a job ever had a disk that migrates.
    pub(crate) fn moves_disks(&self) -> bool {
        self.migrates
    }

    /// On a node these ended before they got their disks, and were to get them from those.
    pub(crate) fn node_awaited(&mut self, node: NodeId, awaited: &[(AllocId, RemotePrevious)]) {
        let of_node = |id: &AllocId| self.allocs.get(id).is_some_and(|it| it.node == node);
        self.awaited.retain(|id, _| !of_node(id));
        self.awaited.extend(awaited.iter().cloned());
    }

    /// What an allocation left, if its node can be asked for it.
    pub(crate) fn disk_of(&self, id: AllocId) -> Option<&BTreeSet<AllocId>> {
        self.disks.get(&id).filter(|_| self.can_be_asked(id))
    }

    /// From where an allocation was to get its disk, if it did not and its node can be asked for it.
    pub(crate) fn disk_lies_with(&self, id: AllocId) -> Option<&RemotePrevious> {
        self.awaited.get(&id).filter(|_| self.can_be_asked(id))
    }

    fn can_be_asked(&self, id: AllocId) -> bool {
        let node = self.allocs.get(&id).map(|it| it.node);
        let node = node.and_then(|node| self.nodes.get(&node));
        node.is_some_and(|node| node.status.beats())
    }

    /// What an allocation had on its disk when that was seen last.
    pub(crate) fn disk_left_by(&self, id: AllocId) -> Option<&BTreeSet<AllocId>> {
        self.disks.get(&id)
    }

    /// Those that a node has now.
    pub fn allocs_of(&self, node: NodeId) -> impl Iterator<Item = &Arc<PlacedAlloc>> {
        let ids = self.of_node.get(&node).into_iter();
        let ids = ids.flat_map(|it| &it.ever);
        ids.filter_map(|id| self.allocs.get(id)?.now())
    }

    /// The services that are registered.
    pub fn services(&self) -> impl Iterator<Item = &Arc<ServiceInstance>> {
        self.services.values()
    }

    /// How often a node counted as lost.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Servers change an allocation.
    pub fn change(&mut self, id: AllocId, change: impl FnOnce(&mut PlacedAlloc)) {
        self.index += 1;
        // By one index there are no two states of it that a node could take for each other.
        while self.allocs.get(&id).is_some_and(|it| it.was_at(self.index)) {
            self.index += 1;
        }
        let index = self.index;
        self.edit(id, |placed| {
            change(placed);
            placed.modify_index = index;
        });
    }

    /// What nodes report is no change of theirs.
    fn report(&mut self, id: AllocId, change: impl FnOnce(&mut PlacedAlloc)) {
        self.index += 1;
        self.edit(id, change);
    }

    fn edit(&mut self, id: AllocId, change: impl FnOnce(&mut PlacedAlloc)) {
        let index = self.index;
        if let Some(alloc) = self.allocs.get_mut(&id)
            && let Some(now) = alloc.now()
        {
            let mut placed = PlacedAlloc::clone(now);
            change(&mut placed);
            alloc.versions.push((index, Some(Arc::new(placed))));
            let node = alloc.node;
            self.touch(node);
        }
    }

    /// Something of the allocations of a node changed.
    fn touch(&mut self, node: NodeId) {
        self.allocs_index = self.index;
        self.changed.insert(node);
    }

    /// Servers place an allocation on a node.
    pub fn place(&mut self, node: NodeId, mut placed: PlacedAlloc) {
        self.index += 1;
        placed.modify_index = self.index;
        let id = placed.id;
        let alloc = Alloc {
            node,
            versions: vec![(self.index, Some(Arc::new(placed)))],
            forgotten: Versions::new(),
            reported: None,
        };
        self.allocs.insert(id, alloc);
        self.of_node.entry(node).or_default().ever.insert(id);
        self.touch(node);
    }

    /// Servers stop an allocation.
    pub fn stop(&mut self, id: AllocId) {
        self.change(id, |placed| placed.desired = DesiredStatus::Stop);
    }

    /// Servers have an allocation no more.
    pub fn remove(&mut self, id: AllocId) {
        self.index += 1;
        let index = self.index;
        if let Some(alloc) = self.allocs.get_mut(&id) {
            alloc.versions.push((index, None));
            let node = alloc.node;
            self.touch(node);
        }
        self.services.retain(|_, it| it.alloc != id);
    }

    /// Allocations that ended are collected as garbage.
    pub fn collect(&mut self) {
        let over = |alloc: &Alloc| {
            let now = alloc.now();
            now.is_some_and(|it| it.desired.is_terminal() || self.is_done(it))
        };
        let ended = |alloc: &Alloc| alloc.now().is_some_and(|it| it.client_status.is_terminal());
        let all = self.allocs.iter();
        let over = all.filter(|(_, it)| ended(it) && over(it));
        let over: Vec<AllocId> = over.map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.remove(id));
    }

    /// Servers forget a node, and what they had of it too if `allocs`; else that is replaced.
    pub fn forget_node(&mut self, node: NodeId, allocs: bool) {
        if let Some(known) = self.nodes.remove(&node) {
            self.lost_at.remove(&(known.lost_at, node));
        }
        let ids: Vec<AllocId> = self.allocs_of(node).map(|it| it.id).collect();
        for id in ids {
            match allocs {
                true => self.remove(id),
                false => self.give_up(id),
            }
        }
        self.index += 1;
        self.touch(node);
        self.evaluates = true;
    }

    /// From now on a node gets new allocations, or does not.
    pub fn set_eligibility(&mut self, node: NodeId, eligibility: Eligibility) {
        if let Some(known) = self.nodes.get_mut(&node) {
            known.eligibility = eligibility;
            self.evaluates = true;
        }
    }

    /// When something happens here by itself.
    pub(crate) fn deadline(&self) -> Option<Span> {
        let first = |of: &BTreeSet<(Span, NodeId)>| of.first().map(|(at, _)| *at);
        [first(&self.lost_at), first(&self.waits_until)]
            .into_iter()
            .flatten()
            .min()
    }

    /// It is `now`: what was to happen until then happens, and what follows from all that changed.
    pub(crate) fn go_on(&mut self, now: Span) {
        self.now = self.now.max(now);
        while let Some((at, node)) = self.lost_at.first().copied().filter(|(at, _)| *at <= now) {
            self.lost_at.remove(&(at, node));
            self.lose(node);
        }
        if core::mem::take(&mut self.evaluates) {
            self.evaluate();
        }
        let changed = core::mem::take(&mut self.changed);
        let over = self.waits_until.range(..=(now, NodeId(u128::MAX)));
        let nodes: BTreeSet<NodeId> = over.map(|(_, node)| *node).chain(changed).collect();
        nodes.into_iter().for_each(|node| self.answer_waiting(node));
    }

    /// A node did not beat in time.
    fn lose(&mut self, node: NodeId) {
        let Some(was) = self.node(node).map(|it| it.status) else {
            return;
        };
        if !was.beats() {
            return;
        }
        self.losses += 1;
        self.evaluates = true;
        let is_ready = was == NodeStatus::Ready;
        let live = self.allocs_of(node);
        let live = live.filter(|it| !it.client_status.is_terminal());
        let (survive, end): (Vec<_>, Vec<_>) = live
            .cloned()
            .partition(|it| is_ready && survives_disconnect(it));
        self.index += 1;
        if let Some(known) = self.nodes.get_mut(&node) {
            known.owes_report = !survive.is_empty();
            known.status = match known.owes_report {
                true => NodeStatus::Disconnected,
                false => NodeStatus::Down,
            };
        }
        for placed in survive {
            self.change(placed.id, |it| it.client_status = ClientStatus::Unknown);
        }
        end.iter().for_each(|placed| self.give_up(placed.id));
    }

    /// What ran on a node that is lost counts as lost, and shall not run if it comes back.
    fn give_up(&mut self, id: AllocId) {
        self.change(id, |placed| {
            placed.desired = DesiredStatus::Stop;
            if !placed.client_status.is_terminal() {
                placed.client_status = ClientStatus::Lost;
            }
        });
        self.services.retain(|_, it| it.alloc != id);
    }

    fn answer_waiting(&mut self, node: NodeId) {
        let (now, last) = (self.now, self.index);
        let (count, index) = (self.allocs_of(node).count(), self.index_of(node, last));
        // That some are gone is news, also where those that are left did not change.
        let news = |one: &Waiting| if count < one.had { last } else { index };
        let waiting = &mut self.of_node.entry(node).or_default().waiting;
        let is_over = |one: &mut Waiting| one.index < news(one) || one.until <= now;
        let over: Vec<Waiting> = waiting.extract_if(.., is_over).collect();
        for one in over {
            self.waits_until.remove(&(one.until, node));
            let indexes = self.indexes(node, last, news(&one));
            let (to, result) = (one.whose, Ok(Answer::Indexes(indexes)));
            self.answers.push(Answered { to, result });
        }
    }

    /// Nobody waits for this answer any more.
    pub(crate) fn cancel(&mut self, node: NodeId, op: Op) {
        if let Some(of_node) = self.of_node.get_mut(&node) {
            let of_it = |one: &mut Waiting| one.whose.op == op;
            let cancelled: Vec<Waiting> = of_node.waiting.extract_if(.., of_it).collect();
            for one in cancelled {
                self.waits_until.remove(&(one.until, node));
            }
        }
    }

    /// The connections of a node are gone. Returns whose calls waited in them.
    pub(crate) fn hang_up(&mut self, node: NodeId) -> Vec<Caller> {
        let of_node = self.of_node.entry(node).or_default();
        let waited = core::mem::take(&mut of_node.waiting);
        for one in &waited {
            self.waits_until.remove(&(one.until, node));
        }
        waited.into_iter().map(|one| one.whose).collect()
    }

    /// Answers to calls that waited.
    pub(crate) fn take_answers(&mut self) -> Vec<Answered> {
        core::mem::take(&mut self.answers)
    }
}

/// Whether an allocation goes on where it is while its node is out of reach.
fn survives_disconnect(placed: &PlacedAlloc) -> bool {
    let group = placed.job.as_ref().ok();
    let group = group.and_then(|job| job.group(placed.group.as_str()));
    !placed.desired.is_terminal()
        && group.is_some_and(|group| group.max_client_disconnect.is_some())
}

fn error(kind: CallErrorKind) -> CallError {
    CallError {
        kind,
        message: format!("{kind:?}"),
    }
}
