//! New versions of a job: in place, by replacement, step by step, and back.

use drover_core::alloc::runner::AllocRunner;
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Task;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, changed, group, job, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

const DAY: Span = Span::secs(24 * 3600);

fn three(task: Task) -> Job {
    job(
        "web",
        JobType::Service,
        [group("g", [task]).count(3).rolls(1)],
    )
}

fn versions(sim: &Sim) -> Vec<u64> {
    let live = |alloc: &&&AllocRunner| !alloc.record().finished;
    sim.allocs("web")
        .iter()
        .filter(live)
        .map(|alloc| alloc.record().job_version)
        .collect()
}

fn other(old: &Job) -> Job {
    changed(old, |group| {
        group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
    })
}

fn rollout(sim: &Sim) -> Option<DeploymentStatus> {
    Some(sim.rollout("web")?.status)
}

#[test]
fn nondestructive_update_is_in_place() {
    for_seeds(200, |sim| {
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let new = changed(&old, |group| {
            group.tasks[0].kill_timeout = Some(Span::secs(1))
        });
        sim.register(&new);
        sim.until(SOON, |sim| versions(sim) == [1])?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "no further start")
    });
}

#[test]
fn destructive_update_replaces_alloc() {
    for_seeds(200, |sim| {
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&other(&old));
        sim.until(SOON, |sim| versions(sim) == [1] && sim.runs("web", "main"))?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 2, "one start more")
    });
}

/// What a task is told of itself is in its environment, which only a start can change.
#[test]
fn changed_meta_of_a_task_replaces_alloc() {
    for_seeds(20, |sim| {
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let new = changed(&old, |group| {
            group.tasks[0].meta.insert("m".to_owned(), "1".to_owned());
        });
        sim.register(&new);
        sim.until(SOON, |sim| versions(sim) == [1] && sim.runs("web", "main"))?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 2, "one start more")
    });
}

#[test]
fn rollout_replaces_one_at_a_time() {
    for_seeds(150, |sim| {
        let old = three(task("main"));
        sim.register(&old);
        sim.until(SOON, |sim| {
            rollout(sim) == Some(DeploymentStatus::Successful)
        })?;
        sim.register(&other(&old));
        while versions(sim) != [1, 1, 1] || rollout(sim) != Some(DeploymentStatus::Successful) {
            let allocs = sim.allocs("web");
            let unproved = allocs.iter().filter(|alloc| {
                let record = alloc.record();
                record.job_version == 1 && record.health.is_none()
            });
            sim.expect_that(unproved.count() <= 1, "one at a time")?;
            sim.expect_that(sim.world.now().at.0 < 600_000_000_000, "an end")?;
            sim.step(sim.world.now().at + Span::secs(1))?;
        }
        sim.converge()
    });
}

#[test]
fn unhealthy_rollout_stops() {
    for_seeds(150, |sim| {
        let old = three(task("main"));
        sim.register(&old);
        sim.until(SOON, |sim| {
            rollout(sim) == Some(DeploymentStatus::Successful)
        })?;
        let broken = changed(&old, |group| {
            group.tasks[0] =
                task("main")
                    .ends("1s", 1)
                    .restarts(0, DAY, Span::secs(1), RestartMode::Fail);
        });
        sim.register(&broken);
        sim.until(SOON, |sim| rollout(sim) == Some(DeploymentStatus::Failed))?;
        sim.run(Span::secs(3600))?;
        let untouched = versions(sim)
            .iter()
            .filter(|version| **version == 0)
            .count();
        sim.expect_that(untouched == 2, "two of the old version run on")
    });
}

/// One that failed and is replaced by a good one: the roll-out has failed nevertheless.
#[test]
fn failed_rollout_does_not_resume_after_reschedule() {
    for_seeds(150, |sim| {
        let old = three(task("main").restarts(0, DAY, Span::secs(1), RestartMode::Fail));
        sim.register(&old);
        sim.until(SOON, |sim| {
            rollout(sim) == Some(DeploymentStatus::Successful)
        })?;
        sim.world.scene.faults = Faults::only(&[Fault::FailStartedStart], 1000).budget(1);
        sim.register(&other(&old));
        let running = Some(DeploymentStatus::Running);
        sim.until(SOON, |sim| rollout(sim) == running)?;
        sim.until(Span::secs(300), |sim| rollout(sim) != running)?;
        if sim.seed() == BENIGN {
            // The world in which nothing goes wrong.
            return Ok(());
        }
        let failed = rollout(sim) == Some(DeploymentStatus::Failed);
        sim.expect_that(failed, "the first of the new version failed")?;
        sim.run(Span::secs(3600))?;
        let untouched = versions(sim)
            .iter()
            .filter(|version| **version == 0)
            .count();
        sim.expect_that(untouched == 2, "two of the old version run on")
    });
}

