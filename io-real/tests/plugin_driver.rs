//! Tasks of a driver that is a plugin, with real processes: each is answered and its end reported
//! once, whatever becomes of the plugin and of the agent.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugin_world.rs"]
mod plugin_world;
#[path = "common/plugins.rs"]
mod plugins;

use drover_core::ids::LaunchId;
use drover_core::input::DriverHealth;
use drover_core::input::{DriverInput, Found};
use drover_core::model::value::Value;
use drover_core::op::Failure;
use drover_core::time::Span;
use drover_io_real::driver::Driver;
use drover_io_real::plugin::{Exit, Plugin};
use plugin_world::{World, sh};
use plugins::{lives, soon};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const SLEEP: &str = "echo $$; exec sleep 1000";

async fn end(world: &World, plugin: Arc<Plugin>) {
    world.driver.detach();
    assert_eq!(soon(plugin.stop(false)).await, Exit::Code(0));
}

#[tokio::test]
async fn plugin_task_lifecycle_works() {
    let mut world = World::new();
    assert_eq!(world.driver.name(), "example_exec");
    let plugin = world.attach("").await;
    world
        .start(1, sh("echo out; echo err >&2; exit 3"))
        .await
        .unwrap();
    let exit = world.exit(1).await;
    assert_eq!((exit.code, exit.signal), (Some(3), 0));
    world.wrote("web.stdout.0", "out\n").await;
    world.wrote("web.stderr.0", "err\n").await;
    // Told already; found again until it is forgotten.
    assert_eq!(world.destroy(1).await, Ok(None));
    assert_eq!(world.collecting(), 0);
    world.begin_again();
    assert_eq!(world.recover(1).await, Found::Exited(exit));
    world.forget(1);
    while world.remembered() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.recover(1).await, Found::NeverStarted);
    end(&world, plugin).await;
}

#[tokio::test]
async fn driver_plugin_reports_fingerprint_and_stats() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let can = plugin.capabilities().await.unwrap();
    assert!(can.send_signals && can.exec && can.mounts);
    let mut health = plugin.driver_health().await.unwrap();
    let reported = soon(health.next()).await.unwrap().unwrap();
    assert_eq!(reported.health, DriverHealth::Healthy);
    let greeting = &reported.attributes["driver.example.greeting"];
    assert_eq!(greeting.string.as_deref(), Some("hello"));
    let mut events = plugin.task_events().await.unwrap();
    world.start(1, sh(SLEEP)).await.unwrap();
    let event = soon(events.next()).await.unwrap().unwrap();
    assert_eq!((&*event.task_name, &*event.message), ("web", "started"));
    let every = Duration::from_millis(5);
    let mut stats = plugin.task_stats(&event.task_id, every).await.unwrap();
    let used = soon(stats.next()).await.unwrap().unwrap();
    let memory = used.total.memory.unwrap();
    assert!(memory.rss.is_some() && memory.swap.is_none());
    assert_eq!(used.total.cpu, None);
    let status = plugin.inspect_task(&event.task_id).await.unwrap();
    assert_eq!((status.running, status.exit), (Some(true), None));
    let killed = world.destroy(1).await.unwrap().unwrap();
    assert_eq!((killed.code, killed.signal), (Some(137), 9));
    let unknown = plugin.inspect_task(&event.task_id).await.unwrap_err();
    assert!(unknown.is_unknown_task(), "{unknown:?}");
    end(&world, plugin).await;
}

/// Words of a driver are passed on, those about launches that are in its hands and no others.
#[tokio::test]
async fn driver_task_events_are_forwarded() {
    let mut world = World::new();
    // Who listens first hears it too: then the driver's own listener is there as well.
    let plugin = world.launch("").await;
    let mut events = plugin.task_events().await.unwrap();
    let plugin = world.use_it(plugin).await;
    let mut received = None;
    for launch in 1..=20 {
        world.ask_start(launch, sh("exit 0"));
        let event = soon(events.next()).await.unwrap().unwrap();
        assert_eq!(event.task_id, LaunchId(launch).to_string());
        // The stream may be open only by now.
        received = world.message_of(launch).await;
        if received.is_some() {
            break;
        }
    }
    assert_eq!(received.as_deref(), Some("started"));
    end(&world, plugin).await;
}

