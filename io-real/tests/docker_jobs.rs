//! What containers get of what their jobs ask for, and what images mean, against a real engine.

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
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use docker_world::engine::IMAGE;
use docker_world::{World, command, list, sh, text, with};
use drover_core::effect::TaskConfig;
use drover_core::input::Found;
use drover_core::model::value::Value;

/// Nothing takes longer.
const LONGEST: Duration = Duration::from_secs(60);

/// What a job says of one device.
fn device(config: TaskConfig, host: &str, inside: &str) -> TaskConfig {
    let fields = [("host_path", host), ("container_path", inside)];
    let fields = fields.map(|(name, value)| (name.to_owned(), text(value)));
    let devices = Value::List(vec![Value::Map(fields.into())]);
    with(config, "devices", devices)
}

/// What the engine says of the only container.
fn inspect(world: &World, format: &str) -> String {
    let container = world.engine.containers()[0].clone();
    world.engine.says(&["inspect", "-f", format, &container])
}

/// The id of an image.
fn id(world: &World, image: &str) -> String {
    world
        .engine
        .says(&["image", "inspect", "-f", "{{.Id}}", image])
}

/// An image that no other is.
fn image(world: &World, name: &str, who: &str) -> String {
    world.engine.image_with(name, &format!("LABEL who={who}"));
    id(world, name)
}

/// An archive in which `name` is the image of that id, though it is another one here.
fn archive(world: &World, id: &str, name: &str) {
    let path = world.alloc_dir().join("web/local/image.tar");
    let now = world
        .engine
        .docker(&["image", "inspect", "-f", "{{.Id}}", name]);
    let is_there = now.status.success();
    let now = String::from_utf8_lossy(&now.stdout).trim().to_owned();
    world.engine.says(&["tag", id, name]);
    world
        .engine
        .says(&["save", "-o", &path.to_string_lossy(), name]);
    match is_there {
        true => world.engine.says(&["tag", &now, name]),
        false => world.engine.says(&["rmi", name]),
    };
}

fn loaded(config: TaskConfig, name: &str) -> TaskConfig {
    let config = with(config, "image", text(name));
    with(config, "load", text("image.tar"))
}

#[test]
fn devices_are_nodes_that_the_agent_allows() {
    let mut world = world!();
    let config = sh("dd if=/dev/mine of=/local/read bs=1 count=3");
    let config = device(config, "/dev/zero", "/dev/mine");
    assert_eq!(world.run(1, config).code, Some(0));
    let read = fs::read(world.alloc_dir().join("web/local/read")).unwrap();
    assert_eq!(read, [0, 0, 0]);
    assert_eq!(world.destroy(1), Ok(None));
    for (launch, (host, expected)) in (2..).zip([
        ("/dev/tty", "allow_devices"),
        ("/dev/pts", "allow_devices"),
        ("/dev/fd", "allow_privileged"),
        ("/dev/shm", "no device in"),
        ("/dev/there-is-no-such-device", "there-is-no-such-device"),
    ]) {
        let config = device(command(&["/bin/true"]), host, host);
        let failure = world.start(launch, config).unwrap_err();
        assert!(failure.message.contains(expected), "{host}: {failure:?}");
        assert_eq!(world.destroy(launch), Ok(None));
    }
    let mut config = device(sh("ls /dev/lines"), "/dev/pts", "/dev/lines");
    config.container.as_mut().unwrap().allowed_devices = vec!["/dev/pts/*".to_owned()];
    assert_eq!(world.run(9, config).code, Some(0));
    let found = world.log("stdout");
    assert!(found.lines().any(|line| line == "ptmx"), "{found}");
    assert_eq!(world.destroy(9), Ok(None));
}

#[test]
fn container_is_made_of_the_image_that_was_found() {
    let mut world = world!();
    let expected = id(&world, IMAGE);
    world.start(1, command(&["/bin/sleep", "1000"])).unwrap();
    assert_eq!(inspect(&world, "{{.Config.Image}}"), expected);
    world.end(1);
}

#[test]
fn archive_takes_no_tag_of_others() {
    let mut world = world!();
    let theirs = image(&world, "victim:1", "theirs");
    let evil = image(&world, "evil:1", "evil");
    archive(&world, &evil, "victim:1");
    let config = loaded(command(&["/bin/sleep", "1000"]), "victim:1");
    world.start(1, config).unwrap();
    // The task has what its archive has, and the tag means what it meant.
    assert_eq!(inspect(&world, "{{.Image}}"), evil);
    assert_eq!(id(&world, "victim:1"), theirs);
    world.end(1);
    let config = with(command(&["/bin/sleep", "1000"]), "image", text("victim:1"));
    world.start(2, config).unwrap();
    assert_eq!(inspect(&world, "{{.Image}}"), theirs);
    world.end(2);
}

