//! Tokens of tasks: made before each start, made anew in time, and told as the job wants it.

use drover_core::agent::requests::{Restart, RestartScope};
use drover_core::model::event::EventType;
use drover_core::model::identity::RenewMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{TaskExt, changed, service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON, events, times_checked};
use drover_sim_tests::{for_seeds, for_seeds_in_cluster};

const HOUR: Span = Span::secs(3600);

/// How many tokens the task had, and whether the last one is good.
fn tokens(sim: &Sim) -> (u32, bool) {
    let all = sim.world.tokens();
    let token = all
        .iter()
        .flat_map(|(_, tokens)| tokens)
        .map(|(_, token)| *token)
        .last();
    let token = token.unwrap_or_default();
    let now = sim.world.now().at;
    (token.number, token.until.is_none_or(|until| until > now))
}

#[test]
fn token_is_renewed_at_half_ttl() {
    for_seeds(60, |sim| {
        sim.register(&service("web", [task("main").token(HOUR, RenewMode::Noop)]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(tokens(sim) == (1, true), "one for the start")?;
        for number in 2..6 {
            sim.run(Span::secs(1600))?;
            sim.expect_that(tokens(sim).0 == number - 1, "not too early")?;
            sim.until(Span::secs(250), |sim| tokens(sim) == (number, true))?;
        }
        sim.expect_that(sim.world.starts_of("main") == 1, "nobody is told")?;
        sim.converge()
    });
}

/// The old one is good for another time than the new version of the job wants.
#[test]
fn token_ttl_changed_in_place_renews_the_token_at_once() {
    for_seeds(60, |sim| {
        let old = service("web", [task("main").token(HOUR, RenewMode::Noop)]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(tokens(sim) == (1, true), "one for the start")?;
        sim.register(&changed(&old, |group| {
            let task = &mut group.tasks[0];
            let mut identities = task.identity.iter_mut().chain(&mut task.identities);
            if let Some(identity) = identities.next() {
                identity.ttl = Span(2 * HOUR.0);
            }
        }));
        sim.until(SOON, |sim| tokens(sim).0 == 2)?;
        sim.run(Span::secs(3000))?;
        sim.expect_that(tokens(sim) == (2, true), "it lives for two hours")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "no further start")?;
        sim.converge()
    });
}

#[test]
fn renewed_token_follows_change_mode() {
    for (mode, starts, signals) in [(RenewMode::Restart, 3, 0), (RenewMode::Signal, 1, 2)] {
        for_seeds(60, |sim| {
            sim.register(&service("web", [task("main").token(HOUR, mode)]));
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            // Two renewals; a start has a token of its own, too.
            sim.run(Span::secs(3750))?;
            let seen = sim.world.starts_of("main");
            sim.expect_that(seen == starts, &format!("{starts} starts, not {seen}"))?;
            let seen = events(sim, EventType::Signaling);
            sim.expect_that(seen == signals, &format!("{signals} signals, not {seen}"))?;
            sim.expect_that(tokens(sim).1, "it is good")?;
            sim.converge()
        });
    }
}

#[test]
fn failed_token_renewal_is_retried() {
    for_seeds(60, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.register(&service("web", [task("main").token(HOUR, RenewMode::Noop)]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000);
        sim.run(Span::secs(2400))?;
        sim.expect_that(tokens(sim) == (1, true), "none was made")?;
        sim.expect_that(sim.runs("web", "main"), "it runs on")?;
        sim.expect_that(events(sim, EventType::HookFailed) == 1, "it is said once")?;
        sim.world.scene.faults = Faults::none();
        sim.until(SOON, |sim| tokens(sim) == (2, true))?;
        sim.converge()
    });
}

/// An agent that was away for long sees to it at once, and one that was not goes on.
#[test]
fn token_renewal_continues_after_restart() {
    for (away, early) in [(Span::secs(600), true), (Span::secs(7200), false)] {
        for_seeds(40, |sim| {
            sim.register(&service("web", [task("main").token(HOUR, RenewMode::Noop)]));
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            sim.crash();
            sim.run(away)?;
            sim.restart()?;
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            sim.run(SOON)?;
            let seen = tokens(sim);
            let wanted = if early { (1, true) } else { (2, true) };
            sim.expect_that(seen == wanted, &format!("{wanted:?}, not {seen:?}"))?;
            sim.expect_that(sim.world.starts_of("main") == 1, "it ran on")?;
            sim.converge()
        });
    }
}

/// Servers that do not sign are asked less and less often: not each second by all that wait.
#[test]
fn servers_that_refuse_to_sign_are_asked_less_and_less_often() {
    for_seeds_in_cluster(40, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let web = service("web", [task("main").token(HOUR, RenewMode::Noop)]);
        sim.at_servers(|servers| servers.register(&web, true));
        sim.until(SOON, |sim| sim.living("main") == 1)?;
        // The agent knows it by then.
        sim.run(SOON)?;
        let alloc = sim.view().and_then(|view| view.allocs().next());
        let alloc = alloc.map(|alloc| alloc.record().id).unwrap_or_default();
        sim.world.scene.faults = Faults::only(&[Fault::RefuseSigning], 1000).budget(1000);
        let tasks = RestartScope::Running;
        sim.ask(Restart { alloc, tasks });
        sim.run(Span::secs(600))?;
        let asked = times_checked(sim, "refused_signing_is_repeated_in_time");
        sim.expect_that(asked > 10, &format!("asked {asked} times"))?;
        sim.converge()
    });
}

/// A token that is good for ever is made for starts alone.
#[test]
fn each_start_has_fresh_tokens() {
    for_seeds(60, |sim| {
        let main = task("main").token(Span::ZERO, RenewMode::Noop);
        sim.register(&service("web", [main]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.run(HOUR)?;
        sim.expect_that(tokens(sim) == (1, true), "one")?;
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.expect_that(tokens(sim) == (2, true), "another one")?;
        sim.converge()
    });
}