#[tokio::test]
async fn plugin_task_is_stopped_then_killed() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let polite = "trap 'exit 7' TERM; trap 'echo usr' USR1; echo $$; while :; do sleep 0.01; done";
    world.start(1, sh(polite)).await.unwrap();
    world.pid("web.stdout.0").await;
    assert_eq!(world.signal(1, "SIGUSR1").await, Ok(()));
    let refused = world.signal(1, "SIGNOPE").await.unwrap_err();
    assert!(refused.message.contains("no signal"), "{refused:?}");
    world.ask_stop(1, "SIGTERM", Span::secs(20));
    let mut reported = [world.receive().await, world.receive().await];
    reported.sort_by_key(|input| matches!(input, DriverInput::Exited { .. }));
    match &reported {
        [
            DriverInput::Stopped { result, .. },
            DriverInput::Exited { result: exit, .. },
        ] => {
            assert_eq!(*result, Ok(()));
            assert_eq!(exit.code, Some(7));
        }
        other => panic!("{other:?}"),
    }
    assert!(world.signal(1, "SIGUSR1").await.is_err());
    assert_eq!(world.destroy(1).await, Ok(None));
    // What was never started is destroyed already, and does not start any more.
    assert_eq!(world.destroy(2).await, Ok(None));
    assert!(!world.start(2, sh(SLEEP)).await.unwrap_err().recoverable);
    end(&world, plugin).await;
}

/// Its end may take as long as the job says, whatever other calls may take.
#[tokio::test]
async fn plugin_task_is_waited_for_until_its_grace_is_over() {
    let mut world = World::new();
    world.plugins.limits.call = Duration::from_secs(1);
    let plugin = world.attach("hang:SignalTask").await;
    // It ends when it may, or when the test is over.
    let dir = world.plugins.path().display();
    let ends = format!("until [ -e {dir}/end ] || [ ! -d {dir} ]; do sleep 0.01; done");
    let script = format!("trap 'echo asked; {ends}; exit 7' TERM; echo $$; {ends}");
    world.start(1, sh(&script)).await.unwrap();
    let pid = world.pid("web.stdout.0").await;
    world.ask_stop(1, "SIGTERM", Span::secs(60));
    let asked = format!("{pid}\nasked\n");
    world.wrote("web.stdout.0", &asked).await;
    // Another call that began later is given up before the task ends.
    let id = LaunchId(1).to_string();
    assert!(plugin.signal_task(&id, "SIGUSR1").await.is_err());
    fs::write(world.plugins.path().join("end"), "").unwrap();
    let mut reported = [world.receive().await, world.receive().await];
    reported.sort_by_key(|input| matches!(input, DriverInput::Exited { .. }));
    match &reported {
        [
            DriverInput::Stopped { result, .. },
            DriverInput::Exited { result: exit, .. },
        ] => assert_eq!((result, exit.code), (&Ok(()), Some(7))),
        other => panic!("{other:?}"),
    }
    world.destroy(1).await.unwrap();
    end(&world, plugin).await;
}

#[tokio::test]
async fn plugin_task_is_limited_to_its_largest_memory() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let mut config = sh("echo $EXAMPLE_MEMORY_LIMIT");
    (config.memory_reserved, config.memory_limit) = (256 << 20, 512 << 20);
    world.start(1, config).await.unwrap();
    assert_eq!(world.pid("web.stdout.0").await, 512 << 20);
    world.exit(1).await;
    world.destroy(1).await.unwrap();
    end(&world, plugin).await;
}

