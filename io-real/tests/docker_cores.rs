//! Which cores containers use, beside tasks of other drivers, and how fast they read and write, with a real engine.

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
#[path = "common/groups.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod groups;

use docker_world::engine::Engine;
use docker_world::{World, command, text, with};
use drover_core::driver::config::IoLimits;
use drover_core::effect::TaskConfig;
use drover_core::input::Found;
use drover_core::model::value::Value;
use drover_io_real::cgroup::{Limits, Shared};
use groups::Groups;

/// Groups of the test's own, and an agent's driver; none where there is no engine, or only one core.
fn world(test: &str) -> Option<(Groups, World)> {
    let groups = Groups::new(test)?;
    let two = [0, 1].into();
    let kept = groups.groups.set_aside("probe", &[0].into());
    let shared = groups.groups.shared_cores().unwrap().unwrap_or_default();
    groups.groups.give_back("probe").unwrap();
    if kept.is_err() || shared.cores.is_empty() || shared.is_all {
        eprintln!("skipped: cores cannot be kept apart here");
        return None;
    }
    let mut world = World::new(Engine::start(false)?);
    let mut usable = groups.groups.clone();
    usable = usable.reserving(&beyond(&two));
    world.groups = Some(usable);
    world.begin();
    Some((groups, world))
}

/// All cores but these: nobody uses more than two.
fn beyond(two: &std::collections::BTreeSet<u32>) -> std::collections::BTreeSet<u32> {
    (0..8192).filter(|core| !two.contains(core)).collect()
}

fn sleeps() -> TaskConfig {
    command(&["/bin/sleep", "1000"])
}

/// One that reserved a core.
fn with_core(core: u32) -> TaskConfig {
    let mut config = sleeps();
    config.cores = [core].into();
    config.container.as_mut().unwrap().cores = core.to_string();
    config
}

/// The cores to which the engine keeps the container of a launch.
fn cores(world: &World, launch: u128) -> String {
    let label = format!("label=drover.launch={}", drover_core::ids::LaunchId(launch));
    let id = world.engine.says(&["ps", "-q", "--filter", &label]);
    let format = "{{.HostConfig.CpusetCpus}}";
    world.engine.says(&["inspect", "-f", format, &id])
}

#[test]
fn container_shares_cores_that_nobody_reserved() {
    let Some((_groups, mut world)) = world("docker-cores") else {
        return;
    };
    let groups = world.groups.clone().unwrap();
    let own = Limits {
        cores: [0].into(),
        ..Limits::default()
    };
    // A task of another driver reserves a core, and gives it back.
    world.start(1, sleeps()).unwrap();
    groups.create("pinned", &own).unwrap();
    world.until(|world| cores(world, 1) == "1");
    groups.remove("pinned").unwrap();
    world.until(|world| cores(world, 1) == "0-1");
    // So does a container, and tasks of other drivers have what is left.
    world.start(2, with_core(1)).unwrap();
    assert_eq!(cores(&world, 2), "1");
    world.until(|world| cores(world, 1) == "0");
    let shared = || groups.shared_cores().unwrap().unwrap().cores;
    assert_eq!(shared(), "0");
    // One that begins now begins there, whatever its job names.
    let named = with(sleeps(), "cpuset_cpus", text("1"));
    world.start(3, named).unwrap();
    assert_eq!(cores(&world, 3), "0");
    // The next agent knows who has which, and moves those that share.
    world.begin();
    for launch in 1..=3 {
        assert_eq!(world.recover(launch), Found::Running);
    }
    assert_eq!(shared(), "0");
    world.end(2);
    assert_eq!(shared(), "0-1");
    world.until(|world| cores(world, 1) == "0-1" && cores(world, 3) == "0-1");
    world.end(1);
    world.end(3);
    assert_eq!(groups.list().unwrap(), [""; 0]);
}

#[test]
fn container_has_the_lower_limits_of_reading_and_writing() {
    let Some((_groups, mut world)) = world("docker-io") else {
        return;
    };
    let most = IoLimits {
        read_bps: Some(1 << 20),
        ..IoLimits::default()
    };
    let groups = world.groups.take().unwrap();
    let groups = groups.with_disk_of(std::env::temp_dir(), most);
    let node = match groups.io_limits(most) {
        Ok(limits) => limits.unwrap().0.node,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    world.groups = Some(groups);
    world.begin();
    let io = [("read_bps", 8 << 20), ("write_iops", 100)];
    let io = io.map(|(name, limit)| (name.to_owned(), Value::Int(limit)));
    world
        .start(1, with(sleeps(), "io", Value::Map(io.into())))
        .unwrap();
    let label = format!("label=drover.launch={}", drover_core::ids::LaunchId(1));
    let id = world.engine.says(&["ps", "-q", "--filter", &label]);
    let format =
        "{{json .HostConfig.BlkioDeviceReadBps}} {{json .HostConfig.BlkioDeviceWriteIOps}}";
    let inspected = world.engine.says(&["inspect", "-f", format, &id]);
    let device = |rate| format!("[{{\"Path\":\"{}\",\"Rate\":{rate}}}]", node.display());
    assert_eq!(inspected, format!("{} {}", device(1 << 20), device(100)));
    world.end(1);
}

#[test]
fn container_that_cannot_be_made_keeps_no_cores() {
    let Some((_groups, mut world)) = world("docker-cores-failed") else {
        return;
    };
    let groups = world.groups.clone().unwrap();
    let mut config = with(with_core(1), "runtime", text("nope"));
    config.cores = [1].into();
    config.container.as_mut().unwrap().cores = "1".to_owned();
    world.start(1, config).unwrap_err();
    let all = groups.shared_cores().unwrap();
    assert_eq!(all.map(|it| it.cores).as_deref(), Some("0-1"));
    assert_eq!(groups.list().unwrap(), [""; 0]);
    assert_eq!(world.destroy(1), Ok(None));
}

#[test]
fn cores_of_container_whose_agent_forgot_it_are_given_back() {
    let Some((_groups, mut world)) = world("docker-cores-lost") else {
        return;
    };
    let groups = world.groups.clone().unwrap();
    world.start(1, with_core(0)).unwrap();
    let shared = || groups.shared_cores().unwrap().unwrap_or_default();
    let is_left = |shared: Shared| shared.cores == "1";
    assert!(is_left(shared()));
    world.begin();
    world.end_unknown(&[]);
    world.until(|_| shared().cores == "0-1");
    assert_eq!(world.engine.containers(), [""; 0]);
}
