//! The driver `docker` against a real engine, which these tests start themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may panic"
)]

#[path = "common/docker_world.rs"]
#[macro_use]
mod docker_world;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use docker_world::engine::IMAGE;
use docker_world::{World, command, list, sh, text, with};
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::effect::{DriverEffect, Program, request};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverHealth, DriverInput, Found};
use drover_core::op::Failure;
use drover_core::time::Span;
use drover_io_real::session::{Output, SessionInput, SessionOutput};

#[test]
fn task_runs_in_its_image_with_its_directories() {
    let mut world = world!(false);
    let mut config = sh(
        "echo $GREETING; ls -d /alloc /local /secrets; echo no >&2; id -u; \
                         touch /local/a /alloc/data/b /secrets/c; exit 3",
    );
    config.env.insert("GREETING".to_owned(), "hello".to_owned());
    config.user = "web".to_owned();
    let result = world.run(1, config);
    assert_eq!(
        (result.code, result.signal, result.message),
        (Some(3), 0, None)
    );
    assert_eq!(world.log("stdout"), "hello\n/alloc\n/local\n/secrets\n70\n");
    assert_eq!(world.log("stderr"), "no\n");
    for made in ["web/local/a", "alloc/data/b", "web/secrets/c"] {
        assert!(world.alloc_dir().join(made).exists(), "{made}");
    }
    assert!(matches!(world.recover(1), Found::Exited(result) if result.code == Some(3)));
    assert_eq!(world.destroy(1), Ok(None));
    assert_eq!(world.engine.containers(), [""; 0]);
    assert!(matches!(world.recover(1), Found::Exited(result) if result.code == Some(3)));
    world.forget(1);
    assert_eq!(world.recover(1), Found::NeverStarted);
}

#[test]
fn task_that_needs_too_much_memory_is_killed_and_says_so() {
    let mut world = world!(false);
    let mut config = sh("dd if=/dev/zero bs=1M count=200 | tail -c 100000000 >/dev/null");
    config.memory_limit = 20 << 20;
    let result = world.run(1, config);
    assert!(result.oom_killed, "{result:?}");
    // How much was used is told, too, if that was still to be seen.
    let message = result.message.unwrap_or_default();
    let rest = message.strip_prefix("out of memory: the limit is 20 MiB");
    let rest = rest.unwrap_or_else(|| panic!("{message}"));
    assert!(
        rest.is_empty() || rest.ends_with(" MiB were used at most"),
        "{message}"
    );
    assert_eq!(world.destroy(1), Ok(None));
}

#[test]
fn successful_task_is_not_an_oom_kill_for_its_child() {
    let mut world = world!(false);
    let script = "dd if=/dev/zero bs=1M count=200 | tail -c 100000000 >/dev/null; exit $CODE";
    for (launch, code) in [(1, 0), (2, 3)] {
        let mut config = sh(script);
        config.memory_limit = 20 << 20;
        config.env.insert("CODE".to_owned(), code.to_string());
        let result = world.run(launch, config);
        assert_eq!(result.code, Some(code), "{result:?}");
        assert_eq!(result.is_success(), code == 0, "{result:?}");
        // The engine says that of both.
        assert_eq!(result.oom_killed, code != 0, "{result:?}");
        assert_eq!(world.destroy(launch), Ok(None));
    }
}