#[tokio::test]
async fn failed_plugin_start_has_reason() {
    let mut world = World::new();
    let early = world.start(1, sh("true")).await.unwrap_err();
    assert!(early.recoverable, "{early:?}");
    let plugin = world.attach("").await;
    let mut typo = sh("true");
    typo.config.insert("comand".to_owned(), Value::from("x"));
    let failure = world.start(2, typo).await.unwrap_err();
    let expected = r#"comand: unknown option "comand" (did you mean "command"?)"#;
    assert_eq!(
        (failure.message.as_str(), failure.recoverable),
        (expected, false)
    );
    let mut missing = sh("true");
    missing
        .config
        .insert("command".to_owned(), Value::from("/no"));
    let failure = world.start(3, missing).await.unwrap_err();
    assert!(
        failure.message.contains("cannot start the command"),
        "{failure:?}"
    );
    end(&world, plugin).await;
}

#[tokio::test]
async fn plugin_tasks_survive_agent() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let remembered = plugin.remember();
    world.start(1, sh(SLEEP)).await.unwrap();
    let pid = world.pid("web.stdout.0").await;
    drop(plugin);
    world.begin_again();
    assert!(lives(pid));
    let plugin = world.reattach(&remembered).await;
    assert_eq!(world.recover(1).await, Found::Running);
    assert_eq!(world.recover(9).await, Found::NeverStarted);
    let exit = world.destroy(1).await.unwrap().unwrap();
    assert_eq!(exit.signal, 9);
    assert!(!lives(pid));
    world.driver.detach();
    soon(plugin.stop(false)).await;
    assert!(!lives(remembered.process.pid));
}

#[tokio::test]
async fn restarted_plugin_recovers_tasks() {
    let mut world = World::new();
    let first = world.attach("").await;
    world.start(1, sh(SLEEP)).await.unwrap();
    let pid = world.pid("web.stdout.0").await;
    soon(first.kill(false)).await;
    soon(first.lost()).await;
    assert!(lives(pid));
    // Nobody can be asked now, and nothing is told that is not known.
    let failed = world.destroy(1).await.unwrap_err();
    assert!(failed.recoverable, "{failed:?}");
    let second = world.launch("").await;
    let mut events = second.task_events().await.unwrap();
    let second = world.use_it(second).await;
    let event = soon(events.next()).await.unwrap().unwrap();
    assert_eq!(event.message, "found again");
    assert_eq!(world.signal(1, "SIGTERM").await, Ok(()));
    let exit = world.exit(1).await;
    assert_eq!(exit.code, None);
    assert!(exit.message.unwrap().contains("is not known"));
    assert_eq!(world.destroy(1).await, Ok(None));
    end(&world, second).await;
}