#[test]
fn archive_that_becomes_too_large_is_not_loaded() {
    let mut world = world!();
    world.settings.image_max_size = Some(100_000);
    world.begin();
    let wanted = image(&world, "made:1", "any");
    archive(&world, &wanted, "app:1");
    world.engine.says(&["rmi", "made:1"]);
    let config = loaded(command(&["/bin/true"]), "app:1");
    let failure = world.start(1, config).unwrap_err();
    assert!(failure.message.contains("image_max_size_mb"), "{failure:?}");
    assert_eq!(world.destroy(1), Ok(None));
    let there = world.engine.docker(&["image", "inspect", "app:1"]);
    assert!(!there.status.success(), "the engine has it");
}

#[test]
fn archive_takes_tag_of_earlier_archive() {
    let mut world = world!();
    for (launch, who) in [(1, "first"), (2, "second")] {
        let wanted = image(&world, "made:1", who);
        archive(&world, &wanted, "app:1");
        // The archive is the only place where it is.
        world.engine.says(&["rmi", "made:1"]);
        let config = loaded(command(&["/bin/sleep", "1000"]), "app:1");
        world.start(launch, config).unwrap();
        assert_eq!(inspect(&world, "{{.Image}}"), wanted, "{who}");
        assert_eq!(id(&world, "app:1"), wanted, "{who}");
        world.end(launch);
        // The next agent knows it, too.
        world.begin();
    }
}

#[test]
fn new_tag_of_an_archive_is_for_tasks_that_load_it() {
    let mut world = world!();
    let evil = image(&world, "evil:1", "evil");
    // No registry is there.
    let name = "127.0.0.1:1/planted:1";
    archive(&world, &evil, name);
    let config = || command(&["/bin/sleep", "1000"]);
    world.start(1, loaded(config(), name)).unwrap();
    assert_eq!(inspect(&world, "{{.Image}}"), evil);
    world.end(1);
    // The next agent knows it, too.
    world.begin();
    let failure = world
        .start(2, with(config(), "image", text(name)))
        .unwrap_err();
    assert!(failure.message.contains("an archive"), "{failure:?}");
    assert_eq!(world.destroy(2), Ok(None));
    world
        .start(3, with(config(), "image", text("evil:1")))
        .unwrap();
    world.end(3);
}

#[test]
fn log_files_of_a_job_are_bounded() {
    let mut world = world!();
    world.settings.logging.1 = [("max-size".to_owned(), "7m".to_owned())].into();
    world.begin();
    let logging = |kind: &str, options: &[(&str, &str)]| {
        logging(command(&["/bin/sleep", "1000"]), kind, options)
    };
    for (launch, (config, expected)) in (1..).zip([
        // The agent's own, and what it does not say.
        (logging("json-file", &[]), "map[max-file:2 max-size:7m]"),
        (
            logging("json-file", &[("max-size", "9m")]),
            "map[max-file:2 max-size:9m]",
        ),
        (logging("local", &[]), "map[max-file:2 max-size:2m]"),
    ]) {
        world.start(launch, config).unwrap();
        assert_eq!(
            inspect(&world, "{{.HostConfig.LogConfig.Config}}"),
            expected
        );
        world.end(launch);
    }
}

/// What a job says of the engine's logging driver.
fn logging(config: TaskConfig, kind: &str, options: &[(&str, &str)]) -> TaskConfig {
    let options = options.iter();
    let options = options.map(|(name, value)| ((*name).to_owned(), text(value)));
    let fields = [
        ("type".to_owned(), text(kind)),
        ("config".to_owned(), Value::Map(options.collect())),
    ];
    with(config, "logging", Value::Map(fields.into()))
}

