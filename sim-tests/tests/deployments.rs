//! Roll-outs with canaries, pauses, and what follows one that failed.

use drover_core::agent::requests::{
    ApplyNodeMeta, CollectGarbage, FailDeployment, PauseDeployment, PromoteDeployment, Request,
    SetAllocHealth, StopAlloc,
};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{DeploymentId, JobKey};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Constraint, Job, JobType};
use drover_core::model::policy::{RestartMode, UpdateStrategy};
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

const LONG: Span = Span::secs(120);

fn web(version: u64, copies: i64, change: fn(&mut UpdateStrategy)) -> Job {
    let mut main = task("main");
    main.env.insert("V".to_owned(), version.to_string());
    of(main, copies, change)
}

/// A version whose task fails.
fn broken(copies: i64, change: fn(&mut UpdateStrategy)) -> Job {
    let main = task("main").ends("1s", 1);
    let main = main.restarts(0, Span::secs(600), Span::secs(1), RestartMode::Fail);
    of(main, copies, change)
}

fn of(main: drover_core::model::task::Task, copies: i64, change: fn(&mut UpdateStrategy)) -> Job {
    let mut group: TaskGroup = group("g", [main]).never_again().rolls(1);
    group.count = Some(copies);
    if let Some(update) = &mut group.update {
        change(update);
    }
    job("web", JobType::Service, [group])
}

fn one_canary(update: &mut UpdateStrategy) {
    update.canary = 1;
}

fn reverts(update: &mut UpdateStrategy) {
    update.auto_revert = true;
}

/// Asks, and waits for the answer.
fn ask(sim: &mut Sim, what: impl Into<Request>) -> Result<Option<Reply>, Violation> {
    let request = sim.ask(what);
    sim.run(Span::secs(5))?;
    Ok(sim.reply(request).cloned())
}

fn id(sim: &Sim) -> DeploymentId {
    sim.rollout("web")
        .map(|rollout| rollout.id)
        .unwrap_or_default()
}

fn is(sim: &Sim, status: DeploymentStatus) -> bool {
    sim.rollout("web")
        .is_some_and(|rollout| rollout.status == status)
}

/// How many wanted allocations run each version, the oldest first.
fn running(sim: &Sim) -> Vec<(u64, usize)> {
    let mut found: Vec<(u64, usize)> = Vec::new();
    for alloc in sim.allocs("web") {
        let record = alloc.record();
        if record.is_terminal() {
            continue;
        }
        match found
            .iter_mut()
            .find(|(version, _)| *version == record.job_version)
        {
            Some((_, count)) => *count += 1,
            None => found.push((record.job_version, 1)),
        }
    }
    found.sort_unstable();
    found
}

fn expect_running(sim: &Sim, wanted: &[(u64, usize)]) -> Scenario {
    let there = running(sim);
    sim.expect_that(there == wanted, &format!("{wanted:?}, not {there:?}"))
}

/// What the job waits for says this.
fn expect_explained(sim: &Sim, words: &str) -> Scenario {
    let now = sim.world.now();
    let view = sim.view();
    let job = view.and_then(|view| view.explain_job(now, &JobKey::local("web")));
    let waiting = job.map(|job| job.waiting).unwrap_or_default();
    let says = waiting.iter().any(|one| one.what == words);
    sim.expect_that(says, &format!("{words}, not {waiting:?}"))
}

fn promote(sim: &Sim) -> PromoteDeployment {
    PromoteDeployment {
        deployment: id(sim),
        groups: Vec::new(),
    }
}

/// The first version runs, and is stable.
fn first(sim: &mut Sim, job: &Job) -> Scenario {
    sim.register(job);
    sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))
}

#[test]
fn canary_runs_beside_old_version_until_it_is_promoted() {
    for_seeds(30, |sim| {
        first(sim, &web(0, 3, one_canary))?;
        sim.register(&web(1, 3, one_canary));
        sim.run(LONG)?;
        expect_running(sim, &[(0, 3), (1, 1)])?;
        sim.expect_that(is(sim, DeploymentStatus::Running), "it waits for people")?;
        expect_explained(sim, "somebody to promote its canaries, which are healthy")?;
        ask(sim, promote(sim))?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 3)])?;
        let again = ask(sim, promote(sim))?;
        let words = "can't promote terminal deployment".to_owned();
        let refused = again == Some(Reply::Refused(Refusal::Conflict(words)));
        sim.expect_that(refused, "it is over")?;
        sim.converge()
    });
}

