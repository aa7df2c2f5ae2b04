//! Every order there is, in small worlds: breadth first, so that the first violation that is found
//! is one of the shortest there are.
//!
//! From each state the search takes every turn that is possible, and for each turn every trouble
//! that could have come in it, as far as the world's faults and their budget allow. States that are
//! one ([`same`]) are gone on from once. That alone makes the inputs of independent tasks cheap: both
//! orders of two that do not meet lead to one state, and n of them to 2^n states instead of n! runs.
//! Besides, what the world does to the disk and to directories, which the agent cannot see before
//! it is told, goes first whenever it can: no other turn looks at it, so that no order is lost.
//!
//! Sleep sets are not used: with states compared as [`same`] does, both orders of two inputs that
//! do not meet end in one state anyway. The worlds are in `sim-tests/src/small.rs`, and
//! `sim-tests/states.txt` says how many states each has.

mod same;

use std::collections::{BTreeSet, VecDeque};

use drover_core::ids::LaunchId;
use drover_core::store::Record;
use drover_core::time::Span;

use crate::check::{Verdict, Violation};
use crate::choice::Choice;
use crate::process::Process;
use crate::sim::{Sim, Turn};
use same::Same;

/// Where the search ends.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// No more states than this are gone on from.
    pub states: usize,
    /// Runs are no longer than this.
    pub depth: u32,
    /// Whether the world does at once what it is asked for: then only the orders in which the agent
    /// is told of it are tried, and not those in which it is done.
    pub prompt: bool,
    /// A state in which nothing happens for so long is at rest.
    pub horizon: Span,
}

/// What was found.
#[derive(Debug)]
pub struct Explored {
    /// How many different states there were.
    pub states: usize,
    /// How many turns were taken.
    pub turns: u64,
    /// The length of the longest shortest way to a state.
    pub depth: u32,
    /// Whether that was all; otherwise the bounds ended it.
    pub complete: bool,
    /// The shortest way to something that does not hold, and what.
    pub failure: Option<(Vec<Step>, Violation)>,
}

/// One turn, and the trouble in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whose turn it was; nobody's if time passed.
    pub turn: Option<Turn>,
    /// What chance decided in it, besides nothing.
    pub chosen: Vec<Choice>,
}

/// One state of the frontier, and the way to it.
struct Node {
    sim: Sim,
    /// Its number in the list of ways.
    way: usize,
    depth: u32,
}

/// Explores every order from `sim` on. `rest` looks at each state in which nothing is left to do.
pub fn explore(sim: &Sim, bounds: Bounds, rest: impl Fn(&mut Sim) -> Verdict) -> Explored {
    let mut start = sim.clone();
    start.quiet();
    let mut explorer = Explorer {
        seen: BTreeSet::from([start.same()]),
        ways: vec![(0, None)],
        frontier: VecDeque::from([Node {
            sim: start,
            way: 0,
            depth: 0,
        }]),
        turns: 0,
        bounds,
    };
    let mut explored = Explored {
        states: 0,
        turns: 0,
        depth: 0,
        complete: true,
        failure: None,
    };
    while let Some(node) = explorer.frontier.pop_front() {
        explored.depth = node.depth;
        if explorer.seen.len() >= bounds.states || node.depth >= bounds.depth {
            explored.complete = false;
            continue;
        }
        if let Err((step, violation)) = explorer.expand(&node, &rest) {
            explored.failure = Some((explorer.way_to(node.way, step), violation));
            break;
        }
    }
    explored.states = explorer.seen.len();
    explored.turns = explorer.turns;
    explored
}

/// Takes these steps again.
///
/// # Errors
/// What is violated on the way.
pub fn follow(sim: &mut Sim, steps: &[Step]) -> Verdict {
    for step in steps {
        sim.go(step)?;
    }
    Ok(())
}

struct Explorer {
    seen: BTreeSet<u64>,
    /// For each state, the one before it and the step between.
    ways: Vec<(usize, Option<Step>)>,
    frontier: VecDeque<Node>,
    turns: u64,
    bounds: Bounds,
}

type Found = (Option<Step>, Violation);

impl Explorer {
    fn expand(&mut self, node: &Node, rest: &impl Fn(&mut Sim) -> Verdict) -> Result<(), Found> {
        let mut sim = node.sim.clone();
        let mut turns = sim.turns();
        let prompt = self.bounds.prompt;
        if let Some(first) = turns.iter().find(|turn| sim.goes_first(**turn, prompt)) {
            turns = vec![*first];
        }
        for turn in turns {
            self.take(node, Some(turn), Vec::new())?;
        }
        if sim.turns().is_empty() {
            match sim.pass_time(self.bounds.horizon) {
                true => self.take(node, None, Vec::new())?,
                false => rest(&mut sim).map_err(|violation| (None, violation))?,
            }
        }
        Ok(())
    }

