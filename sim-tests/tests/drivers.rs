//! What drivers accept, as the simulated world's does.

use drover_core::ids::JobKey;
use drover_core::model::event::EventType;
use drover_core::time::Span;
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::Inspect;

#[test]
fn mock_task_with_an_unknown_option_fails_with_its_name() {
    for_seeds(20, |sim| {
        let main = task("main").ends("1s", 0).with("runfor", "1s");
        let job = batch("sum", [main]);
        sim.register(&changed(&job, |group| *group = group.clone().never_again()));
        sim.until(Span::secs(600), |sim| sim.dead("sum", "main"))?;
        let task = sim.task("sum", "main");
        let events = task
            .map(|task| task.state().events.as_slice())
            .unwrap_or_default();
        let names_it = events.iter().any(|event| {
            let refused = matches!(
                event.kind,
                EventType::FailedValidation | EventType::DriverFailure
            );
            refused && event.display_message.contains("runfor")
        });
        sim.expect_that(
            names_it,
            &format!("an event that names the option: {events:?}"),
        )?;
        let never_ran = task.is_some_and(|task| task.state().started_at.is_none());
        sim.expect_that(never_ran, "it never ran")?;
        let job = sim
            .view()
            .and_then(|view| view.explain_job(sim.world.now(), &JobKey::local("sum")));
        let cause = job.and_then(|job| job.allocs.first()?.tasks.first()?.cause.clone());
        let is_explained = cause.is_some_and(|cause| cause.display_message.contains("runfor"));
        sim.expect_that(is_explained, "its end is explained by that")?;
        sim.converge()
    });
}
