//! Random fleets: several nodes and the servers of their cluster, in any trouble. And how large and how fast a fleet is.

use std::fmt;
use std::hash::Hasher;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use drover_core::model::job::{Job, JobType};
use drover_core::time::{SECOND, Span};
use drover_io_sim::{Dice, Faults, Fleet, Servers, StateHasher, Violation, timeline};

use crate::Scenario;
use crate::build::{GroupExt, group, job, task};

/// Among random worlds one in so many is a fleet.
const ONE_IN: usize = 50;

/// How many nodes such a fleet has.
pub const FEW: Range<usize> = 2..7;

/// Whether the random world of a seed is a fleet.
pub fn is_fleet(seed: u64) -> bool {
    Dice::new(seed).below(ONE_IN, "fleet", "") == 1
}

/// A service of so many copies.
pub fn service(id: &str, copies: i64) -> Job {
    let mut group = group("g", [task("main")]).registers("api", "8080");
    group.count = Some(copies);
    job(id, JobType::Service, [group])
}

/// One whose disk comes along from node to node.
pub fn migrating(id: &str, copies: i64) -> Job {
    let mut group = group("g", [task("main")]).migrates();
    group.count = Some(copies);
    job(id, JobType::Service, [group])
}

/// One that ends where servers are out of reach.
fn needing_servers(id: &str, copies: i64) -> Job {
    let mut service = service(id, copies);
    for group in &mut service.task_groups {
        group.stop_after_client_disconnect = Some(Span::secs(5));
    }
    service
}

/// A random fleet whose time is over.
#[derive(Debug)]
pub struct Played {
    /// The fleet at its end.
    pub fleet: Fleet,
    /// Whether everything held.
    pub verdict: Scenario,
}

/// Plays the random fleet of a seed, of so many nodes; with the stories of all if somebody reads them.
pub fn play(seed: u64, nodes: Range<usize>, with_stories: bool) -> Played {
    let more = Dice::new(seed).below(nodes.len(), "nodes", "");
    let mut fleet = Fleet::new(seed, nodes.start + more);
    if with_stories {
        fleet.keep_stories();
    }
    let verdict = catch_unwind(AssertUnwindSafe(|| random(seed, &mut fleet)));
    let verdict = verdict.unwrap_or_else(|panic| {
        let text = (panic.downcast_ref::<String>().cloned())
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation::new("no_panic", text.unwrap_or_default()))
    });
    Played { fleet, verdict }
}

/// Faults of each node and of its way to the servers, jobs that come, change and go, servers that go back.
fn random(seed: u64, fleet: &mut Fleet) -> Scenario {
    let mut dice = Dice::new(seed);
    let nodes = fleet.nodes().len();
    for index in 0..nodes {
        let own = seed.wrapping_mul(100);
        let own = own.wrapping_add(u64::try_from(index).unwrap_or(0));
        fleet.set_faults(index, Faults::of_servers(own).and(&Faults::swarm(own)));
    }
    for step in 0..20 {
        let pause = dice.one_of(&[1, 5, 30, 120], "pause", "").unwrap_or(1);
        fleet.run(Span::secs(pause))?;
        let id = ["web", "api", "db"][dice.below(3, "job", "")];
        let job = |copies| match id {
            "db" => migrating(id, copies),
            "api" => needing_servers(id, copies),
            _ => service(id, copies),
        };
        let copies = i64::try_from(dice.below(6, "copies", "")).unwrap_or(0);
        let nth = dice.below(4, "nth", "");
        let index = dice.below(nodes, "node", "");
        match dice.below(11, "act", "") {
            _ if step == 0 => fleet.at_servers(|it| it.register(&job(3), true)),
            0 | 1 => fleet.at_servers(|it| it.register(&job(copies), true)),
            2 => fleet.at_servers(|it| it.register(&job(copies), false)),
            3 => fleet.at_servers(|it| it.deregister(id)),
            4 => fleet.at_servers(Servers::collect),
            5 => fleet.at_servers(|it| it.stop_one(id, nth)),
            6 => drop(fleet.at_node(index, |it| it.world.cut_off(Span::secs(60)))),
            7 => drop(fleet.at_node(index, |it| it.goes_down(false, Span::secs(5)))),
            8 => fleet.at_servers(Servers::save),
            9 => fleet.at_servers(|it| it.end_identities(nth == 1)),
            _ => fleet.at_servers(Servers::go_back),
        }
    }
    fleet.converge()
}

impl Played {
    /// What happened at each node.
    pub fn stories(&self) -> String {
        let nodes = self.fleet.nodes().iter();
        let stories = nodes.map(|node| {
            let story = timeline::draw(node.world.scene.trace.events());
            format!("node {}\n{story}\n", node.config().node.name)
        });
        stories.collect()
    }

    /// A number for all that happened.
    pub fn hash(&self) -> u64 {
        let mut hash = StateHasher::default();
        for node in self.fleet.nodes() {
            hash.write_u64(node.world.scene.trace.hash());
        }
        hash.finish()
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// How many nodes there were, each with two copies of a service.
    pub nodes: usize,
    /// How much time passed for them.
    pub simulated: Span,
    /// How long that took.
    pub took: Duration,
    /// How many things happened.
    pub turns: u64,
    /// The memory of the whole program at its largest, in KiB; none where the system does not say.
    pub peak: Option<u64>,
}

/// Lets so many nodes live for a while.
///
/// # Errors
/// What is violated by it.
pub fn measure(nodes: usize, seconds: u64) -> Result<Measured, Violation> {
    let simulated = Span::secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let began = Instant::now();
    let mut fleet = Fleet::new(0, nodes);
    let mut group = group("g", [task("main")]).registers("api", "8080");
    group.count = i64::try_from(nodes * 2).ok();
    let web = job("web", JobType::Service, [group]);
    // All are known before the first copy is placed: else the first nodes get them all.
    fleet.run(Span::secs(30))?;
    fleet.at_servers(|servers| servers.register(&web, true));
    fleet.run(simulated)?;
    Ok(Measured {
        nodes,
        simulated,
        took: began.elapsed(),
        turns: fleet.turns(),
        peak: peak(),
    })
}

fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.simulated.0 / SECOND;
        let took = self.took.as_secs_f64().max(0.001);
        let ratio = seconds as f64 / took;
        let (nodes, turns) = (self.nodes, self.turns);
        write!(
            f,
            "{nodes} nodes, {seconds} s in {took:.1} s ({ratio:.0} : 1), {turns} turns"
        )?;
        match self.peak {
            Some(peak) => write!(f, ", {} MiB at most", peak / 1024),
            None => Ok(()),
        }
    }
}