#[test]
fn gap_in_output_is_reported() {
    let mut world = world!();
    let script = "test -z $FIRST || echo first; until test -e /local/go-$N; do sleep 0.01; done; \
                  seq 10000; sleep 1000";
    // What is kept is less than what is written while nobody reads.
    for (launch, kept, first) in [
        (1, "1", "first"),
        (2, "3", "first"),
        (3, "1", ""),
        (4, "3", ""),
    ] {
        let mut config = sh(script);
        for (name, value) in [("FIRST", first.to_owned()), ("N", launch.to_string())] {
            config.env.insert(name.to_owned(), value);
        }
        let bounds = [("max-size", "10k"), ("max-file", kept)];
        let before = world.log("stdout");
        world
            .start(launch, logging(config, "json-file", &bounds))
            .unwrap();
        if !first.is_empty() {
            world.until_log(&format!("{before}first\n"));
        }
        world.begin();
        assert_eq!(world.recover(launch), Found::Running);
        assert!(
            world.events.is_empty(),
            "nothing is missing: {:?}",
            world.events
        );
        // Nobody reads.
        drop(world.life.take());
        let go = format!("web/local/go-{launch}");
        fs::write(world.alloc_dir().join(go), "").unwrap();
        let container = world.engine.containers()[0].clone();
        let until = Instant::now() + LONGEST;
        while world.engine.says(&["logs", "--tail", "1", &container]) != "10000" {
            assert!(Instant::now() < until, "it writes nothing");
        }
        world.begin();
        assert_eq!(world.recover(launch), Found::Running);
        world.until_event("Output may be missing since 20");
        let came = |world: &World| world.log("stdout")[before.len()..].to_owned();
        world.until(|world| came(world).ends_with("\n10000\n"));
        assert!(
            !came(&world).lines().any(|line| line == "1"),
            "it is missing"
        );
        world.end(launch);
        assert_eq!(world.events.drain(..).count(), 1, "told once");
    }
}

#[test]
fn output_goes_where_the_engine_sends_it() {
    let mut world = world!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let config = sh("echo to whom it may concern; sleep 1000");
    let options = [("fluentd-address", address.as_str())];
    world
        .start(1, logging(config, "fluentd", &options))
        .unwrap();
    let (mut engine, _) = listener.accept().unwrap();
    engine.set_read_timeout(Some(LONGEST)).unwrap();
    let (mut sent, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&sent).contains("to whom it may concern") {
        let read = engine.read(&mut piece).unwrap();
        assert_ne!(read, 0, "the engine sends no more: {sent:?}");
        sent.extend_from_slice(&piece[..read]);
    }
    // The engine keeps some of it, too; one that does not says so.
    let is_reported = |world: &World| {
        world
            .events
            .iter()
            .any(|it| it.contains("Output is not collected"))
    };
    let until = Instant::now() + LONGEST;
    while world.log("stdout") != "to whom it may concern\n" && !is_reported(&world) {
        assert!(
            Instant::now() < until,
            "neither is there: {:?}",
            world.events
        );
        world.turns(100);
    }
    world.end(1);
}

#[test]
fn container_without_gpu_gets_none_by_its_image() {
    let mut world = world!();
    let all = "ENV NVIDIA_VISIBLE_DEVICES=all";
    world.engine.image_with("drover-gpus:1", all);
    let gpus = |world: &mut World, launch, config| {
        let config = with(config, "image", text("drover-gpus:1"));
        let before = world.log("stdout").len();
        assert_eq!(world.run(launch, config).code, Some(0));
        assert_eq!(world.destroy(launch), Ok(None));
        world.log("stdout")[before..].to_owned()
    };
    let config = || sh("echo $NVIDIA_VISIBLE_DEVICES");
    // The engine's runtime gives none.
    assert_eq!(gpus(&mut world, 1, config()), "all\n");
    // As if it was that of NVIDIA.
    world.settings.nvidia_runtime = "runc".to_owned();
    world.begin();
    let asked = with(config(), "runtime", text("runc"));
    assert_eq!(gpus(&mut world, 2, asked), "void\n");
    assert_eq!(gpus(&mut world, 3, config()), "void\n");
    let mut given = config();
    let device = ("NVIDIA_VISIBLE_DEVICES".to_owned(), "GPU-1".to_owned());
    given.device_env = [device].into();
    assert_eq!(gpus(&mut world, 4, given), "GPU-1\n");
}

#[test]
fn options_of_security_are_passed_on() {
    let mut world = world!();
    let options = list(&["no-new-privileges:true"]);
    let config = with(command(&["/bin/sleep", "1000"]), "security_opt", options);
    world.start(1, config).unwrap();
    let passed = inspect(&world, "{{.HostConfig.SecurityOpt}}");
    assert_eq!(passed, "[no-new-privileges=true]");
    world.end(1);
}