#[test]
fn stop_is_polite_and_destroy_is_not() {
    let mut world = world!(false);
    world
        .start(
            1,
            sh("trap 'echo bye; exit 7' TERM; echo up; while true; do sleep 1 & wait; done"),
        )
        .unwrap();
    world.until_log("up\n");
    let stopped = world.stop(1, "");
    assert_eq!(stopped.code, Some(7));
    assert_eq!(world.log("stdout"), "up\nbye\n");
    world
        .start(
            2,
            sh("trap '' TERM; trap 'echo hup' HUP; echo two; while true; do sleep 1 & wait; done"),
        )
        .unwrap();
    world.until_log("up\nbye\ntwo\n");
    assert_eq!(world.signal(2, "SIGHUP"), Ok(()));
    world.until_log("up\nbye\ntwo\nhup\n");
    assert!(world.signal(2, "SIGNOPE").is_err());
    let killed = world.end(2);
    assert_eq!((killed.code, killed.signal), (Some(137), 9));
    assert_eq!(world.destroy(1), Ok(None));
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn agent_that_is_killed_finds_containers_and_output_again() {
    let mut world = world!(false);
    world.start(1, sh("i=0; while true; do echo $i; i=$((i+1)); dd if=/dev/zero of=/dev/null bs=1M count=20 2>/dev/null; done")).unwrap();
    for _ in 0..5 {
        let lines = world.log("stdout").lines().count();
        world.until(|world| world.log("stdout").lines().count() > lines + 5);
        world.begin();
        assert_eq!(world.recover(1), Found::Running);
    }
    world.start(2, sh("exit 4")).unwrap();
    world.exited();
    world.begin();
    assert!(matches!(world.recover(2), Found::Exited(result) if result.code == Some(4)));
    assert_eq!(world.recover(1), Found::Running);
    world.end(1);
    let text = world.log("stdout");
    let numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
}

#[test]
fn engine_that_dies_takes_its_containers_with_it_and_comes_back() {
    let mut world = world!(false);
    assert_eq!(world.health(), DriverHealth::Healthy);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    world.engine.kill_9();
    assert_eq!(world.health(), DriverHealth::Unhealthy);
    let failure = world.start(2, command(&["/bin/true"])).unwrap_err();
    assert!(
        failure.recoverable && failure.message.contains("does not answer"),
        "{failure:?}"
    );
    world.engine.begin();
    world.until_healthy();
    // The engine ended it when it started.
    let result = world.exited();
    assert!(!result.is_success(), "{result:?}");
    assert_eq!(world.destroy(1), Ok(None));
    assert_eq!(world.destroy(2), Ok(None));
    assert_eq!(world.run(3, command(&["/bin/true"])).code, Some(0));
}

#[test]
fn task_interrupted_by_power_loss_is_reported_as_such() {
    let mut world = world!(false);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    world.start(2, sh("exit 4")).unwrap();
    world.exited();
    drop(world.life.take());
    world.engine.lose_power();
    for launch in [1, 2] {
        world.note_earlier_boot(launch);
    }
    world.engine.begin();
    world.begin();
    assert_eq!(world.recover(1), Found::Rebooted);
    assert!(matches!(world.recover(2), Found::Exited(result) if result.code == Some(4)));
    for launch in [1, 2] {
        world.end_quietly(launch);
    }
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn container_that_outlives_its_engine_is_known_to_the_next() {
    let mut world = world!(true);
    assert_eq!(world.health(), DriverHealth::Healthy);
    world
        .start(
            1,
            sh("echo one; trap 'exit 5' TERM; while true; do sleep 1 & wait; done"),
        )
        .unwrap();
    world.until_log("one\n");
    world.engine.kill_9();
    assert_eq!(world.health(), DriverHealth::Unhealthy);
    world.engine.begin();
    world.until_healthy();
    assert_eq!(world.stop(1, "SIGTERM").code, Some(5));
    assert_eq!(world.log("stdout"), "one\n");
    assert_eq!(world.destroy(1), Ok(None));
}

#[test]
fn agent_that_begins_while_the_engine_is_away_waits_for_it() {
    let mut world = world!(true);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    world.engine.kill_9();
    world.begin();
    let asked = world.ask_recover(1);
    // It was looked for, and nothing is said of the task.
    assert_ne!(world.health(), DriverHealth::Healthy);
    world.engine.begin();
    assert_eq!(world.recovered(asked), Found::Running);
    world.end(1);
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn container_that_is_destroyed_is_not_waited_for() {
    let mut world = world!(true);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    world.engine.kill_9();
    world.begin();
    world.ask_recover(1);
    assert_ne!(world.health(), DriverHealth::Healthy);
    let launch = LaunchId(1);
    world.ask(|op| DriverEffect::Destroy(request::Destroy { op, launch }));
    for _ in 0..2 {
        match world.receive() {
            DriverInput::Recovered { found, .. } => {
                assert!(matches!(&found, Found::Gone(why) if why.contains("destroyed")));
            }
            DriverInput::Destroyed { result, .. } => assert!(result.is_err()),
            other => panic!("{other:?}"),
        }
    }
    world.engine.begin();
    world.until_healthy();
    world.end_quietly(1);
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn inventory_removes_only_containers_with_a_record() {
    let mut world = world!(false);
    let stays = sh("trap 'exit 0' TERM; sleep 1000 & wait");
    world.start(1, stays).unwrap();
    let label = format!("drover.launch={}", LaunchId(1));
    let copied = [
        "create",
        "--name",
        "copied",
        "--label",
        &label,
        IMAGE,
        "/bin/true",
    ];
    world.engine.says(&copied);
    let inventory = world.life().driver.inventory();
    let found = inventory.find().unwrap();
    assert!(found.silent.is_empty(), "{found:?}");
    assert_eq!(found.containers.len(), 2, "{found:?}");
    for container in &found.containers {
        let is_own = container.name != "copied";
        assert_eq!((container.is_proved, container.runs), (is_own, is_own));
        assert_eq!(inventory.remove(container).is_ok(), is_own, "{container:?}");
    }
    assert_eq!(world.engine.containers(), ["copied"]);
    world.engine.kill_9();
    // Whose container may be there is remembered, and none is.
    let found = inventory.find().unwrap();
    assert_eq!((found.containers.len(), found.silent.len()), (0, 1));
    assert!(inventory.out_of_reach().unwrap().is_empty());
}

#[test]
fn interrupted_start_leaves_nothing() {
    let mut world = world!(false);
    for launch in 1..=12_u128 {
        world.ask_start(launch, command(&["/bin/sleep", "1000"]));
        world.turns(usize::try_from(launch * launch * 3).unwrap());
        world.begin();
        let found = world.recover(launch);
        assert!(
            !matches!(found, Found::Exited(_) | Found::Rebooted),
            "{found:?}"
        );
        world.end_quietly(launch);
        assert_eq!(world.engine.containers(), [""; 0], "after {launch}");
        world.forget(launch);
    }
}

#[test]
fn container_of_others_is_left_alone() {
    let mut world = world!(false);
    let label = format!("drover.launch={}", LaunchId(1));
    world.engine.says(&[
        "run",
        "-d",
        "--name",
        "theirs",
        "--label",
        &label,
        "--label",
        "drover.token=guessed",
        IMAGE,
        "sleep",
        "1000",
    ]);
    // A launch of ours that nobody knows any more is ended, whatever it is called now.
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    let mut names = world.engine.containers();
    names.retain(|name| name != "theirs");
    world.engine.says(&["rename", &names[0], "renamed"]);
    world.begin();
    world.end_unknown(&[]);
    world.until(|world| world.engine.containers() == ["theirs"]);
    world.start(2, command(&["/bin/true"])).unwrap();
    world.exited();
    assert_eq!(world.destroy(2), Ok(None));
    assert_eq!(
        world
            .engine
            .says(&["inspect", "-f", "{{.State.Running}}", "theirs"]),
        "true"
    );
}

#[test]
fn container_that_cannot_start_is_refused_with_the_reason() {
    let mut world = world!(false);
    let image = |name: &str| with(command(&["/bin/true"]), "image", text(name));
    let refused = |world: &mut World, launch, config| -> Failure {
        let failure = world.start(launch, config).unwrap_err();
        assert_eq!(world.destroy(launch), Ok(None));
        failure
    };
    // Nobody listens there.
    let failure = refused(&mut world, 1, image("127.0.0.1:1/nope:1"));
    assert!(
        failure.message.contains("127.0.0.1:1/nope:1"),
        "{failure:?}"
    );
    let failure = refused(&mut world, 2, command(&["/bin/nope"]));
    assert!(failure.message.contains("/bin/nope"), "{failure:?}");
    let failure = refused(
        &mut world,
        3,
        with(command(&["/bin/true"]), "runtime", text("nope")),
    );
    assert!(failure.message.contains("nope"), "{failure:?}");
    symlink("/etc", world.alloc_dir().join("web/local/link")).unwrap();
    let volumes = list(&["local/link:/x"]);
    let failure = refused(
        &mut world,
        4,
        with(command(&["/bin/true"]), "volumes", volumes),
    );
    assert!(
        failure.message.contains("a link is on the way"),
        "{failure:?}"
    );
    assert_eq!(world.engine.containers(), [""; 0]);
    assert_eq!(world.pins(), 0);
}

#[test]
fn files_of_the_task_are_mounted_where_the_job_says() {
    let mut world = world!(false);
    fs::write(
        world.alloc_dir().join("web/local/conf"),
        "from the template\n",
    )
    .unwrap();
    let config = sh("cat /etc/conf; echo more >> /etc/conf; echo ro $?; echo x > /data/new");
    let config = with(
        config,
        "volumes",
        list(&["local/conf:/etc/conf:ro", "../alloc/data/deep/er:/data"]),
    );
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.log("stdout"), "from the template\nro 1\n");
    assert!(world.alloc_dir().join("alloc/data/deep/er/new").exists());
    assert_eq!(world.destroy(1), Ok(None));
    assert_eq!(world.pins(), 0);
}

#[test]
fn programs_run_beside_the_task() {
    let mut world = world!(false);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    let exec = |world: &mut World, script: &str, limit| {
        let program = Program {
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            timeout: limit,
            task: sh(""),
        };
        let (program, launch, output) = (Arc::new(program), LaunchId(1), true);
        world.ask(|op| {
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output,
            })
        });
        match world.receive() {
            DriverInput::Executed { result, output, .. } => (result, output),
            other => panic!("{other:?}"),
        }
    };
    let (result, output) = exec(&mut world, "echo out; echo err >&2; exit 3", Span::secs(30));
    // Which of the streams comes first is nobody's promise.
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!((result, lines), (Ok(3), vec!["err", "out"]));
    let (result, _) = exec(&mut world, "exec sleep 1234", Span::millis(300));
    assert!(result.unwrap_err().message.contains("was killed"));
    world.until(|world| {
        !world
            .engine
            .says(&["top", &world.engine.containers()[0]])
            .contains("1234")
    });
    // Also if its time is over before the engine has started it. An engine starts them in turn: when another one has
    // ended, it would run.
    let (result, _) = exec(&mut world, "exec sleep 3456", Span::millis(1));
    assert!(result.unwrap_err().message.contains("was killed"));
    assert_eq!(exec(&mut world, "true", Span::secs(30)).0, Ok(0));
    let left = world.engine.says(&["top", &world.engine.containers()[0]]);
    assert!(!left.contains("3456"), "{left}");
    // What it started ends with it, also what is nobody's child any more.
    let script = "(sleep 2345 &); sleep 2346; true";
    let (result, _) = exec(&mut world, script, Span::millis(300));
    assert!(result.unwrap_err().message.contains("was killed"));
    world.until(|world| {
        let left = world.engine.says(&["top", &world.engine.containers()[0]]);
        !left.contains("2345") && !left.contains("2346")
    });
    for tty in [false, true] {
        let (asking, mut client) = world.life().sessions.begin();
        let program = SessionProgram {
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), "read x; echo got $x; exit 6".to_owned()],
            tty,
            task: sh(""),
        };
        let (session, program, launch) = (asking.id, Arc::new(program), LaunchId(1));
        world.ask(|op| {
            DriverEffect::OpenSession(OpenSession {
                op,
                launch,
                session,
                program,
            })
        });
        assert!(matches!(
            world.receive(),
            DriverInput::SessionOpened { result: Ok(()), .. }
        ));
        let input = client.input.clone();
        let (mut received, mut exit) = (Vec::new(), None);
        world.life().runtime.block_on(async {
            input
                .send(SessionInput::Stdin("hello\n".into()))
                .await
                .unwrap();
            while let Some(output) = client.output.recv().await {
                match output {
                    SessionOutput::Data(Output::Stdout, bytes) => {
                        received.extend_from_slice(&bytes)
                    }
                    SessionOutput::Exited(result) => exit = result.code,
                    other => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(exit, Some(6));
        assert!(
            String::from_utf8_lossy(&received).contains("got hello"),
            "{received:?}"
        );
        assert!(matches!(world.receive(), DriverInput::SessionEnded { .. }));
    }
    world.end(1);
}

#[test]
fn image_health_check_is_reported() {
    let mut world = world!(false);
    let line = "HEALTHCHECK --interval=1s --retries=1 CMD cat /tmp/state && test ! -e /tmp/ill";
    world.engine.image_with("drover-health:1", line);
    let health = |world: &mut World, launch| {
        world.ask(|op| DriverEffect::Health(request::Health { op, launch }));
        match world.receive() {
            DriverInput::Executed { result, output, .. } => (result, output),
            other => panic!("{other:?}"),
        }
    };
    let script = "echo fine > /tmp/state; sleep 1000";
    let config = with(sh(script), "image", text("drover-health:1"));
    world.start(1, config.clone()).unwrap();
    let launch = LaunchId(1);
    let becomes = |world: &mut World, code| loop {
        match health(world, launch) {
            (Ok(found), output) if found == code => break output,
            (Ok(_), _) => world.turns(1),
            (Err(failure), _) => panic!("{failure:?}"),
        }
    };
    assert_eq!(becomes(&mut world, request::Health::HEALTHY), "fine");
    let container = world.engine.containers()[0].clone();
    world
        .engine
        .says(&["exec", &container, "/bin/touch", "/tmp/ill"]);
    assert_eq!(becomes(&mut world, request::Health::UNHEALTHY), "fine");
    world.end(1);
    world.start(2, sh("sleep 1000")).unwrap();
    let (none, _) = health(&mut world, LaunchId(2));
    assert!(none.unwrap_err().message.contains("no HEALTHCHECK"));
    world.end(2);
}

#[test]
fn image_comes_out_of_an_archive() {
    let mut world = world!(false);
    let archive = world.alloc_dir().join("web/local/image.tar");
    world.engine.says(&["tag", IMAGE, "loaded:2"]);
    world
        .engine
        .says(&["save", "-o", &archive.to_string_lossy(), "loaded:2"]);
    world.engine.says(&["rmi", "loaded:2"]);
    let config = with(command(&["/bin/echo", "loaded"]), "image", text("loaded:2"));
    let config = with(config, "load", text("image.tar"));
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.log("stdout"), "loaded\n");
    assert_eq!(world.destroy(1), Ok(None));
    // Neither from elsewhere, nor out of what is none.
    let outside = world.alloc_dir().join("image.tar");
    fs::rename(&archive, &outside).unwrap();
    symlink(&outside, world.alloc_dir().join("web/local/link.tar")).unwrap();
    fs::write(&archive, "no archive").unwrap();
    world.engine.says(&["rmi", "loaded:2"]);
    for (launch, load) in (2..).zip(["image.tar", "link.tar", "../../image.tar", "/etc/passwd"]) {
        let config = with(command(&["/bin/true"]), "image", text("loaded:2"));
        let failure = world
            .start(launch, with(config, "load", text(load)))
            .unwrap_err();
        assert!(failure.message.contains("load"), "{load}: {failure:?}");
        assert_eq!(world.destroy(launch), Ok(None));
    }
}
