//! What was acknowledged to people holds; secrets are not shown to them.

use std::collections::BTreeSet;

use drover_core::agent::requests::Evaluate;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::JobType;
use drover_core::model::task::Task;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, PRIVATE_NETWORK, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, batch, changed, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, for_seeds, for_seeds_keeping};

/// The agent dies the moment after it answered.
#[test]
fn acknowledged_request_survives_crash() {
    for_seeds(100, |sim| {
        let web = service("web", [task("main")]);
        let asked = sim.register(&web);
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        sim.restart()?;
        let known = sim
            .view()
            .is_some_and(|view| view.job(&JobKey::local("web")).is_some());
        sim.expect_that(known, "it is known")?;
        let asked = sim.deregister("web", false);
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 0, "it is stopped")
    });
}

#[test]
fn update_reaches_task_before_start() {
    for_seeds(100, |sim| {
        let old = service("web", [task("main").with("kill_after", "20s")]);
        sim.register(&old);
        sim.until(SOON, |sim| {
            sim.task("web", "main")
                .is_some_and(|task| matches!(task.phase(), Phase::Preparing(_)))
        })?;
        let new = changed(&old, |group| {
            group.tasks[0].kill_timeout = Some(Span::secs(1))
        });
        sim.register(&new);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let taken = sim
            .task("web", "main")
            .is_some_and(|task| task.spec().job().version == 1);
        sim.expect_that(taken, "the new version is what it runs")?;
        sim.run(Span::secs(5))?;
        sim.restart()?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let kept = sim
            .task("web", "main")
            .is_some_and(|task| task.spec().job().version == 1);
        sim.expect_that(kept, "also after a restart of the agent")?;
        sim.converge()
    });
}

/// However many versions came after it, what runs is explained by the version that it runs.
#[test]
fn job_version_in_use_is_kept() {
    for_seeds(30, |sim| {
        let mut web = service("web", [task("main")]);
        web.task_groups[0] = web.task_groups[0].clone().count(2).rolls(1);
        sim.register(&web);
        sim.until(SOON, |sim| sim.living("main") == 2)?;
        sim.driver(false);
        for version in 0..12 {
            web = changed(&web, |group| {
                group.tasks[0]
                    .env
                    .insert("V".to_owned(), version.to_string());
            });
            sim.register(&web);
            sim.run(Span::secs(1))?;
        }
        sim.restart()?;
        sim.run(Span::secs(1))?;
        sim.expect_that(sim.allocs("web").len() >= 2, "both are known")?;
        sim.converge()
    });
}

#[test]
fn vanished_driver_attributes_are_removed() {
    for_seeds(5, |sim| {
        let of_driver = |sim: &Sim| -> Vec<String> {
            let view = sim.view();
            let node = view.iter().flat_map(|view| view.node().attributes.keys());
            node.filter(|key| key.starts_with("driver.mock_driver."))
                .cloned()
                .collect()
        };
        sim.run(Span::secs(2))?;
        let first = of_driver(sim);
        sim.driver(true);
        sim.run(Span::secs(2))?;
        let second = of_driver(sim);
        sim.expect_that(first.len() == 1 && second.len() == 1, "one at a time")?;
        sim.expect_that(first != second, "another one")
    });
}

/// Of ended allocations as many are kept as was asked for, and those are the latest.
#[test]
fn gc_keeps_configured_number_of_ended_allocs() {
    for_seeds_keeping(60, 2, |sim| {
        for number in 0..6 {
            let id = format!("sum{number}");
            sim.register(&batch(&id, [task("main").ends("3s", 0)]));
            if number == 2 {
                // What cannot be removed at once goes later; no other goes for it.
                sim.until(SOON, |sim| sim.runs(&id, "main"))?;
                sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000).budget(1);
            }
            sim.until(SOON, |sim| sim.all_over(&id, ClientStatus::Complete))?;
            sim.run(Span::secs(3))?;
        }
        sim.run(Span::secs(3600))?;
        let kept: Vec<usize> = (0..6)
            .map(|number| sim.allocs(&format!("sum{number}")).len())
            .collect();
        sim.expect_that(kept == [0, 0, 0, 0, 1, 1], &format!("{kept:?}"))
    });
}

