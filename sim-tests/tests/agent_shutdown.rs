//! How an agent and a group end: what is taken back, what is saved at once, and who is answered.

use drover_core::agent::requests::Register;
use drover_core::agent::{Agent, Input, TimerName};
use drover_core::config::Config;
use drover_core::effect::{Effect, Refusal, Reply, StoreEffect};
use drover_core::ids::RequestId;
use drover_core::input::{ShutdownMode, StoreInput};
use drover_core::model::alloc::ClientStatus;
use drover_core::store::{CommitId, Saved};
use drover_core::task::runner::Phase;
use drover_core::time::{Instant, Now, Span};
use drover_io_sim::{Fault, Faults, node};
use drover_sim_tests::build::{arc, service, task};
use drover_sim_tests::for_seeds;
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};

fn new_agent() -> Agent {
    let config = Config::new(7, node(), "/alloc");
    Agent::restore(config, Saved::default(), Now::default())
}

fn at(millis: i64) -> Now {
    Now {
        at: Instant(0) + Span::millis(millis),
        ..Now::default()
    }
}

fn effects(agent: &mut Agent) -> Vec<Effect> {
    core::iter::from_fn(|| agent.poll_effect()).collect()
}

fn commits(effects: &[Effect]) -> Vec<CommitId> {
    let commit = |effect: &Effect| match effect {
        Effect::Store(StoreEffect::Commit(id, _)) => Some(*id),
        _ => None,
    };
    effects.iter().filter_map(commit).collect()
}

/// Lets every commit succeed until there is none left.
fn save_all(agent: &mut Agent, now: Now, mut open: Vec<Effect>) -> Vec<Effect> {
    let mut all = Vec::new();
    while !open.is_empty() {
        let ids = commits(&open);
        all.append(&mut open);
        for id in ids {
            agent.handle(now, Input::Store(StoreInput::Saved(id)));
            open.extend(effects(agent));
        }
    }
    all
}

/// The record of a node is a change that nothing waits for.
#[test]
fn shutdown_saves_open_changes_at_once() {
    let mut agent = new_agent();
    let lazy = agent.poll_timeout().map(|(_, name)| name);
    assert_eq!(lazy, Some(TimerName::Store), "the change may wait");
    assert_eq!(commits(&effects(&mut agent)), []);
    agent.handle(at(1), Input::Shutdown(ShutdownMode::StopTasks));
    let emitted = effects(&mut agent);
    assert_eq!(commits(&emitted).len(), 1, "{emitted:?}");
    let last = save_all(&mut agent, at(1), emitted);
    assert!(last.contains(&Effect::Stopped), "{last:?}");
}

#[test]
fn stopped_agent_refuses_requests() {
    for mode in [ShutdownMode::StopTasks, ShutdownMode::KeepTasks] {
        let mut agent = new_agent();
        assert_eq!(agent.view().shutdown(), None);
        agent.handle(at(1), Input::Shutdown(mode));
        assert_eq!(agent.view().shutdown(), Some(mode));
        let open = effects(&mut agent);
        save_all(&mut agent, at(1), open);
        assert!(agent.view().stopped());
        assert_eq!(agent.poll_timeout(), None);
        let register = Register {
            job: arc(&service("web", [task("main")])),
            expect_index: None,
            submission: None,
        };
        agent.handle(at(2), Input::Request(RequestId(5), register.into()));
        let refused = Reply::Refused(Refusal::Conflict("the agent is shutting down".to_owned()));
        let answer = Effect::Reply(RequestId(5), refused);
        assert_eq!(effects(&mut agent), [answer]);
        agent.handle(at(3), Input::Shutdown(ShutdownMode::StopTasks));
        assert_eq!(effects(&mut agent), []);
        assert_eq!(agent.view().shutdown(), Some(mode), "it listens to nobody");
    }
}

/// What could not be garbage-collected is left to the next agent: the one that ended tries nothing more.
#[test]
fn stopped_agent_has_no_timers_and_no_writes() {
    for_seeds(50, |sim| {
        // Seed 0 is the benign world: nothing goes wrong in it.
        if sim.seed() == BENIGN {
            return sim.converge();
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangDestroy], 1000).budget(10);
        sim.register(&service("web", [task("main")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.shutdown(ShutdownMode::StopTasks);
        sim.until(Span::secs(600), |sim| sim.stopped)?;
        let remains = sim
            .task("web", "main")
            .is_some_and(|task| task.has_remains() && task.deadline().is_some());
        // Seed 0 is the world in which nothing goes wrong.
        sim.expect_that(remains || sim.seed() == BENIGN, "something is left")?;
        let commits = sim.world.disk.commits;
        let request = sim.deregister("web", true);
        sim.run(Span::secs(3600))?;
        let refused = matches!(sim.reply(request), Some(Reply::Refused(_)));
        sim.expect_that(refused, "refused")?;
        let quiet = sim
            .agent()
            .is_some_and(|agent| agent.poll_timeout().is_none());
        sim.expect_that(quiet && sim.world.disk.commits == commits, "nothing more")?;
        sim.converge()
    });
}

/// While its group waits out the shutdown delay, a task whose start was decided and not saved is
/// not started any more.
#[test]
fn held_start_is_cancelled_at_group_stop() {
    for_seeds(100, |sim| {
        let mut web = service("web", [task("main")]);
        web.task_groups[0].shutdown_delay = Some(Span::secs(20));
        sim.register(&web);
        sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Preparing(_)))
        })?;
        sim.world.disk.full = true;
        let held = sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Starting(_)))
        });
        held?;
        sim.deregister("web", false);
        sim.run(Span::secs(2))?;
        sim.world.disk.full = false;
        sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
        sim.expect_that(sim.world.starts_of("main") == 0, "no start")?;
        sim.converge()
    });
}