#[tokio::test]
async fn unknowable_exit_is_reported_unknown() {
    let mut world = World::new();
    let first = world.attach("").await;
    world.start(1, sh(SLEEP)).await.unwrap();
    let pid = world.pid("web.stdout.0").await;
    soon(first.kill(false)).await;
    let task = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(task, rustix::process::Signal::KILL).unwrap();
    let gone = async {
        while lives(pid) {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    let second = world.attach("").await;
    let exit = world.exit(1).await;
    assert_eq!(exit.code, None);
    assert!(exit.message.is_some());
    end(&world, second).await;
}

#[tokio::test]
async fn plugin_death_during_start_fails_that_start_only() {
    let mut world = World::new();
    let dying = world.attach("die:Started").await;
    let failure = world.start(1, sh(SLEEP)).await.unwrap_err();
    assert!(failure.recoverable, "{failure:?}");
    let lost = soon(dying.lost()).await.to_string();
    assert!(lost.contains("exit code 3"), "{lost}");
    // The next agent is not told that it never started.
    world.begin_again();
    assert!(matches!(world.recover(1).await, Found::Gone(_)));
    let careless = world.attach("no handle").await;
    let failure = world.start(2, sh(SLEEP)).await.unwrap_err();
    assert!(failure.message.contains("without a handle"), "{failure:?}");
    end(&world, careless).await;
    let hanging = world.attach("hang:StartTask").await;
    world.ask_start(3, sh(SLEEP));
    assert!(hanging.check().await.is_ok());
    world.ask_destroy(3);
    match world.receive().await {
        DriverInput::Destroyed { result, .. } => assert_eq!(result, Ok(None)),
        other => panic!("{other:?}"),
    }
    end(&world, hanging).await;
    match world.receive().await {
        DriverInput::StartFailed { failure, .. } => assert!(failure.recoverable),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hanging_plugin_call_affects_own_task_only() {
    let mut world = World::new();
    let plugin = world.attach("hang:WaitTask").await;
    world.start(1, sh(SLEEP)).await.unwrap();
    world.start(2, sh("true")).await.unwrap();
    // A wait that is never answered: whoever destroys it asks what is known.
    let pid = world.pid("web.stdout.0").await;
    let killed = world.destroy(1).await.unwrap().unwrap();
    assert_eq!(killed.signal, 9);
    assert!(!lives(pid));
    let ended = world.destroy(2).await.unwrap().unwrap();
    assert_eq!(ended.code, Some(0));
    end(&world, plugin).await;
}

#[tokio::test]
async fn hanging_plugin_call_fails() {
    let mut world = World::new();
    let short = Duration::from_millis(500);
    world.plugins.limits.call = short;
    world.plugins.limits.start_task = short;
    let hangs = |failure: &Failure, call: &str| {
        assert!(failure.recoverable, "{failure:?}");
        assert!(failure.message.contains(&format!("no answer to {call}")));
    };
    let plugin = world.attach("hang:StartTask").await;
    hangs(&world.start(1, sh(SLEEP)).await.unwrap_err(), "StartTask");
    end(&world, plugin).await;

    let plugin = world.attach("hang:SignalTask").await;
    world.start(2, sh(SLEEP)).await.unwrap();
    hangs(&world.signal(2, "SIGHUP").await.unwrap_err(), "SignalTask");
    end(&world, plugin).await;

    let plugin = world.attach("hang:StopTask").await;
    world.start(3, sh(SLEEP)).await.unwrap();
    world.ask_stop(3, "SIGTERM", Span::ZERO);
    match world.receive().await {
        DriverInput::Stopped { result, .. } => hangs(&result.unwrap_err(), "StopTask"),
        other => panic!("{other:?}"),
    }
    end(&world, plugin).await;

    // What cannot be forgotten has ended all the same, and that is told.
    let plugin = world.attach("hang:DestroyTask").await;
    world.start(4, sh(SLEEP)).await.unwrap();
    world.ask_destroy(4);
    assert_eq!(world.exit(4).await.signal, 9);
    match world.receive().await {
        DriverInput::Destroyed { result, .. } => hangs(&result.unwrap_err(), "DestroyTask"),
        other => panic!("{other:?}"),
    }
    end(&world, plugin).await;

    world.begin_again();
    let plugin = world.attach("hang:RecoverTask").await;
    match world.recover(3).await {
        Found::Gone(why) => assert!(why.contains("no answer to RecoverTask"), "{why}"),
        other => panic!("{other:?}"),
    }
    end(&world, plugin).await;
}

#[tokio::test]
async fn plugin_runs_change_scripts() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    world.start(1, sh(SLEEP)).await.unwrap();
    assert_eq!(world.exec(1, "exit 0", Span::secs(60)).await, Ok(0));
    assert_eq!(world.exec(1, "exit 4", Span::secs(60)).await, Ok(4));
    let killed = world.exec(1, "kill -9 $$", Span::secs(60)).await;
    assert_eq!(killed, Ok(137));
    let late = world.exec(1, "exec sleep 1000", Span::millis(100)).await;
    assert!(late.is_err(), "{late:?}");
    world.destroy(1).await.unwrap();
    assert!(world.exec(1, "exit 0", Span::secs(60)).await.is_err());
    end(&world, plugin).await;
}

#[tokio::test]
async fn plugin_without_exec_is_not_asked_to_run_scripts() {
    let mut world = World::new();
    let plugin = world.attach("noexec").await;
    world.start(1, sh(SLEEP)).await.unwrap();
    let refused = world.exec(1, "exit 0", Span::secs(60)).await.unwrap_err();
    assert!(
        refused.message.contains("no further programs"),
        "{refused:?}"
    );
    world.destroy(1).await.unwrap();
    end(&world, plugin).await;
}
