//! Versions of jobs: going back, names, what is kept and what is dropped.

use std::sync::Arc;

use drover_core::agent::requests::{
    CollectGarbage, Deregister, Register, RevertJob, SetStable, TagVersion, UntagVersion,
};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::JobKey;
use drover_core::model::job::Job;
use drover_core::model::submission::Submission;
use drover_io_sim::Sim;
use drover_sim_tests::build::{service, task};
use drover_sim_tests::inspect::{Inspect, ask_and_wait};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

fn web(version: u64) -> Job {
    let mut task = task("main");
    task.env.insert("V".to_owned(), version.to_string());
    service("web", [task])
}

fn key() -> JobKey {
    JobKey::local("web")
}

/// The version with a text that says which it is.
fn register(version: u64) -> Register {
    let submission = Submission {
        source: format!("version {version}").into(),
        ..Submission::default()
    };
    Register {
        job: Arc::new(web(version)),
        expect_index: None,
        submission: Some(Arc::new(submission)),
    }
}

fn revert(version: u64) -> RevertJob {
    RevertJob {
        job: key(),
        version,
        expect_version: None,
    }
}

fn tag(version: u64, name: &str) -> TagVersion {
    TagVersion {
        job: key(),
        version: Some(version),
        name: name.into(),
        description: "".into(),
    }
}

fn refused(reply: Option<&Reply>) -> bool {
    matches!(reply, Some(Reply::Refused(Refusal::Conflict(_))))
}

fn latest(sim: &Sim) -> Option<Arc<Job>> {
    Some(sim.view()?.job(&key())?.job.clone())
}

/// What tells the versions apart.
fn value(job: &Job) -> Option<String> {
    job.task_groups[0].tasks[0].env.get("V").cloned()
}

fn numbers(sim: &Sim) -> Vec<u64> {
    let record = sim.view().and_then(|view| view.job(&key()));
    let versions = record.into_iter().flat_map(|record| record.newest_first());
    versions.map(|job| job.version).collect()
}

fn text(sim: &Sim, version: u64) -> Option<String> {
    let text = sim.view()?.submission(&key(), version)?;
    Some(text.source.to_string())
}

fn expect_versions(sim: &Sim, wanted: &[u64]) -> Scenario {
    let there = numbers(sim);
    sim.expect_that(there == wanted, &format!("{wanted:?}, not {there:?}"))
}

fn expect_text(sim: &Sim, version: u64, wanted: Option<&str>) -> Scenario {
    let there = text(sim, version);
    let right = there.as_deref() == wanted;
    sim.expect_that(right, &format!("{wanted:?}, not {there:?}"))
}

#[test]
fn reverted_job_runs_earlier_version_with_its_text() {
    for_seeds(40, |sim| {
        ask_and_wait(sim, register(0))?;
        ask_and_wait(sim, register(1))?;
        ask_and_wait(sim, revert(0))?;
        expect_versions(sim, &[2, 1, 0])?;
        expect_text(sim, 2, Some("version 0"))?;
        let job = latest(sim);
        let runs = job.as_deref().and_then(value);
        sim.expect_that(runs.as_deref() == Some("0"), "the first version runs")?;
        let again = ask_and_wait(sim, revert(2))?;
        let words = Refusal::Conflict("can't revert to current version".to_owned());
        sim.expect_that(
            again == Some(Reply::Refused(words)),
            "the current version is refused",
        )?;
        let unknown = ask_and_wait(sim, revert(9))?;
        sim.expect_that(refused(unknown.as_ref()), "a version that is not there")?;
        let other = RevertJob {
            expect_version: Some(1),
            ..revert(0)
        };
        let other = ask_and_wait(sim, other)?;
        sim.expect_that(refused(other.as_ref()), "another version than expected")?;
        sim.converge()
    });
}

#[test]
fn tagged_version_is_kept_until_it_is_untagged() {
    for_seeds(20, |sim| {
        ask_and_wait(sim, register(0))?;
        ask_and_wait(sim, tag(0, "good"))?;
        for version in 1..9 {
            ask_and_wait(sim, register(version))?;
        }
        // Versions are in use until what ran them is collected.
        ask_and_wait(sim, CollectGarbage)?;
        ask_and_wait(sim, register(9))?;
        expect_versions(sim, &[9, 8, 7, 6, 5, 4, 0])?;
        expect_text(sim, 0, Some("version 0"))?;
        expect_text(sim, 3, None)?;
        let twice = ask_and_wait(sim, tag(9, "good"))?;
        sim.expect_that(refused(twice.as_ref()), "one tag, one version")?;
        let name = "good".into();
        ask_and_wait(sim, UntagVersion { job: key(), name })?;
        expect_versions(sim, &[9, 8, 7, 6, 5, 4])?;
        expect_text(sim, 0, None)?;
        sim.converge()
    });
}

#[test]
fn last_stable_version_is_kept() {
    for_seeds(20, |sim| {
        ask_and_wait(sim, register(0))?;
        let (job, version, stable) = (key(), 0, true);
        ask_and_wait(
            sim,
            SetStable {
                job,
                version,
                stable,
            },
        )?;
        for version in 1..9 {
            ask_and_wait(sim, register(version))?;
        }
        // Versions are in use until what ran them is collected.
        ask_and_wait(sim, CollectGarbage)?;
        ask_and_wait(sim, register(9))?;
        expect_versions(sim, &[9, 8, 7, 6, 5, 4, 0])?;
        sim.converge()
    });
}

#[test]
fn stopped_job_starts_again_by_going_back_to_its_latest_version() {
    for_seeds(40, |sim| {
        ask_and_wait(sim, register(0))?;
        let (job, purge) = (key(), false);
        ask_and_wait(
            sim,
            Deregister {
                job,
                purge,
                no_shutdown_delay: false,
            },
        )?;
        ask_and_wait(sim, revert(0))?;
        let job = latest(sim);
        let starts = job.is_some_and(|job| !job.stop && job.version == 1);
        sim.expect_that(starts, "it runs as a new version")?;
        sim.converge()
    });
}

#[test]
fn versions_tags_and_texts_survive_crash_at_each_step() {
    let crashes = each_crash(7, |sim| {
        ask_and_wait(sim, register(0))?;
        ask_and_wait(sim, tag(0, "good"))?;
        ask_and_wait(sim, register(1))?;
        ask_and_wait(sim, revert(0))?;
        sim.converge()?;
        let latest = latest(sim);
        let value = latest.as_deref().and_then(value);
        sim.expect_that(value.as_deref() == Some("0"), "the first version runs")?;
        // Whoever went back and was not told so went back again.
        let there = numbers(sim);
        let right = there.len() >= 3 && there.ends_with(&[2, 1, 0]);
        sim.expect_that(right, &format!("{there:?}"))?;
        let record = sim.view().and_then(|view| view.job(&key()));
        let tagged = record.and_then(|record| record.tagged("good"));
        sim.expect_that(tagged == Some(0), &format!("{tagged:?}"))?;
        expect_text(sim, 0, Some("version 0"))?;
        expect_text(sim, 1, Some("version 1"))?;
        expect_text(sim, 2, Some("version 0"))
    });
    assert!(crashes > 10, "{crashes}");
}
