//! Measuring real tasks and this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::disk::Disk;
use common::driver::{World, key, sh};
use common::receive;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::stats::running::Running;
use drover_core::stats::usage::{TaskUsage, Usage};
use drover_io_real::driver::Driver;
use drover_io_real::gate::Gate;
use drover_io_real::sampler::{Depth, Sampler};
use drover_io_real::stats::{Disks, HostSampler};
use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::yield_now;
use tokio::time::timeout;

/// A task that is up, keeps a processor busy and waits for a child.
const BUSY: &str = "sleep 1000 & echo up > up; while :; do :; done";

fn sampler(world: &mut World) -> Sampler {
    let driver: Arc<dyn Driver> = Arc::new(world.life().driver.clone());
    Sampler::new([driver], Gate::default())
}

fn measure(world: &mut World, sampler: &Sampler, launch: u128) -> Option<Arc<TaskUsage>> {
    measure_launch(world, sampler, launch, Depth::Processes)
}

fn measure_launch(
    world: &mut World,
    sampler: &Sampler,
    launch: u128,
    depth: Depth,
) -> Option<Arc<TaskUsage>> {
    let sampled = Running {
        task: key(),
        launch: LaunchId(launch),
        driver: "raw_exec".into(),
    };
    let mhz = Some(1000.0);
    let measure = sampler.refresh(vec![sampled], depth, mhz);
    world.life().runtime.block_on(measure);
    sampler.board().launch(&key(), LaunchId(launch)).cloned()
}

#[test]
fn busy_task_is_measured_at_first_query() {
    let mut world = World::new("stats");
    let grouped = world.groups.is_some();
    let up = world.fifo("up");
    world.start(1, sh(BUSY)).unwrap();
    assert_eq!(receive(&up), "up");
    let sampler = sampler(&mut world);
    // On a machine that has no time for it, it may do nothing in the time of the first look.
    let worked = |it: &Usage| it.cpu.percent.unwrap() > 0.0;
    let mut seen = measure(&mut world, &sampler, 1).unwrap();
    while !worked(&seen.usage) || !seen.processes.values().any(worked) {
        seen = measure(&mut world, &sampler, 1).unwrap();
    }
    let usage = seen.usage;
    assert!(usage.cpu.total_ticks.unwrap() > 0.0, "{usage:?}");
    assert!(usage.memory.rss.unwrap() > 0, "{usage:?}");
    assert_eq!(usage.memory.usage.is_some(), grouped);
    assert_eq!(seen.processes.len(), 2, "the shell and its child");
    assert_eq!(seen.processes.values().filter(|it| worked(it)).count(), 1);
    // Within a second nothing is measured again.
    let next = measure(&mut world, &sampler, 1).unwrap();
    assert!(Arc::ptr_eq(&seen, &next) || next.at.0 - seen.at.0 >= 900_000_000);
    world.end_quietly(1);
}

#[test]
fn ended_task_keeps_last_measurement() {
    let mut world = World::new("stats-gone");
    let sampler = sampler(&mut world);
    assert!(measure(&mut world, &sampler, 7).is_none(), "never started");
    let up = world.fifo("up");
    world.start(1, sh(BUSY)).unwrap();
    assert_eq!(receive(&up), "up");
    let last = measure_launch(&mut world, &sampler, 1, Depth::Totals).unwrap();
    assert!(last.processes.is_empty(), "they were not asked for");
    world.end_quietly(1);
    // Its processes are not known yet, so it is looked for again.
    assert_eq!(measure(&mut world, &sampler, 1).unwrap(), last);
}

#[test]
fn tasks_of_same_alloc_are_measured_together() {
    let mut world = World::new("stats-among");
    let sampler = sampler(&mut world);
    let running = [1, 2, 3].map(|launch| {
        world.start(launch, sh("exec sleep 1000")).unwrap();
        let task = TaskKey {
            alloc: AllocId(launch),
            ..key()
        };
        Running {
            task,
            launch: LaunchId(launch),
            driver: "raw_exec".into(),
        }
    });
    let others = async { Ok::<_, Infallible>(running.to_vec()) };
    let asked = vec![running[1].clone()];
    let measure = sampler.sample_among(asked, Depth::Processes, Some(1000.0), others);
    world.life().runtime.block_on(measure).unwrap();
    for sampled in &running {
        let usage = sampler
            .board()
            .launch(&sampled.task, sampled.launch)
            .cloned();
        let usage = usage.expect("it is measured, though another one was asked for");
        assert!(usage.usage.memory.rss.is_some() && usage.usage.cpu.percent.is_some());
    }
    // From now on all are known: whoever looks at one asks nobody for the others.
    let others = async { Err::<Vec<Running>, _>("the others are asked for again") };
    let asked = vec![running[2].clone()];
    let measure = sampler.sample_among(asked, Depth::Totals, None, others);
    assert_eq!(world.life().runtime.block_on(measure), Ok(()));
    for launch in [1, 2, 3] {
        world.end_quietly(launch);
    }
}

#[test]
fn host_stats_of_this_machine_are_measured() {
    let mut world = World::new("stats-host");
    let disks = Disks::new(world.data.alloc_root().to_owned());
    let sampler = HostSampler::new(disks);
    let measure = sampler.sample(Some(1000.0));
    let host = world.life().runtime.block_on(measure);
    assert!(!host.cores.is_empty());
    for (name, core) in &host.cores {
        assert!((0.0..=100.0).contains(&core.total), "{name} {core:?}");
    }
    assert!(host.memory.total > host.memory.available);
    assert!(host.uptime.is_some() && host.all_ticks().is_some());
    let alloc_dir = host.alloc_dir.unwrap();
    assert!(alloc_dir.size > alloc_dir.available && alloc_dir.used > 0);
}

#[tokio::test]
async fn disk_filled_after_first_look_is_seen_full() {
    let dir = TempDir::new().unwrap();
    let Some(_disk) = Disk::mount(dir.path(), "1m") else {
        return;
    };
    let sampler = HostSampler::new(Disks::new(dir.path().to_owned()));
    let used = async || sampler.sample(None).await.alloc_dir.map(|disk| disk.used);
    let seen = async |expected: u64| {
        let looks = async {
            while used().await != Some(expected) {
                yield_now().await;
            }
        };
        let seen = timeout(Duration::from_secs(60), looks).await;
        seen.expect("the disk is not looked at again");
    };
    // The first pass may take longer than it is waited for.
    seen(0).await;
    fs::write(dir.path().join("half"), vec![1; 512 * 1024]).unwrap();
    // What was found is good for a second.
    seen(512 * 1024).await;
}
