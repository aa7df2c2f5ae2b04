//! Metadata of the node that is applied while its agent runs.

use std::collections::BTreeMap;

use drover_core::agent::requests::ApplyNodeMeta;
use drover_core::config::Config;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::JobKey;
use drover_core::model::job::{Constraint, Job, JobType};
use drover_core::model::node::Node;
use drover_core::model::placement::PlacementFailure;
use drover_core::store::node::MAX_META;
use drover_core::time::Span;
use drover_io_sim::Sim;
use drover_sim_tests::build::{group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON, ask};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

/// A service for the rack `r2`.
fn web() -> Job {
    let mut web = job("web", JobType::Service, [group("g", [task("main")])]);
    web.constraints.push(Constraint {
        target: "${meta.rack}".to_owned(),
        value: "r2".to_owned(),
        operand: "=".to_owned(),
    });
    web
}

fn apply(pairs: &[(&str, Option<&str>)]) -> ApplyNodeMeta {
    let pair = |(key, value): &(&str, Option<&str>)| {
        let value = value.map(str::to_owned);
        ((*key).to_owned(), value)
    };
    ApplyNodeMeta {
        meta: pairs.iter().map(pair).collect(),
    }
}

fn rack(sim: &Sim) -> Option<&str> {
    let rack = sim.view()?.node().meta.get("rack");
    rack.map(String::as_str)
}

#[test]
fn job_that_waits_for_metadata_is_placed() {
    for_seeds(40, |sim| {
        sim.register(&web());
        sim.run(SOON)?;
        let blocked = sim.view().map(|view| view.blocked(&JobKey::local("web")));
        let why = blocked.and_then(|blocked| blocked.first());
        let waits = matches!(why, Some((_, PlacementFailure::Constraint(_))));
        sim.expect_that(waits, &format!("{why:?}"))?;
        ask(sim, apply(&[("rack", Some("r1"))]))?;
        sim.run(SOON)?;
        sim.expect_that(!sim.runs("web", "main"), "another rack")?;
        ask(sim, apply(&[("rack", Some("r2"))]))?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        ask(sim, apply(&[("rack", None)]))?;
        sim.run(SOON)?;
        sim.expect_that(rack(sim).is_none(), "it is gone")?;
        sim.expect_that(sim.runs("web", "main"), "what runs goes on")?;
        sim.converge()
    });
}

/// The configuration says `r1`, until somebody says otherwise, and again when nobody does.
#[test]
fn configured_metadata_is_hidden_and_comes_back() {
    for seed in 0..10 {
        let node = Node {
            meta: BTreeMap::from([("rack".to_owned(), "r1".to_owned())]),
            ..drover_io_sim::node()
        };
        let mut sim = Sim::with_config(seed, Config::new(0, node, "/alloc"));
        let reported = hides_configured(&mut sim);
        assert_eq!(reported, Ok(()), "seed {seed}");
    }
}

fn hides_configured(sim: &mut Sim) -> Scenario {
    sim.expect_that(rack(sim) == Some("r1"), "as it is configured")?;
    ask(sim, apply(&[("rack", None)]))?;
    sim.restart()?;
    sim.expect_that(rack(sim).is_none(), "the next agent does not have it")?;
    ask(sim, apply(&[("rack", Some("r9")), ("zone", Some("a"))]))?;
    sim.restart()?;
    sim.expect_that(rack(sim) == Some("r9"), "nor the one after it")?;
    ask(sim, apply(&[("zone", None)]))?;
    let kept = sim.view().map(|view| view.node_record().meta.len());
    sim.expect_that(kept == Some(1), "nothing is kept of a key that is gone")?;
    sim.converge()
}

#[test]
fn metadata_is_bounded() {
    for_seeds(3, |sim| {
        let many: Vec<String> = (0..=MAX_META).map(|nth| format!("k{nth}")).collect();
        let many: Vec<(&str, Option<&str>)> =
            many.iter().map(|key| (key.as_str(), Some("v"))).collect();
        let reply = ask(sim, apply(&many))?;
        let refused = matches!(reply, Some(Reply::Refused(Refusal::Invalid(_))));
        sim.expect_that(refused, "too many")?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_applying_metadata() {
    let crashes = each_crash(3, |sim| {
        sim.register(&web());
        sim.run(SOON)?;
        sim.ask(apply(&[("rack", Some("r2"))]));
        sim.run(Span::secs(120))?;
        sim.converge()?;
        sim.expect_that(sim.runs("web", "main"), "it is placed")
    });
    assert!(crashes > 5, "{crashes}");
}
