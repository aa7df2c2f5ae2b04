//! What an agent keeps is bounded by what lives, not by what once lived.

use drover_core::agent::requests::{CollectGarbage, RestartScope};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{Inspect, SOON};

/// How many jobs come and go.
const JOBS: usize = 60;

/// What the state of an agent that knows nothing may grow by: the ten or so counters in it (operations,
/// index, commits, steps, what is late or stale, random numbers) have up to 20 digits each. One forgotten
/// entry for each job would have 36, the length of an id.
const DIGITS: usize = 200;

/// Everything that the agent remembers, as text.
fn size(sim: &Sim) -> usize {
    let agent = sim.agent().map(serde_json::to_string);
    agent.and_then(Result::ok).map_or(0, |text| text.len())
}

/// A service is rolled out, replaced, asked for this and that, and forgotten.
fn one_comes_and_goes(sim: &mut Sim, id: &str, blocked: bool) -> Result<(), Violation> {
    let sum = format!("sum-{id}");
    let web = changed(&service(id, [task("main"), task("other")]), |group| {
        *group = group
            .clone()
            .rolls(1)
            .dynamic_port("http")
            .reschedules(1, Span::secs(1));
    });
    sim.register(&web);
    sim.register(&batch(&sum, [task("main").ends("1s", 1)]));
    sim.run(Span::secs(15))?;
    sim.signal(id);
    sim.restart_tasks(id, RestartScope::Task("main".into()));
    sim.run(Span::secs(5))?;
    sim.driver(!blocked);
    sim.register(&changed(&web, |group| {
        group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
    }));
    sim.run(Span::secs(5))?;
    sim.stop_alloc(id);
    sim.run(Span::secs(5))?;
    sim.ask(CollectGarbage);
    sim.deregister(id, true);
    sim.deregister(&sum, true);
    sim.run(Span::secs(5))?;
    sim.driver(true);
    sim.run(SOON)
}

/// Every private table of the core is empty again: roll-outs, places, news, commits, operators who wait.
#[test]
fn churned_jobs_leave_nothing() {
    for_seeds(4, |sim| {
        let kinds = [
            Fault::SlowAnswer,
            Fault::DoubledAnswer,
            Fault::FailHook,
            Fault::FailCommit,
        ];
        let trouble = Faults::only(
            &[&kinds[..], &[Fault::HangStop, Fault::FailDestroy]].concat(),
            30,
        );
        // Whatever is there from the first change on is there.
        sim.register(&service("first", [task("main")]));
        sim.driver(false);
        sim.driver(true);
        sim.run(SOON)?;
        sim.deregister("first", true);
        sim.run(SOON)?;
        let before = size(sim);
        for number in 0..JOBS {
            sim.world.scene.faults = trouble.clone();
            one_comes_and_goes(sim, &format!("web{number}"), number % 3 == 0)?;
        }
        sim.world.scene.faults = Faults::none();
        sim.run(Span::secs(2 * 3600))?;
        let after = size(sim);
        sim.expect_that(
            before > 0 && after <= before + DIGITS,
            &format!("{before}, then {after}"),
        )?;
        sim.expect_that(
            sim.world.disk.records().len() == 1,
            "only the node's record",
        )?;
        sim.converge()
    });
}
