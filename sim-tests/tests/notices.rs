//! What operators are told, and how often.

use drover_core::config::{Config, DiskUsageLimits};
use drover_core::model::job::JobType;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, listening, node};
use drover_sim_tests::Scenario;
use drover_sim_tests::build::{group, job, task};
use drover_sim_tests::inspect::Inspect;

/// Looks at the disk that fail, and that nobody answers, change nothing of what was told.
#[test]
fn disk_pressure_is_told_once_however_the_looks_went() {
    let mut told = 0;
    for seed in 0..40 {
        let mut config = listening(Config::new(0, node(), "/alloc"));
        config.notices = true;
        config.disk_limits = Some(DiskUsageLimits::default());
        let mut sim = Sim::with_config(seed, config);
        let done = story(&mut sim);
        assert_eq!(done, Ok(()), "seed {seed}");
        let reached = sim.checker.reached();
        let times = reached.filter(|(name, _)| *name == "disk_pressure_is_told_once");
        told += times.map(|(_, times)| times).sum::<u64>();
    }
    assert!(told >= 40, "{told}");
}

fn story(sim: &mut Sim) -> Scenario {
    let trouble = [Fault::DiskPressure, Fault::HangProbe, Fault::FailProbe];
    sim.world.faults = Faults::only(&trouble, 300);
    sim.register(&job("web", JobType::Service, [group("g", [task("main")])]));
    sim.run(Span::secs(3600))?;
    sim.converge()
}
