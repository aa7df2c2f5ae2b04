//! Exec sessions: they open only in tasks that run, are bounded, and end with their launch.

use drover_core::agent::requests::{
    MAX_SESSIONS_OF_ALLOC, OpenSession, RestartScope, SessionCommand,
};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::RequestId;
use drover_core::model::task::{Task, TaskAction};
use drover_core::task::runner::TaskRunner;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

fn started(sim: &mut Sim, main: Task) -> Result<(), Violation> {
    sim.register(&service("web", [main]));
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

fn open_in(sim: &mut Sim, task: &str, run: SessionCommand) -> Option<RequestId> {
    let alloc = sim.live("web").or_else(|| sim.allocs("web").pop())?;
    let (alloc, session) = (alloc.record().id, sim.next_session());
    Some(sim.ask(OpenSession {
        session,
        alloc,
        task: task.into(),
        run,
        tty: true,
    }))
}

fn shell() -> SessionCommand {
    SessionCommand::Command(vec!["/bin/sh".to_owned()])
}

fn open(sim: &mut Sim) -> Option<RequestId> {
    open_in(sim, "main", shell())
}

fn sessions(sim: &Sim) -> usize {
    let task = sim.task("web", "main");
    task.map_or(0, TaskRunner::sessions)
}

fn is_open(sim: &Sim, request: Option<RequestId>) -> bool {
    let reply = request.and_then(|request| sim.reply(request));
    matches!(reply, Some(Reply::Done { .. }))
}

fn refusal(sim: &Sim, request: Option<RequestId>) -> Option<&Refusal> {
    match request.and_then(|request| sim.reply(request)) {
        Some(Reply::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

#[test]
fn session_opens_and_is_forgotten_when_it_ends() {
    for_seeds(100, |sim| {
        started(sim, task("main"))?;
        let asked = open(sim);
        sim.until(SOON, |sim| is_open(sim, asked))?;
        sim.converge()?;
        sim.expect_that(sessions(sim) == 0, "nothing is held")
    });
}

#[test]
fn stopped_task_takes_its_sessions_along() {
    for_seeds(100, |sim| {
        started(sim, task("main"))?;
        open(sim);
        open(sim);
        sim.stop_alloc("web");
        sim.until(SOON, |sim| sim.allocs("web")[0].record().finished)?;
        let first = sim.allocs("web")[0].task(&"main".into());
        let held = first.map_or(0, TaskRunner::sessions);
        sim.expect_that(held == 0, "nothing is held")?;
        sim.converge()
    });
}

#[test]
fn restarted_task_takes_its_sessions_along() {
    for_seeds(100, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangSession], 500);
        started(sim, task("main"))?;
        let asked = open(sim);
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(SOON, |sim| sim.world.starts_of("main") == 2)?;
        sim.until(SOON, |sim| {
            is_open(sim, asked) || refusal(sim, asked).is_some()
        })?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_a_session_leaves_none() {
    let steps = each_crash(BENIGN, |sim| {
        started(sim, task("main"))?;
        open(sim);
        sim.run(SOON)?;
        sim.expect_that(sessions(sim) == 0, "nothing is held")?;
        sim.converge()?;
        sim.expect_that(sim.world.starts_of("main") == 1, "the task goes on")?;
        if sim.crash_at.is_some() {
            // It was dead after each step of the story, and whoever asks now is not to be disturbed.
            return Ok(());
        }
        // The last crash may have been just now.
        sim.run(SOON)?;
        let again = open(sim);
        sim.until(SOON, |sim| is_open(sim, again))
    });
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn session_that_hangs_is_refused_in_time() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangSession], 1000);
        started(sim, task("main"))?;
        let asked = open(sim);
        if sim.seed() == BENIGN {
            // In the world without any trouble it opens.
            sim.until(SOON, |sim| is_open(sim, asked))?;
            return sim.converge();
        }
        sim.until(SOON, |sim| refusal(sim, asked).is_some())?;
        sim.expect_that(sessions(sim) == 0, "what is refused is not held")?;
        sim.converge()
    });
}

#[test]
fn session_without_running_task_or_command_is_refused() {
    for_seeds(20, |sim| {
        started(sim, task("main"))?;
        let unknown_task = open_in(sim, "zz", shell());
        let no_command = open_in(sim, "main", SessionCommand::Command(Vec::new()));
        let no_action = open_in(sim, "main", SessionCommand::Action("zz".to_owned()));
        sim.run(SOON)?;
        let conflict = |sim: &Sim, asked, why: &str| match refusal(sim, asked) {
            Some(Refusal::Conflict(words)) => words.contains(why),
            _ => false,
        };
        sim.expect_that(conflict(sim, unknown_task, "task not found"), "the task")?;
        sim.expect_that(conflict(sim, no_action, "not found"), "the action")?;
        let invalid = matches!(refusal(sim, no_command), Some(Refusal::Invalid(_)));
        sim.expect_that(invalid, "a command is needed")?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        let dead = open(sim);
        sim.run(SOON)?;
        sim.expect_that(conflict(sim, dead, "Task not running"), "it does not run")?;
        sim.converge()
    });
}

#[test]
fn action_runs_what_the_job_says() {
    for_seeds(20, |sim| {
        let mut main = task("main");
        main.actions.push(TaskAction {
            name: "hello".to_owned(),
            command: "/bin/echo".to_owned(),
            args: vec!["hi".to_owned()],
        });
        started(sim, main)?;
        let asked = open_in(sim, "main", SessionCommand::Action("hello".to_owned()));
        sim.until(SOON, |sim| is_open(sim, asked))?;
        sim.converge()
    });
}

#[test]
fn sessions_beyond_the_limit_are_refused() {
    for_seeds(20, |sim| {
        started(sim, task("main"))?;
        let many = 5 * MAX_SESSIONS_OF_ALLOC;
        let asked: Vec<_> = (0..many).map(|_| open(sim)).collect();
        sim.run(SOON)?;
        let refused = asked.iter().filter(|one| refusal(sim, **one).is_some());
        let refused = refused.count();
        sim.expect_that((1..many).contains(&refused), "some are refused")?;
        sim.converge()?;
        let again = open(sim);
        sim.until(SOON, |sim| is_open(sim, again))
    });
}
