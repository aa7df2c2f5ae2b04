//! Jobs that are launched by the clock. Worlds begin on 2023-11-14 at 22:13:21 UTC.

use drover_core::agent::TimerName;
use drover_core::agent::requests::ForcePeriodic;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{JobKey, RequestId};
use drover_core::model::job::Job;
use drover_core::model::periodic::launch_of;
use drover_core::model::policy::{Missed, PeriodicConfig, RestartMode};
use drover_core::store::periodic::{Outcome, second_of};
use drover_core::time::Span;
use drover_io_sim::zones::RESTLESS;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{EVER, GroupExt, TaskExt, batch, group, periodic, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// 22:15:00 on the first day, in seconds since 1970.
const QUARTER_PAST: i64 = 1_700_000_100;
const MINUTE: Span = Span::secs(60);
const HOUR: Span = Span::secs(3600);

/// At 22:15, 22:20 and so on, up to 22:55.
const EACH_FIVE: &str = "0 15-55/5 22 14 11 * 2023";
/// At 22:14:00, 22:14:20 and 22:14:40.
const THREE: &str = "*/20 14 22 14 11 * 2023";

fn cron(cron: &str, run_for: &str) -> Job {
    periodic(batch("cron", [task("main").ends(run_for, 0)]), cron)
}

fn with(mut job: Job, change: impl FnOnce(&mut PeriodicConfig)) -> Job {
    if let Some(periodic) = &mut job.periodic {
        change(periodic);
    }
    job
}

/// The jobs that the clock made, by their times.
fn launched(sim: &Sim) -> Vec<String> {
    let keys = sim.keys_of("cron");
    let children = keys.iter().skip(1);
    children.map(|key| key.id.to_string()).collect()
}

fn launch(time: i64) -> String {
    format!("cron/periodic-{time}")
}

fn outcome(sim: &Sim) -> Option<Outcome> {
    let view = sim.view()?;
    Some(view.periodic(&JobKey::local("cron"))?.last?.outcome)
}

fn reply(sim: &mut Sim, request: RequestId) -> Result<Reply, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    sim.reply(request)
        .cloned()
        .ok_or_else(|| Violation::new("scenario_expectation_holds", "a reply"))
}

fn force(sim: &mut Sim, job: &str) -> Result<Reply, Violation> {
    let job = JobKey::local(job);
    let request = sim.ask(ForcePeriodic { job });
    reply(sim, request)
}

#[test]
fn each_time_is_launched_once_and_parent_never_runs() {
    for_seeds(100, |sim| {
        sim.register(&cron("*/20 14-16 22 14 11 * 2023", "1s"));
        sim.run(Span::secs(38))?;
        sim.expect_that(launched(sim).is_empty(), "nothing before its time")?;
        sim.run(Span::secs(180))?;
        sim.expect_that(sim.world.starts_of("main") == 9, "nine times")?;
        sim.converge()
    });
}

#[test]
fn launches_survive_crash_at_every_step() {
    let crashes = each_crash(3, |sim| {
        sim.register(&cron(THREE, "1s"));
        sim.run(Span::secs(100))?;
        // Who crashed before it was registered asks again, when the first may be over.
        let times = launched(sim).len();
        sim.expect_that((2..=3).contains(&times), &format!("{times} launches"))?;
        sim.converge()
    });
    assert!(crashes > 20, "{crashes}");
}

/// However long the agent was away, one launch makes up for all that was missed.
#[test]
fn latest_missed_time_is_launched_after_restart() {
    for_seeds(60, |sim| {
        sim.register(&cron(EACH_FIVE, "1s"));
        sim.run(Span::secs(5))?;
        sim.goes_down(false, HOUR);
        sim.run(HOUR)?;
        sim.run(SOON)?;
        let latest = launch(QUARTER_PAST + 40 * 60);
        sim.expect_that(launched(sim) == [latest], "the latest alone")?;
        sim.converge()
    });
}

/// A time that is launched on time makes up for those that were missed, too.
#[test]
fn agent_that_returns_on_time_launches_that_time_alone() {
    for_seeds(60, |sim| {
        sim.register(&cron(EACH_FIVE, "1s"));
        sim.run(Span::secs(5))?;
        // At 22:25:02.
        let back = QUARTER_PAST + 10 * 60 + 2;
        let away = back - second_of(sim.world.now().wall);
        sim.goes_down(false, Span::secs(away));
        sim.run(Span::secs(away + 60))?;
        let alone = launch(QUARTER_PAST + 10 * 60);
        sim.expect_that(launched(sim) == [alone], &format!("{:?}", launched(sim)))?;
        sim.converge()
    });
}

