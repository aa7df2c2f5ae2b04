//! What an allocation waits for that another holds is named, with its holder, until that one is gone.

use drover_core::claims::{Claim, Holder, Ungranted};
use drover_core::ids::{AllocId, GroupName, JobKey, Slot};
use drover_core::model::job::{Job, JobType};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, changed, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

fn on_port_and_devices(name: &str, priority: i64) -> Job {
    let tasks = [task(name).devices("bolt/gpu", 2)];
    let mut job = job(
        name,
        JobType::Service,
        [group("g", tasks).static_port("http", 8080)],
    );
    job.priority = priority;
    job
}

/// What the latest allocation of a job claims and others hold.
fn ungranted(sim: &Sim, job: &str) -> Vec<Ungranted> {
    let view = sim.view();
    let found = view.and_then(|view| Some(view.ungranted(sim.live(job)?)));
    found.unwrap_or_default()
}

fn live(sim: &Sim, job: &str) -> Option<AllocId> {
    sim.live(job).map(|alloc| alloc.record().id)
}

fn is_of(one: &Ungranted, holder: Option<AllocId>) -> bool {
    holder.is_some_and(|id| one.holder == Holder::Alloc(id))
}

/// What others await of it does not end: it takes longer than any scenario looks.
fn resists(sim: &mut Sim) {
    sim.world.scene.faults = Faults::only(&[Fault::HangStop], 1000).budget(1000);
}

/// What people read of why the allocation of a job waits.
fn explained(sim: &Sim, job: &str) -> String {
    let found = sim.view().zip(sim.live(job));
    let found =
        found.and_then(|(view, alloc)| view.explain_alloc(sim.world.now(), alloc.record().id));
    let waiting = found.map_or_else(Vec::new, |it| it.waiting);
    waiting.into_iter().map(|one| one.what).collect()
}

#[test]
fn preempting_alloc_names_claims_and_holders() {
    for_seeds(60, |sim| {
        // In the world of seed 0 nothing goes wrong, so nothing takes its time.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.register(&on_port_and_devices("low", 30));
        sim.until(SOON, |sim| sim.runs("low", "low"))?;
        let holder = live(sim, "low");
        resists(sim);
        sim.register(&on_port_and_devices("high", 60));
        sim.until(SOON, |sim| !ungranted(sim, "high").is_empty())?;
        let waits = ungranted(sim, "high");
        let ports = waits
            .iter()
            .filter(|it| matches!(it.claim, Claim::Port(_, 8080)))
            .count();
        let devices = waits
            .iter()
            .filter(|it| matches!(it.claim, Claim::Device(..)))
            .count();
        let by_holder = waits.iter().all(|it| is_of(it, holder));
        sim.expect_that(
            (ports, devices, by_holder) == (1, 2, true),
            &format!("{waits:?}"),
        )?;
        let words = (sim.view().zip(sim.live("high"))).and_then(|(view, one)| view.waits_for(one));
        let words = words.unwrap_or_default();
        sim.expect_that(words.contains("holds port 8080, device bolt/gpu/"), &words)?;
        sim.run(Span::secs(3))?;
        let words = explained(sim, "high");
        let since = "of job \"low\", group \"g\", which has been ending for ";
        sim.expect_that(words.contains(since), &words)?;
        sim.run_until_quiescent()?;
        sim.until(SOON, |sim| sim.runs("high", "high"))?;
        sim.expect_that(ungranted(sim, "high").is_empty(), "all are granted")?;
        sim.converge()
    });
}

#[test]
fn replacement_names_slot_of_previous_alloc() {
    for_seeds(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let holder = live(sim, "web");
        resists(sim);
        sim.register(&changed(&old, |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        }));
        sim.run(Span::secs(1))?;
        let slot = Claim::Slot(Slot {
            job: JobKey::local("web"),
            group: GroupName::from("g"),
            index: 0,
            lane: 0,
            alloc: None,
        });
        let waits = ungranted(sim, "web");
        let named = waits.iter().any(|it| it.claim == slot && is_of(it, holder));
        sim.expect_that(named, &format!("{waits:?}"))?;
        sim.run_until_quiescent()?;
        sim.converge()
    });
}
