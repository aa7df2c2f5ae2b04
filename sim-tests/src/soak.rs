//! Random worlds for as long as you like: most are one node, some a fleet of them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use drover_core::time::SECOND;
use drover_io_sim::script::{Script, Watch};
use drover_io_sim::{Coverage, Sim, Violation};

use crate::{chaos, fleet};

/// How long, and which seeds.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub from: u64,
    /// How many seeds at most.
    pub seeds: u64,
    /// How long at most.
    pub seconds: u64,
    /// On how many threads.
    pub threads: usize,
    /// Whether the first failure ends it.
    pub first_only: bool,
}

/// What a seed stands for.
#[derive(Clone, Debug)]
pub enum World {
    /// One node, as a script says.
    Node(Box<Script>),
    /// The fleet of this seed.
    Fleet(u64),
}

impl World {
    /// The world of a seed.
    pub fn of(seed: u64) -> World {
        match fleet::is_fleet(seed) {
            true => World::Fleet(seed),
            false => World::Node(Box::new(chaos::script(seed))),
        }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        match self {
            World::Node(script) => script.seed,
            World::Fleet(seed) => *seed,
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Soaked {
    /// How many seeds were tried.
    pub seeds: u64,
    /// How many steps the agents made.
    pub steps: u64,
    /// How much time passed in the simulated worlds, in seconds.
    pub simulated: u64,
    /// How often each property had something to look at.
    pub reached: BTreeMap<&'static str, u64>,
    /// Which inputs reached which states.
    pub coverage: Coverage,
    /// For each property that was violated: how often, and the first world that did.
    pub violated: BTreeMap<&'static str, (u64, World, Violation)>,
}

impl Soaked {
    fn add(&mut self, other: Soaked) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.simulated += other.simulated;
        for (name, times) in other.reached {
            *self.reached.entry(name).or_default() += times;
        }
        self.coverage.merge(&other.coverage);
        for (name, (times, world, violation)) in other.violated {
            let entry =
                (self.violated.entry(name)).or_insert((0, world.clone(), violation.clone()));
            entry.0 += times;
            if world.seed() < entry.1.seed() {
                (entry.1, entry.2) = (world, violation);
            }
        }
    }

    fn run(&mut self, world: World) {
        self.seeds += 1;
        let verdict = match &world {
            World::Node(script) => {
                let ran = script.run(Watch::default());
                self.saw(&ran.sim);
                ran.verdict
            }
            World::Fleet(seed) => {
                let played = fleet::play(*seed, fleet::FEW, false);
                played.fleet.nodes().iter().for_each(|node| self.saw(node));
                played.verdict
            }
        };
        if let Err(violation) = verdict {
            let name = violation.invariant;
            let entry = (self.violated.entry(name)).or_insert((0, world, violation));
            entry.0 += 1;
        }
    }

    fn saw(&mut self, node: &Sim) {
        self.steps += node.steps;
        self.simulated += (node.world.elapsed().0 / SECOND).unsigned_abs();
        for (name, times) in node.checker.reached() {
            *self.reached.entry(name).or_default() += times;
        }
        self.coverage.merge(&node.checker.coverage);
    }
}

/// Tries one seed after the other. `on_progress` is called about once a second with what was done so far.
pub fn soak(plan: Plan, on_progress: impl Fn(u64, u64)) -> Soaked {
    let (next, done) = (AtomicU64::new(plan.from), AtomicU64::new(0));
    let (over, all) = (AtomicBool::new(false), Mutex::new(Soaked::default()));
    let began = Instant::now();
    let end = plan.from.saturating_add(plan.seeds);
    let work = &|| {
        let mut own = Soaked::default();
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end || began.elapsed() >= Duration::from_secs(plan.seconds) {
                break;
            }
            own.run(World::of(seed));
            done.fetch_add(1, Ordering::Relaxed);
            if plan.first_only && !own.violated.is_empty() {
                over.store(true, Ordering::Relaxed);
            }
        }
        if let Ok(mut all) = all.lock() {
            all.add(own);
        }
    };
    // Each worker holds an end of this as long as it works; nothing is ever sent.
    let (works, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            let works = works.clone();
            scope.spawn(move || {
                work();
                drop(works);
            });
        }
        drop(works);
        while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            on_progress(began.elapsed().as_secs(), done.load(Ordering::Relaxed));
        }
    });
    all.into_inner().unwrap_or_default()
}