#[test]
fn missed_times_are_skipped_where_job_says_so() {
    for_seeds(60, |sim| {
        let job = with(cron(EACH_FIVE, "1s"), |it| it.missed = Missed::Skip);
        sim.register(&job);
        sim.run(Span::secs(5))?;
        sim.goes_down(false, Span::secs(24 * 60));
        sim.run(Span::secs(25 * 60))?;
        sim.expect_that(launched(sim).is_empty(), "nothing")?;
        sim.expect_that(outcome(sim) == Some(Outcome::Missed), "it says so")?;
        sim.run(MINUTE)?;
        sim.run(MINUTE)?;
        sim.expect_that(launched(sim).len() == 1, "the next")?;
        sim.converge()
    });
}

/// Whoever sleeps until the next time is called back when the wall clock is set.
#[test]
fn clock_set_forwards_launches_latest_at_once() {
    for_seeds(60, |sim| {
        sim.register(&cron(EACH_FIVE, "1s"));
        sim.run(Span::secs(5))?;
        sim.world.scene.jump_wall(Span::secs(30 * 60));
        sim.run(Span::secs(10))?;
        let latest = launch(QUARTER_PAST + 25 * 60);
        sim.expect_that(launched(sim) == [latest], "the latest, at once")?;
        sim.converge()
    });
}

/// Times that the clock shows again are launched if they were not: a clock that was wrong for a moment costs
/// nothing.
#[test]
fn clock_set_back_launches_nothing_twice_and_forgets_nothing() {
    for_seeds(60, |sim| {
        sim.register(&cron(EACH_FIVE, "1s"));
        sim.run(Span::secs(2 * 60))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "the first")?;
        sim.world.scene.jump_wall(Span::secs(23 * 60));
        sim.run(Span::secs(30))?;
        sim.expect_that(
            sim.world.starts_of("main") == 2,
            "22:35, of those that were missed",
        )?;
        sim.world.scene.jump_wall(Span::secs(-24 * 60));
        sim.run(HOUR)?;
        // All of the nine, the second at 22:35 before the others.
        let starts = sim.world.starts_of("main");
        sim.expect_that(starts == 9, &format!("each once, not {starts}"))?;
        sim.converge()
    });
}

#[test]
fn launches_do_not_overlap_where_job_prohibits_it() {
    for_seeds(60, |sim| {
        let job = with(cron(EACH_FIVE, EVER), |it| it.prohibit_overlap = true);
        sim.register(&job);
        sim.run(Span::secs(12 * 60))?;
        sim.expect_that(launched(sim) == [launch(QUARTER_PAST)], "the first alone")?;
        sim.expect_that(outcome(sim) == Some(Outcome::Overlapping), "it says so")?;
        sim.deregister(&launch(QUARTER_PAST), true);
        sim.run(Span::secs(5 * 60))?;
        sim.expect_that(launched(sim).len() == 1, "the next")?;
        Ok(())
    });
}

/// A job that wants no copies is over at once, as in Nomad.
#[test]
fn launch_without_copies_holds_up_none_after_it() {
    for_seeds(20, |sim| {
        let mut job = with(cron(EACH_FIVE, "1s"), |it| it.prohibit_overlap = true);
        job.task_groups[0].count = Some(0);
        sim.register(&job);
        sim.run(Span::secs(12 * 60))?;
        let times = [0, 5, 10].map(|minutes| launch(QUARTER_PAST + minutes * 60));
        sim.expect_that(launched(sim) == times, &format!("{:?}", launched(sim)))?;
        sim.converge()
    });
}

/// A launch that failed is replaced in the very moment in which the next time comes: it is not dead. Random worlds
/// found this (seed 9007282).
#[test]
fn launch_that_is_to_be_replaced_now_holds_up_the_next() {
    for_seeds(60, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let mut failing = batch("cron", [task("main").ends("1s", 0)]);
        let group = failing.task_groups[0].clone();
        failing.task_groups[0] = group.reschedules(1000, Span::secs(10));
        let job = with(periodic(failing, "*/10 14-16 22 14 11 * 2023"), |it| {
            it.prohibit_overlap = true;
        });
        sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000);
        sim.register(&job);
        sim.run(Span::secs(150))?;
        sim.expect_that(launched(sim).len() == 1, "the first alone")
    });
}

