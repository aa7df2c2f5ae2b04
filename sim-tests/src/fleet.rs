//! How large and how fast a simulated fleet is.

use std::fmt;
use std::time::{Duration, Instant};

use drover_core::model::job::JobType;
use drover_core::time::{SECOND, Span};
use drover_io_sim::{Fleet, Violation};

use crate::build::{GroupWords, group, job, task};

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