#[test]
fn ports_of_one_group_differ() {
    for_seeds(60, |sim| {
        let group = group("g", [task("main")]).count(4);
        let group = group.dynamic_port("http").dynamic_port("admin");
        sim.register(&job("web", JobType::Service, [group]));
        sim.until(SOON, |sim| sim.living("main") == 4)?;
        let ports: Vec<u16> = sim
            .allocs("web")
            .iter()
            .flat_map(|alloc| alloc.record().ports.iter().map(|port| port.value))
            .collect();
        let different: BTreeSet<u16> = ports.iter().copied().collect();
        sim.expect_that(ports.len() == 8, "two ports each")?;
        sim.expect_that(different.len() == 8, &format!("{ports:?}"))
    });
}

/// Of that network of the host half of the ports are kept for others.
#[test]
fn reserved_ports_of_a_host_network_are_not_assigned() {
    for_seeds(60, |sim| {
        let group = group("g", [task("main")]).dynamic_port_in("http", PRIVATE_NETWORK);
        sim.register(&job("web", JobType::Service, [group.count(6)]));
        sim.until(SOON, |sim| sim.living("main") == 5)?;
        sim.run(SOON)?;
        sim.expect_that(sim.allocs("web").len() == 5, "there is no sixth port")?;
        let allocs = sim.allocs("web").into_iter();
        let ports = allocs.flat_map(|alloc| alloc.record().ports.iter().map(|port| port.value));
        let ports: BTreeSet<u16> = ports.collect();
        let right: BTreeSet<u16> = (20_005..=20_009).collect();
        sim.expect_that(ports == right, &format!("{ports:?}"))
    });
}

const SECRET: &str = "correct horse battery staple";

/// A task that has the secret in its environment, and another option of its driver that refers to it.
fn with_secret(task: Task, option: &str) -> Task {
    let mut task = task.with(option, "${TOKEN}");
    task.env.insert("TOKEN".to_owned(), SECRET.to_owned());
    task
}

/// Runs each task until it failed, and looks at what is told of it.
fn fail_without_the_secret(sim: &mut Sim, tasks: &[Task]) -> Scenario {
    for task in tasks {
        let group = group("g", [task.clone()]).never_again();
        sim.register(&job(&task.name, JobType::Batch, [group]));
    }
    sim.until(Span::secs(600), |sim| {
        let mut tasks = tasks.iter();
        tasks.all(|task| sim.all_over(&task.name, ClientStatus::Failed))
    })?;
    for alloc in tasks.iter().flat_map(|task| sim.allocs(&task.name)) {
        for event in alloc.tasks().iter().flat_map(|task| &task.state().events) {
            let mentioned = event.display_message.contains(SECRET)
                || event.details.values().any(|value| value.contains(SECRET));
            sim.expect_that(!mentioned, &format!("{event:?}"))?;
        }
    }
    Ok(())
}

/// What a task's environment holds is for the task alone, and for the driver that is asked to start it.
#[test]
fn events_contain_no_secrets() {
    for_seeds(40, |sim| {
        let loud = with_secret(task("loud").with("start_error", "no"), "stdout_string");
        let quiet = with_secret(task("quiet").ends("3s", 1), "stdout_string");
        fail_without_the_secret(sim, &[loud, quiet])?;
        let mut given = sim.world.processes();
        sim.expect_that(given.clone().count() >= 2, "both were tried")?;
        let all = given.all(|(_, process)| process.config.command.stdout.text == SECRET);
        sim.expect_that(all, "the driver was given it")
    });
}

/// Whoever refers to a secret where something else is wanted is told where, and not what it is.
#[test]
fn secret_in_place_of_a_number_is_not_quoted() {
    for_seeds(40, |sim| {
        let wrong = with_secret(task("wrong"), "exit_code");
        let late = with_secret(task("late"), "run_for");
        fail_without_the_secret(sim, &[wrong, late])?;
        for (task, option) in [("wrong", "exit_code"), ("late", "run_for")] {
            let state = sim.task(task, task).map(|task| task.state());
            let mut events = state.into_iter().flat_map(|state| &state.events);
            let mentioned = events.any(|event| event.display_message.contains(option));
            sim.expect_that(mentioned, &format!("{option}: {state:?}"))?;
        }
        Ok(())
    });
}

/// Whoever asks for what cannot be done is told so, and nothing happens.
#[test]
fn request_for_unknown_object_is_refused() {
    for_seeds(20, |sim| {
        let asked = sim.ask(Evaluate {
            job: JobKey::local("nobody"),
            force_reschedule: false,
        });
        sim.until(SOON, |sim| sim.reply(asked).is_some())?;
        let refused = matches!(sim.reply(asked), Some(Reply::Refused(_)));
        sim.expect_that(refused, "refused")?;
        sim.converge()
    });
}