/// A time that was skipped stays so, also for the next agent.
#[test]
fn overlapped_time_is_not_launched_after_restart() {
    for_seeds(60, |sim| {
        let job = with(cron(EACH_FIVE, EVER), |it| it.prohibit_overlap = true);
        sim.register(&job);
        sim.run(Span::secs(12 * 60))?;
        sim.deregister(&launch(QUARTER_PAST), true);
        sim.run(MINUTE)?;
        sim.restart()?;
        sim.run(MINUTE)?;
        sim.expect_that(launched(sim).is_empty(), "nothing between two times")
    });
}

/// A launch that failed and waits for its next start is not dead, and an agent that just started does not know of it
/// before its node is fingerprinted.
#[test]
fn time_that_comes_before_fingerprints_does_not_overlap_waiting_launch() {
    for_seeds(60, |sim| {
        let main = task("main").ends("1s", 1);
        let main = main.restarts(0, HOUR, Span::secs(1), RestartMode::Fail);
        let mut failing = batch("cron", []);
        failing.task_groups = vec![group("g", [main]).reschedules(10, HOUR)];
        let job = with(periodic(failing, EACH_FIVE), |it| {
            it.prohibit_overlap = true
        });
        sim.register(&job);
        sim.run(Span::secs(6 * 60))?;
        sim.expect_that(launched(sim) == [launch(QUARTER_PAST)], "it waits")?;
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000);
        sim.run(Span::secs(38))?;
        sim.restart()?;
        sim.run(Span::secs(2))?;
        sim.expect_that(launched(sim).len() == 1, "not before it is known")?;
        sim.run(MINUTE)?;
        sim.expect_that(launched(sim) == [launch(QUARTER_PAST)], "nor after that")?;
        sim.expect_that(outcome(sim) == Some(Outcome::Overlapping), "it says so")
    });
}

#[test]
fn stopped_job_is_launched_no_more_and_its_launches_run_on() {
    for_seeds(60, |sim| {
        sim.register(&cron(EACH_FIVE, EVER));
        sim.run(Span::secs(2 * 60))?;
        sim.deregister("cron", false);
        sim.run(Span::secs(10 * 60))?;
        sim.expect_that(sim.living("main") == 1, "the first runs, and no other")?;
        // What came while it was stopped is not made up for.
        sim.register(&cron(EACH_FIVE, EVER));
        sim.run(Span::secs(30))?;
        sim.expect_that(sim.living("main") == 1, "still")?;
        sim.run(Span::secs(5 * 60))?;
        sim.expect_that(sim.living("main") == 2, "at the next time")?;
        sim.deregister("cron", true);
        sim.run(SOON)?;
        sim.expect_that(sim.living("main") == 2, "they do not go with it")
    });
}

#[test]
fn disabled_job_is_not_launched() {
    for_seeds(20, |sim| {
        let job = with(cron(THREE, "1s"), |it| it.enabled = false);
        sim.register(&job);
        sim.run(Span::secs(100))?;
        sim.expect_that(launched(sim).is_empty(), "nothing")?;
        let refused = matches!(force(sim, "cron")?, Reply::Refused(Refusal::Conflict(_)));
        sim.expect_that(refused, "not by hand either")?;
        sim.converge()
    });
}

#[test]
fn forced_launch_overlaps_and_is_one_more() {
    for_seeds(60, |sim| {
        let job = with(cron(EACH_FIVE, EVER), |it| it.prohibit_overlap = true);
        sim.register(&job);
        sim.register(&batch("plain", [task("main").ends("1s", 0)]));
        sim.run(Span::secs(10))?;
        for expected in [1, 2] {
            let made = matches!(force(sim, "cron")?, Reply::Dispatched { .. });
            sim.expect_that(made && launched(sim).len() == expected, "one more")?;
        }
        for (job, words) in [("plain", "non-periodic"), ("nobody", "not found")] {
            let reply = format!("{:?}", force(sim, job)?);
            sim.expect_that(reply.contains(words), &reply)?;
        }
        Ok(())
    });
}