#[test]
fn unhealthy_canary_is_not_promoted() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, one_canary))?;
        sim.register(&web(1, 2, one_canary));
        sim.until(SOON, |sim| running(sim) == [(0, 2), (1, 1)])?;
        let early = ask(sim, promote(sim))?;
        let words = "Task group \"g\" has 0/1 healthy allocations".to_owned();
        let refused = early == Some(Reply::Refused(Refusal::Conflict(words)));
        sim.expect_that(refused, &format!("{early:?}"))?;
        sim.converge()
    });
}

#[test]
fn healthy_canary_is_promoted_by_itself_if_the_job_says_so() {
    for_seeds(20, |sim| {
        let auto = |update: &mut UpdateStrategy| (update.canary, update.auto_promote) = (1, true);
        first(sim, &web(0, 2, auto))?;
        sim.register(&web(1, 2, auto));
        sim.until(LONG, |sim| sim.version("web") == Some(1))?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 2)])?;
        sim.converge()
    });
}

#[test]
fn as_many_canaries_as_copies_take_over_at_once() {
    for_seeds(20, |sim| {
        let blue_green = |update: &mut UpdateStrategy| update.canary = 2;
        for round in 0..3 {
            sim.register(&web(round, 2, blue_green));
            sim.run(LONG)?;
            if round > 0 {
                expect_running(sim, &[(round - 1, 2), (round, 2)])?;
                let starts = sim.world.starts_of("main");
                ask(sim, promote(sim))?;
                sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
                let same = sim.world.starts_of("main") == starts;
                sim.expect_that(same, "what was proved goes on running")?;
            }
            expect_running(sim, &[(round, 2)])?;
        }
        sim.converge()
    });
}

#[test]
fn failed_canary_leaves_old_version_alone() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, one_canary))?;
        sim.register(&broken(2, one_canary));
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Failed))?;
        sim.run(LONG)?;
        expect_running(sim, &[(0, 2)])?;
        sim.expect_that(sim.version("web") == Some(1), "nothing comes back")?;
        sim.converge()
    });
}

/// The copy beside a canary goes on as it did, also when nothing is left of that.
#[test]
fn collected_canary_leaves_old_copy_its_replacement() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, one_canary))?;
        sim.register(&broken(2, one_canary));
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Failed))?;
        sim.run(LONG)?;
        ask(sim, CollectGarbage)?;
        sim.run(LONG)?;
        let allocs = sim.allocs("web").into_iter().map(|alloc| alloc.record().id);
        for alloc in allocs.collect::<Vec<_>>() {
            let no_shutdown_delay = false;
            sim.ask(StopAlloc {
                alloc,
                no_shutdown_delay,
            });
        }
        sim.run(LONG)?;
        expect_running(sim, &[(0, 2)])?;
        sim.converge()
    });
}

/// A copy of the old version that ended for good stays away while canaries wait, also when it is removed.
#[test]
fn collected_old_copy_is_made_again_only_after_promotion() {
    for_seeds(20, |sim| {
        let fails_late = task("main").ends("60s", 1);
        let fails_late = fails_late.restarts(0, LONG, Span::secs(1), RestartMode::Fail);
        first(sim, &of(fails_late, 2, one_canary))?;
        sim.register(&web(1, 2, one_canary));
        sim.until(SOON, |sim| running(sim) == [(0, 2), (1, 1)])?;
        sim.run(LONG)?;
        expect_running(sim, &[(1, 1)])?;
        ask(sim, CollectGarbage)?;
        sim.run(LONG)?;
        expect_running(sim, &[(1, 1)])?;
        ask(sim, promote(sim))?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 2)])?;
        sim.converge()
    });
}

