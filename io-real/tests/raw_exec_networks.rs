//! The driver `raw_exec`: what runs in the network of an allocation. The test is in a network namespace that it makes;
//! without root it says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;
#[path = "common/network_world.rs"]
mod network_world;

use std::fs;
use std::io;

use common::driver::{World, key, sh};
use common::isolation::{beside, run_beside};
use drover_core::effect::TaskNetwork;

/// Prints in which network a program is, and what its machine is called there.
const PLACE: &str = "echo $(readlink /proc/self/ns/net) $(cat /proc/sys/kernel/hostname)";

/// A check or a session that asks localhost is to find the task there.
#[test]
fn programs_beside_a_task_are_in_its_network() {
    let Some(host) = network_world::World::new() else {
        return;
    };
    let (_, work) = host.wanted(1);
    host.networks.build(key().alloc, &work).unwrap();
    let network = TaskNetwork {
        own: true,
        hostname: "n1".to_owned(),
        ..TaskNetwork::default()
    };
    let entrance = host.networks.entrance(key().alloc, Some(&network));
    let place = || -> io::Result<String> {
        let namespace = fs::read_link("/proc/thread-self/ns/net")?;
        Ok(format!("{} n1\n", namespace.display()))
    };
    let expected = entrance.unwrap().unwrap().run(place).unwrap();
    let mut world = World::new("network");
    world.networks = Some(host.networks.clone());
    world.begin();
    let task = |script: &str| {
        let mut task = sh(script);
        task.network = Some(network.clone());
        task
    };
    world
        .start(1, task(&format!("{PLACE} > own; exec sleep 1000")))
        .unwrap();
    let read = |world: &World, name| fs::read_to_string(world.task_dir().join(name));
    world.until(|world| read(world, "own").is_ok_and(|text| text.ends_with('\n')));
    assert_eq!(read(&world, "own").unwrap(), expected, "the task");
    run_beside(&mut world, format!("{PLACE} > its"), task(""));
    assert_eq!(read(&world, "its").unwrap(), expected, "a script");
    let session = beside(&mut world, "/bin/sh", &["-c", PLACE], task(""));
    assert_eq!(session, expected, "a session");
    world.end(1);
    host.networks.remove(key().alloc, work.address).unwrap();
}