/// Launches of one second are in the order in which they were asked for, and take no time of the job from the clock.
#[test]
fn launch_forced_in_the_same_second_bears_a_later_one() {
    let forced = |sim: &mut Sim| {
        let job = || JobKey::local("cron");
        let asked = [(); 3].map(|()| sim.ask(ForcePeriodic { job: job() }));
        let mut times = Vec::new();
        for request in asked {
            let Reply::Dispatched { job, .. } = reply(sim, request)? else {
                continue;
            };
            times.push(launch_of("cron", &job.id).unwrap_or_default());
        }
        Ok::<Vec<i64>, Violation>(times)
    };
    for_seeds(60, |sim| {
        // Asked for at 22:13:59.
        sim.register(&cron("0 14 22 14 11 * 2023", "1s"));
        sim.run(Span::secs(30))?;
        let now = |sim: &Sim| second_of(sim.world.now().wall);
        while now(sim) < QUARTER_PAST - 61 {
            sim.run(Span::millis(100))?;
        }
        let second = now(sim);
        let times = forced(sim)?;
        let expected = [second, QUARTER_PAST - 59, QUARTER_PAST - 58];
        sim.expect_that(times == expected, &format!("{times:?} at {second}"))?;
        sim.run(MINUTE)?;
        let by_clock = launched(sim).contains(&launch(QUARTER_PAST - 60));
        sim.expect_that(by_clock, "its time comes all the same")?;
        sim.expect_that(sim.world.starts_of("main") == 4, "four launches")?;
        sim.converge()
    });
    // Every second is a time.
    for_seeds(20, |sim| {
        sim.register(&cron("* * * * * * *", "1s"));
        sim.run(Span::secs(5))?;
        let times = forced(sim)?;
        let in_order = times.is_sorted_by(|before, after| before > after);
        sim.expect_that(times.len() == 3 && in_order, &format!("{times:?}"))?;
        Ok(())
    });
}

/// Nothing happens between two times.
#[test]
fn agent_sleeps_until_next_time() {
    for_seeds(20, |sim| {
        sim.register(&cron("0 0 3 15 11 * 2023", "1s"));
        sim.run(Span::secs(3000))?;
        let timer = sim.agent().and_then(|agent| agent.poll_timeout());
        let sleeps = match timer {
            Some((_, TimerName::Periodic(_) | TimerName::Machine | TimerName::Garbage)) => true,
            Some(_) | None => false,
        };
        sim.expect_that(sleeps, &format!("{timer:?}"))?;
        sim.run(Span::secs(5 * 3600))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "at three")?;
        sim.converge()
    });
}

/// A job whose zone nobody knows waits, and says so.
#[test]
fn job_waits_for_its_zone() {
    for_seeds(60, |sim| {
        let nowhere = with(cron(EACH_FIVE, "1s"), |it| {
            it.time_zone = "Sim/Nowhere".to_owned()
        });
        sim.register(&nowhere);
        sim.run(Span::secs(2 * 60))?;
        let key = JobKey::local("cron");
        let waits = sim
            .agent()
            .is_some_and(|agent| agent.pending().awaits_job(&key));
        sim.expect_that(waits && launched(sim).is_empty(), "it waits")?;
        sim.register(&with(nowhere, |it| it.time_zone = RESTLESS.to_owned()));
        sim.run(HOUR)?;
        sim.expect_that(
            sim.world.starts_of("main") > 0,
            "and is launched in another zone",
        )?;
        sim.converge()
    });
}

#[test]
fn zone_that_could_not_be_looked_up_is_asked_for_again() {
    for_seeds(30, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::FailProbe], 1000);
        sim.register(&with(cron(EACH_FIVE, "1s"), |it| {
            it.time_zone = RESTLESS.to_owned();
        }));
        sim.run(MINUTE)?;
        sim.world.scene.faults = Faults::none();
        sim.run(Span::secs(3 * 60))?;
        let waits = sim.seed() == BENIGN || launched(sim).is_empty();
        sim.expect_that(waits, "nobody knows the time there")?;
        sim.run(Span::secs(2 * 60))?;
        let missed = launch(QUARTER_PAST);
        sim.expect_that(launched(sim) == [missed], &format!("{:?}", launched(sim)))?;
        sim.converge()
    });
}

/// Zones are told of for some hours only, and their clocks are set.
#[test]
fn zone_is_followed_for_days() {
    for_seeds(10, |sim| {
        let job = with(cron("0 30 */3 14-16 11 * 2023", "1s"), |it| {
            it.time_zone = RESTLESS.to_owned();
        });
        sim.register(&job);
        sim.run(Span::secs(30 * 3600))?;
        let starts = sim.world.starts_of("main");
        sim.expect_that((8..=20).contains(&starts), &format!("{starts} launches"))
    });
}

/// However many are launched, only so many of those that are over are kept.
#[test]
fn finished_launches_are_forgotten() {
    for_seeds(10, |sim| {
        sim.register(&cron(EACH_FIVE, "1s"));
        sim.run(HOUR)?;
        sim.expect_that(sim.world.starts_of("main") == 9, "nine times")?;
        let kept = sim.config().kept_children;
        sim.until(HOUR, |sim| launched(sim).len() == kept)?;
        sim.converge()
    });
}
