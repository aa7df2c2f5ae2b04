//! `system destroy` removes a data directory with everything that agents made from it, and nothing
//! that runs unless it is told to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;
use support::{Agent, Ended, Program, World, free_addr, shims};

fn destroy(data: &Path, options: &[&str]) -> Ended {
    let mut args = vec!["system", "destroy", "-data-dir", data.to_str().unwrap()];
    args.extend(options);
    Program::run(args)
}

#[track_caller]
fn is_refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, 1, "{ended:?}");
    for part in words {
        assert!(ended.err.contains(part), "no {part:?} in {}", ended.err);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mounts_below(dir: &Path) -> usize {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .filter(|point| Path::new(point).starts_with(dir))
        .count()
}

/// Runs a task that notes that it was asked to end.
fn run_job(agent: &Agent, note: &Path) {
    let script = format!(
        "trap 'echo asked > {}; exit 0' TERM; while :; do sleep 0.1; done",
        note.display()
    );
    let config = json!({ "command": "/bin/sh", "args": ["-c", script] });
    let task = json!({ "Name": "t", "Driver": "raw_exec", "Config": config });
    let job = json!({ "Job": { "ID": "j", "TaskGroups": [{ "Name": "g", "Tasks": [task] }] } });
    let (status, body) = agent.put("/v1/jobs", &job).unwrap();
    assert_eq!(status, 200, "{body}");
    agent.wait_for("/v1/allocations", |allocs| {
        (allocs[0]["ClientStatus"] == "running").then_some(())
    });
}

#[test]
fn directory_of_running_agent_is_not_destroyed() {
    let world = World::new();
    let data = world.data();
    let agent = Agent::start(&data, &free_addr());
    let words = [
        "an agent runs in",
        data.to_str().unwrap(),
        "Nothing was removed",
    ];
    is_refused(&destroy(&data, &["-yes", "-stop-tasks"]), &words);
    agent.get("/v1/jobs");
}

#[test]
fn directory_with_tasks_is_destroyed_only_with_flag() {
    let world = World::new();
    let (data, note) = (world.data(), world.path("note"));
    let agent = Agent::start(&data, &free_addr());
    run_job(&agent, &note);
    agent.kill_9();
    let launches = world.launches_of_tasks(1);
    let (running, mounted) = (shims(&data), mounts_below(&data));
    assert_eq!(mounted, usize::from(is_root()), "the secrets of the task");
    let words = [
        "still run",
        running[0].as_str(),
        "-stop-tasks",
        "Nothing was removed",
    ];
    is_refused(&destroy(&data, &["-yes"]), &words);
    is_refused(&destroy(&data, &["-stop-tasks"]), &["use -yes"]);
    assert_eq!((shims(&data), mounts_below(&data)), (running, mounted));
    let agent = Agent::start(&data, &free_addr());
    agent.wait_for("/v1/allocations", |allocs| {
        (allocs[0]["ClientStatus"] == "running").then_some(())
    });
    agent.kill_9();

    let ended = destroy(&data, &["-yes", "-stop-tasks"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains(": removed"), "{}", ended.out);
    assert!(!data.exists());
    assert_eq!(mounts_below(&data), 0);
    assert_eq!(fs::read_to_string(&note).unwrap(), "asked\n");
    world.is_left_clean(&launches);
}

#[test]
fn directory_with_foreign_files_is_not_destroyed() {
    let world = World::new();
    let data = world.data();
    is_refused(&destroy(&data, &["-yes"]), &["cannot read", "No such file"]);
    fs::create_dir(&data).unwrap();
    fs::write(data.join("precious"), "mine").unwrap();
    is_refused(&destroy(&data, &["-yes"]), &["is no data directory"]);
    Agent::start(&data, &free_addr()).kill_9();
    is_refused(&destroy(&data, &["-yes"]), &["no agent made: precious"]);
    assert_eq!(fs::read_to_string(data.join("precious")).unwrap(), "mine");
    assert!(data.join("state/records/db").exists());
    fs::rename(data.join("precious"), world.path("precious")).unwrap();
    fs::rename(data.join("state"), data.join("state.damaged")).unwrap();
    assert_eq!(destroy(&data, &["-yes"]).code, 0);
    assert!(!data.exists());
}

#[test]
fn mount_point_directory_is_emptied() {
    let world = World::new();
    let data = world.data();
    fs::create_dir(&data).unwrap();
    if mount("none", &data, "tmpfs", MountFlags::empty(), None).is_err() {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    Agent::start(&data, &free_addr()).kill_9();
    let ended = destroy(&data, &["-yes"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.contains("it is a mount point"), "{}", ended.out);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    unmount(&data, UnmountFlags::DETACH).unwrap();
}