#[test]
fn failed_rollout_brings_last_stable_version_back_once() {
    for_seeds(30, |sim| {
        first(sim, &web(0, 2, reverts))?;
        sim.register(&broken(2, reverts));
        sim.until(LONG, |sim| sim.version("web") == Some(2))?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(2, 2)])?;
        let words = "Failed due to unhealthy allocations - rolling back to job version 0";
        let reported = sim.view().is_some_and(|view| {
            let mut all = view.deployments();
            all.any(|one| one.status == DeploymentStatus::Failed && one.description == words)
        });
        sim.expect_that(reported, "it says so")?;
        sim.converge()
    });
}

/// What comes back fails, too: nothing says anything else that is stable.
#[test]
fn stable_version_that_fails_does_not_come_back_again() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 1, reverts))?;
        sim.register(&web(1, 1, reverts));
        sim.until(LONG, |sim| sim.version("web") == Some(1))?;
        let deployment = id(sim);
        ask(sim, FailDeployment { deployment })?;
        sim.until(LONG, |sim| sim.version("web") == Some(2))?;
        let deployment = id(sim);
        ask(sim, FailDeployment { deployment })?;
        sim.run(LONG)?;
        sim.expect_that(sim.version("web") == Some(2), "it stays")?;
        sim.converge()
    });
}

#[test]
fn paused_rollout_goes_on_when_it_is_resumed() {
    for_seeds(30, |sim| {
        first(sim, &web(0, 3, |_| {}))?;
        sim.register(&web(1, 3, |_| {}));
        sim.until(LONG, |sim| sim.version("web") == Some(1))?;
        let deployment = id(sim);
        let pause = PauseDeployment {
            deployment,
            pause: true,
        };
        ask(sim, pause)?;
        let before = running(sim);
        sim.run(Span::secs(3600))?;
        expect_running(sim, &before)?;
        sim.expect_that(is(sim, DeploymentStatus::Paused), "it is paused")?;
        expect_explained(sim, "somebody to resume its deployment, which is paused")?;
        let resume = PauseDeployment {
            deployment,
            pause: false,
        };
        ask(sim, resume)?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 3)])?;
        sim.converge()
    });
}

#[test]
fn rollout_without_progress_fails_at_its_deadline() {
    for_seeds(10, |sim| {
        let manual = |update: &mut UpdateStrategy| {
            "manual".clone_into(&mut update.health_check);
            update.progress_deadline = Span::secs(600);
        };
        sim.register(&web(0, 1, manual));
        sim.run(Span::secs(590))?;
        sim.expect_that(is(sim, DeploymentStatus::Running), "there is time")?;
        sim.run(Span::secs(30))?;
        sim.expect_that(is(sim, DeploymentStatus::Failed), "the time is over")?;
        sim.converge()
    });
}

/// Copies that were made longer ago than the deadline, and are updated in place, get as much time as new ones: fewer
/// copies of an old job failed at once, and the rest was put back.
#[test]
fn rollout_of_old_allocs_in_place_has_time_for_progress() {
    for_seeds(10, |sim| {
        let short = |update: &mut UpdateStrategy| {
            update.min_healthy_time = Span::secs(5);
            update.healthy_deadline = Span::secs(20);
            update.progress_deadline = Span::secs(30);
            update.auto_revert = true;
        };
        sim.register(&web(0, 3, short));
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        sim.run(Span::secs(60))?;
        sim.register(&web(0, 2, short));
        sim.run(Span::secs(2))?;
        sim.expect_that(is(sim, DeploymentStatus::Running), "there is time")?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        sim.expect_that(sim.living("main") == 2, "two are left")?;
        sim.converge()
    });
}

/// The version that nothing needs a new start for excludes the node, and for longer than its deadline.
#[test]
fn rollout_in_place_that_waited_for_its_node_has_time_for_progress() {
    for_seeds(10, |sim| {
        let short = |update: &mut UpdateStrategy| {
            update.min_healthy_time = Span::secs(5);
            update.healthy_deadline = Span::secs(20);
            update.progress_deadline = Span::secs(30);
            update.auto_revert = true;
        };
        first(sim, &web(0, 1, short))?;
        let mut excluding = web(0, 1, short);
        excluding.constraints.push(Constraint {
            target: "${meta.row}".to_owned(),
            value: "7".to_owned(),
            operand: "=".to_owned(),
        });
        sim.register(&excluding);
        sim.run(Span::secs(100))?;
        expect_running(sim, &[(0, 1)])?;
        let meta = [("row".to_owned(), Some("7".to_owned()))].into();
        sim.ask(ApplyNodeMeta { meta });
        sim.until(LONG, |sim| !is(sim, DeploymentStatus::Running))?;
        sim.expect_that(is(sim, DeploymentStatus::Successful), "there is time")?;
        expect_running(sim, &[(1, 1)])?;
        sim.expect_that(sim.living("main") == 1, "nothing was started anew")?;
        sim.converge()
    });
}

