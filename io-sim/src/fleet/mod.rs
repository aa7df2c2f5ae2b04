//! A fleet: up to thousands of nodes, each an agent in a world of its own, and the servers of their cluster.
//!
//! Nothing but the servers ties the nodes together, so each is a [`Sim`] with faults, clocks and properties of its own,
//! and the servers lie in the world of the node whose turn it is. Time since the beginning is the same for all; whoever
//! has something to do first has the next turn, and of several the one with the lowest number.
//!
//! What must hold across nodes is in `check.rs`, and of disks in `disks.rs`. In `wire.rs` somebody else carries what nodes and servers say to each
//! other.

mod check;
mod disks;
mod wire;

use std::collections::BTreeSet;

use drover_core::config::Config;
use drover_core::ids::NodeId;
use drover_core::time::Span;

use crate::check::{Verdict, Violation};
use crate::faults::Faults;
use crate::machine::listening;
use crate::servers::{Answered, Servers};
use crate::sim::{Sim, client_of_cluster, node};
use crate::world::World;

/// After so many turns all nodes are checked, and in a large fleet after so many as there are nodes.
const CHECK_EVERY: usize = 50;
/// In fleets that are larger than this, the state of a node is checked after each so many of its steps only.
const LARGE: (usize, u64) = (64, 16);

/// How long it takes at most until node and servers agree when all trouble is over: what is under way may take an
/// hour, and then what follows from it.
const CONVERGENCE: Span = Span::secs(7200);

/// Nodes and their servers.
#[derive(Clone, Debug)]
pub struct Fleet {
    servers: Servers,
    nodes: Vec<Sim>,
    /// When each node has something to do next.
    due: Vec<Option<Span>>,
    queue: BTreeSet<(Span, usize)>,
    at: Span,
    turns: u64,
    /// What servers answer to calls that waited, where somebody else carries it to the nodes.
    answers: Option<Vec<Answered>>,
}

impl Fleet {
    /// So many nodes that start at the same time, and servers that know none of them.
    pub fn new(seed: u64, count: usize) -> Fleet {
        let mut fleet = Fleet {
            servers: Servers::new(seed),
            nodes: (0..count).map(|index| node_of(seed, index)).collect(),
            due: vec![None; count],
            queue: BTreeSet::new(),
            at: Span::ZERO,
            turns: 0,
            answers: None,
        };
        if count > LARGE.0 {
            fleet
                .nodes
                .iter_mut()
                .for_each(|node| node.check_every(LARGE.1));
        }
        (0..count).for_each(|index| fleet.enqueue(index));
        fleet
    }