    /// Takes one turn with this trouble, and again with each further trouble that could come after
    /// the last of it.
    fn take(&mut self, node: &Node, turn: Option<Turn>, chosen: Vec<Choice>) -> Result<(), Found> {
        if self.seen.len() >= self.bounds.states {
            return Ok(());
        }
        let mut sim = node.sim.clone();
        let step = Step { turn, chosen };
        self.turns += 1;
        let went = sim.go(&step);
        if let Err(violation) = went {
            return Err((Some(step), violation));
        }
        let known = step.chosen.last();
        let consulted = sim.world.scene.choices.consulted();
        let after = known.and_then(|last| consulted.iter().position(|choice| choice.is_at(last)));
        let further: Vec<Choice> = consulted
            .iter()
            .skip(after.map_or(0, |at| at + 1))
            .cloned()
            .collect();
        if self.seen.insert(sim.same()) {
            self.ways.push((node.way, Some(step.clone())));
            self.frontier.push_back(Node {
                sim,
                way: self.ways.len() - 1,
                depth: node.depth + 1,
            });
        }
        for mut choice in further {
            choice.value = 1;
            let mut chosen = step.chosen.clone();
            chosen.push(choice);
            self.take(node, turn, chosen)?;
        }
        Ok(())
    }

    fn way_to(&self, way: usize, last: Option<Step>) -> Vec<Step> {
        let mut steps: Vec<Step> = last.into_iter().collect();
        let mut at = way;
        while let Some((before, Some(step))) = self.ways.get(at) {
            steps.push(step.clone());
            at = *before;
        }
        steps.reverse();
        steps
    }
}

impl Sim {
    /// Takes one step of an exhaustive search.
    fn go(&mut self, step: &Step) -> Verdict {
        self.world.scene.choices.watch(&step.chosen);
        match step.turn {
            Some(turn) => self.take(turn),
            None => {
                self.pass_time(Span(i64::MAX));
                Ok(())
            }
        }
    }

    /// What two runs share if and only if the same can follow from both.
    fn same(&self) -> u64 {
        let world = &self.world;
        Same::at(world.now(), &world.scene.names)
            .with(&self.agent())
            .with_each(
                self.agent()
                    .into_iter()
                    .flat_map(|agent| agent.view().operations().iter()),
            )
            .with(&world.disk)
            .with_each(self.relevant_launches())
            .with(&world.dirs)
            .with(&world.scene.faults)
            .with_each(world.scene.inbox.queues())
            .with_each(world.scene.later.iter().map(|((at, _), due)| (at, due)))
            .with(&self.ahead())
            .finish()
    }

    /// What lives, and what somebody may still ask for: launches that are remembered. Of all others
    /// nothing will ever be heard.
    fn relevant_launches(&self) -> impl Iterator<Item = &Process> {
        let saved = self.world.disk.records().values();
        let saved = saved.filter_map(|record| match record {
            Record::Task(task) => task.launch.as_ref(),
            Record::Meta(_)
            | Record::Job(_)
            | Record::Eval(_)
            | Record::Deployment(_)
            | Record::Variable(_)
            | Record::Collected(_)
            | Record::Periodic(_)
            | Record::Node(_)
            | Record::Volume(_)
            | Record::Namespace(_)
            | Record::AclPolicy(_)
            | Record::AclToken(_)
            | Record::AclBootstrap(_)
            | Record::Server(_)
            | Record::Placed(_)
            | Record::Reported(_)
            | Record::Disk(_)
            | Record::Submission(_)
            | Record::Announced(_)
            | Record::Alloc(_) => None,
        });
        let allocs = self.view().into_iter().flat_map(|view| view.allocs());
        let tasks = allocs.flat_map(|alloc| alloc.tasks());
        let known = tasks.filter_map(|task| task.record().launch.as_ref());
        let known = known.chain(saved).map(|launch| launch.id);
        let alive = self.world.processes.living.iter().copied();
        let all: BTreeSet<LaunchId> = known.chain(alive).collect();
        let all = all.into_iter();
        all.filter_map(|launch| self.world.processes.get(launch))
    }

    /// Whether no order is lost if this turn goes before all others: the agent cannot see what it
    /// does before it is told, and nothing else can.
    fn goes_first(&self, turn: Turn, prompt: bool) -> bool {
        match turn {
            Turn::World(at, number) => prompt || self.world.is_unseen((at, number)),
            Turn::Input(_) | Turn::Timer | Turn::Restart | Turn::Servers => false,
        }
    }
}