#[test]
fn health_set_by_hand_counts() {
    for_seeds(10, |sim| {
        let manual = |update: &mut UpdateStrategy| "manual".clone_into(&mut update.health_check);
        sim.register(&web(0, 1, manual));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let deployment = id(sim);
        let allocs = sim.allocs("web");
        let healthy = allocs.iter().map(|alloc| alloc.record().id).collect();
        let unhealthy = Vec::new();
        let asked = SetAllocHealth {
            deployment,
            healthy,
            unhealthy,
        };
        ask(sim, asked)?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        sim.converge()
    });
}

#[test]
fn canaries_survive_crash_at_each_step() {
    let crashes = each_crash(11, |sim| {
        sim.register(&web(0, 2, one_canary));
        sim.run(LONG)?;
        sim.register(&web(1, 2, one_canary));
        sim.run(LONG)?;
        expect_running(sim, &[(0, 2), (1, 1)])?;
        ask(sim, promote(sim))?;
        sim.run(LONG)?;
        expect_running(sim, &[(1, 2)])?;
        sim.converge()
    });
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn rollback_survives_crash_at_each_step() {
    let crashes = each_crash(12, |sim| {
        sim.register(&web(0, 1, reverts));
        sim.run(LONG)?;
        sim.register(&broken(1, reverts));
        sim.run(LONG)?;
        sim.expect_that(sim.version("web") == Some(2), "once, and not twice")?;
        expect_running(sim, &[(2, 1)])?;
        sim.converge()
    });
    assert!(crashes > 20, "{crashes}");
}

/// Canaries that wait for somebody need not hurry, and what follows their promotion has time again.
#[test]
fn canaries_promoted_after_the_progress_deadline_have_time_again() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, one_canary))?;
        sim.register(&web(1, 2, one_canary));
        sim.run(Span::secs(1800))?;
        ask(sim, promote(sim))?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 2)])?;
        sim.converge()
    });
}

#[test]
fn deployment_of_a_stopped_job_is_cancelled() {
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, |_| {}))?;
        sim.register(&web(1, 2, |_| {}));
        sim.run(Span::secs(3))?;
        sim.deregister("web", false);
        sim.run(SOON)?;
        sim.expect_that(is(sim, DeploymentStatus::Cancelled), "it is over")?;
        sim.converge()
    });
}

/// A copy that was proved and then stopped counts no more: its replacement has to be proved, too.
#[test]
fn rollout_waits_for_the_replacement_of_a_copy_that_was_stopped() {
    let proved = |sim: &Sim| {
        let allocs = sim.allocs("web");
        let records = allocs.iter().map(|alloc| alloc.record());
        let mut proved = records.filter(|alloc| {
            alloc.job_version == 1 && alloc.health.is_some_and(|health| health.healthy)
        });
        proved.next().map(|alloc| alloc.id)
    };
    for_seeds(20, |sim| {
        first(sim, &web(0, 2, |_| {}))?;
        sim.register(&web(1, 2, |_| {}));
        sim.until(LONG, |sim| proved(sim).is_some())?;
        let alloc = proved(sim).unwrap_or_default();
        let no_shutdown_delay = false;
        ask(
            sim,
            StopAlloc {
                alloc,
                no_shutdown_delay,
            },
        )?;
        sim.until(LONG, |sim| is(sim, DeploymentStatus::Successful))?;
        expect_running(sim, &[(1, 2)])?;
        let allocs = sim.allocs("web");
        let wanted = allocs.iter().filter(|alloc| !alloc.record().is_terminal());
        let healthy = |alloc: &&&AllocRunner| alloc.record().health.is_some_and(|it| it.healthy);
        let healthy = wanted.filter(healthy).count();
        sim.expect_that(healthy == 2, "both copies are proved")?;
        sim.converge()
    });
}