/// Every copy counts once for a roll-out, however often it was replaced.
#[test]
fn rollout_succeeds_when_all_allocs_are_healthy() {
    for_seeds(150, |sim| {
        let slow = task("main").with("start_block_for", "30s");
        sim.register(&three(slow));
        sim.until(Span::secs(120), |sim| {
            sim.allocs("web")
                .iter()
                .any(|alloc| alloc.record().health.is_some())
        })?;
        sim.stop_alloc("web");
        sim.until(Span::secs(300), |sim| {
            rollout(sim) == Some(DeploymentStatus::Successful)
        })?;
        let allocs = sim.allocs("web");
        let healthy = allocs.iter().filter(|alloc| {
            let record = alloc.record();
            !record.desired.is_terminal() && record.health.is_some_and(|health| health.healthy)
        });
        sim.expect_that(healthy.count() == 3, "three are healthy")?;
        sim.converge()
    });
}

#[test]
fn rollout_without_health_checks_ends() {
    for_seeds(100, |sim| {
        let old = service("web", [task("main")]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&changed(&old, |group| *group = group.clone().rolls(1)));
        sim.until(Span::secs(300), |sim| {
            rollout(sim) == Some(DeploymentStatus::Successful)
        })?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "in place")
    });
}

#[test]
fn count_change_scales_group() {
    for_seeds(200, |sim| {
        let web = |count| {
            job(
                "web",
                JobType::Service,
                [group("g", [task("main")]).count(count)],
            )
        };
        for count in [3, 1, 4, 0, 2] {
            sim.register(&web(count));
            sim.run(Span::secs(if sim.seed() % 2 == 0 { 0 } else { 30 }))?;
        }
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 2, "two in the end")
    });
}

#[test]
fn job_registered_while_stopping_runs_again() {
    for_seeds(200, |sim| {
        let web = service("web", [task("main").with("kill_after", "4s")]);
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", sim.seed() % 2 == 0);
        sim.run(Span::secs(1))?;
        sim.register(&web);
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 1, "one runs")
    });
}

#[test]
fn dynamic_ports_have_one_holder_each() {
    for_seeds(200, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangStop, Fault::HangDestroy], 300);
        let web = job(
            "web",
            JobType::Service,
            [group("g", [task("main").with("kill_after", "3s")])
                .count(4)
                .dynamic_port("http")],
        );
        sim.register(&web);
        sim.run(Span::secs(5))?;
        sim.register(&other(&web));
        sim.run(Span::secs(2))?;
        sim.register(&web);
        sim.run(SOON)?;
        sim.converge()
    });
}

#[test]
fn every_type_of_job_stops() {
    for_seeds(100, |sim| {
        let types = [
            JobType::Service,
            JobType::Batch,
            JobType::System,
            JobType::Sysbatch,
        ];
        for (index, job_type) in types.into_iter().enumerate() {
            sim.register(&job(
                &format!("j{index}"),
                job_type,
                [group("g", [task("main")])],
            ));
        }
        sim.until(SOON, |sim| sim.living("main") == 4)?;
        for index in 0..4 {
            sim.deregister(&format!("j{index}"), index % 2 == 0);
        }
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 0, "nothing lives")
    });
}

/// Of three copies, how many were replaced when the new version was acknowledged.
fn replaced_at_once(
    sim: &mut Sim,
    job_type: JobType,
    max_parallel: i64,
) -> Result<usize, Violation> {
    let copies = group("g", [task("main")]).count(3).rolls(max_parallel);
    let old = job("web", job_type, [copies]);
    sim.register(&old);
    sim.until(SOON, |sim| sim.living("main") == 3)?;
    let request = sim.register(&other(&old));
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    let allocs = sim.allocs("web");
    let new = allocs
        .iter()
        .filter(|alloc| alloc.record().job_version == 1);
    Ok(new.count())
}

/// One after the other goes what is a service and says how many at a time.
#[test]
fn group_without_update_is_replaced_at_once() {
    for_seeds(60, |sim| {
        let expected = [
            (JobType::Service, 1, 1),
            (JobType::Service, 2, 2),
            (JobType::Service, 0, 3),
            (JobType::Batch, 1, 3),
        ];
        let (job_type, max_parallel, new) = expected[usize::try_from(sim.seed() % 4).unwrap_or(0)];
        let found = replaced_at_once(sim, job_type, max_parallel)?;
        let message = format!("{job_type:?} of {max_parallel} at a time: {found} of three");
        sim.expect_that(found == new, &message)?;
        sim.converge()
    });
}

/// Copies that a version does not want any more have nothing to prove: nobody waits for them.
#[test]
fn scaled_down_copies_hold_up_no_rollout() {
    for_seeds(100, |sim| {
        let old = three(task("main"));
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&other(&old));
        sim.until(SOON, |sim| versions(sim).contains(&1))?;
        let one = changed(&old, |group| group.count = Some(1));
        sim.register(&one);
        sim.converge()?;
        sim.expect_that(versions(sim) == [2], "one copy of the latest version runs")?;
        let ended = rollout(sim) == Some(DeploymentStatus::Successful);
        sim.expect_that(ended, "its roll-out is over")
    });
}