    /// The servers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Sim] {
        &self.nodes
    }

    /// How many turns there were.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// How much time passed since the beginning.
    pub fn at(&self) -> Span {
        self.at
    }

    /// What happens at each node is kept, for people.
    pub fn keep_stories(&mut self) {
        self.nodes
            .iter_mut()
            .for_each(|node| node.world.scene.trace.keep());
    }

    /// What goes wrong at a node from now on.
    pub fn set_faults(&mut self, index: usize, faults: Faults) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.world.scene.faults = faults;
        }
    }

    /// Something happens at the servers.
    pub fn at_servers(&mut self, what: impl FnOnce(&mut Servers)) {
        self.servers.go_on(self.at);
        what(&mut self.servers);
        self.servers.go_on(self.at);
        self.hand_on();
    }

    /// Something happens at a node.
    pub fn at_node<T>(&mut self, index: usize, what: impl FnOnce(&mut Sim) -> T) -> Option<T> {
        let node = self.nodes.get_mut(index)?;
        node.catch_up(self.at);
        node.world.link.servers = Some(core::mem::take(&mut self.servers));
        let done = what(node);
        self.servers = node.world.link.servers.take().unwrap_or_default();
        self.servers.node_has_disks(&node.world.dirs.disks);
        if self.servers.moves_disks() {
            let awaited = disks::awaited(node);
            self.servers.node_awaited(node.world.link.node_id, &awaited);
        }
        self.hand_on();
        self.enqueue(index);
        Some(done)
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// What is violated meanwhile, and at which node.
    pub fn run(&mut self, span: Span) -> Verdict {
        let end = Span(self.at.0 + span.0);
        loop {
            let node = self.queue.first().copied();
            let servers = self.servers.deadline();
            let next = node.map(|(at, _)| at).into_iter().chain(servers).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.at = self.at.max(next);
            match node.filter(|(at, _)| *at == next) {
                Some((_, index)) => self.turn(index)?,
                None => {
                    self.servers.go_on(self.at);
                    self.hand_on();
                }
            }
        }
        self.at = end;
        self.check_nodes()
    }

    fn turn(&mut self, index: usize) -> Verdict {
        self.turns += 1;
        let stepped = self.at_node(index, |node| node.step(node.world.now().at));
        stepped
            .unwrap_or(Ok(crate::sim::Stepped::Idle))
            .map_err(|it| Violation {
                detail: format!("node {index}: {}", it.detail),
                ..it
            })?;
        let every = u64::try_from(CHECK_EVERY.max(self.nodes.len())).unwrap_or(u64::MAX);
        match self.turns.is_multiple_of(every) {
            true => self.check_nodes(),
            false => Ok(()),
        }
    }

    /// Hands on what servers answer to calls that waited.
    fn hand_on(&mut self) {
        let answered = self.servers.take_answers();
        if let Some(answers) = &mut self.answers {
            return answers.extend(answered);
        }
        for answered in answered {
            let Some(index) = index_of(answered.to.node) else {
                continue;
            };
            let Some(node) = self.nodes.get_mut(index) else {
                continue;
            };
            node.catch_up(self.at);
            let World { scene, link, .. } = &mut node.world;
            link.answered_late(scene, answered.to.life, answered.to.op, answered.result);
            self.enqueue(index);
        }
    }

    fn enqueue(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else {
            return;
        };
        let next = node.next_since_beginning();
        let Some(due) = self.due.get_mut(index) else {
            return;
        };
        if let Some(before) = core::mem::replace(due, next) {
            self.queue.remove(&(before, index));
        }
        if let Some(next) = next {
            self.queue.insert((next, index));
        }
    }

    /// The trouble is over everywhere: after a while all agree, and no node is lost any more.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn converge(&mut self) -> Verdict {
        self.end_trouble()?;
        self.run(Span::secs(120))?;
        let losses = self.servers.losses();
        self.run(CONVERGENCE)?;
        if self.is_disk_on_its_way() {
            // One that hangs on its way is given up late, and until then whoever fetches it is not removed either.
            let until = self
                .nodes
                .iter()
                .map(|node| node.world.scene.timeouts.disk)
                .max();
            self.run(until.unwrap_or_default())?;
        }
        self.has_converged(losses)
    }

    /// From now on nothing goes wrong at any node.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn end_trouble(&mut self) -> Verdict {
        for index in 0..self.nodes.len() {
            let ended = self.at_node(index, Sim::end_trouble);
            ended.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// All agree, what is wanted runs, and no node was lost since servers had lost so many.
    ///
    /// # Errors
    /// What does not hold.
    pub fn has_converged(&self, losses: u64) -> Verdict {
        self.reachable_nodes_are_not_lost(losses)?;
        self.all_agree()?;
        self.wanted_copies_run()?;
        self.disks_that_migrate_came_along()
    }
}

fn node_of(seed: u64, index: usize) -> Sim {
    let mut here = node();
    let number = u128::try_from(index).unwrap_or(0) + 1;
    here.id = NodeId(number);
    here.name = format!("n{number}");
    let config = client_of_cluster(listening(Config::new(0, here, "/alloc")));
    let number = u64::try_from(index).unwrap_or(0);
    let mut sim = Sim::with_config(seed.wrapping_mul(10_007).wrapping_add(number), config);
    sim.quiet();
    sim.world.link.servers = None;
    sim.world.link.in_fleet = true;
    sim
}

fn index_of(node: NodeId) -> Option<usize> {
    usize::try_from(node.0).ok()?.checked_sub(1)
}
