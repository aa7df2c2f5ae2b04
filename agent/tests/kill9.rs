//! Nothing twice, nothing lost: the agent is killed with -9 at random moments, again and again,
//! while tasks are started, restarted and stopped.
//!
//! Each task notes its launch (from the name of its control group) when it begins, holds a lock
//! for as long as it lives, and writes numbered lines. In the end no launch has begun twice, no
//! two processes of one task lived at the same time, no process is left without an owner, a
//! stranger was not touched, and every line is in the logs, once and whole.
//!
//! The number of kills is 40, or what `DROVER_KILLS` says (200 in CI); `DROVER_SEED` repeats a run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::kills::{self, Stranger, check_lines, env_number, running, spin, stop_everything};
use support::{Agent, Dice, World, free_addr, shims};

const TASKS: u64 = 20;

/// The task: `$1` is a directory for its notes.
const SCRIPT: &str = r#"
launch=$(sed -n 's|.*/drover/||p' /proc/self/cgroup | head -n 1)
me="$NOMAD_ALLOC_ID.$NOMAD_TASK_NAME"
exec 9>>"$1/lock.$me"
flock -n 9 || echo "$me $launch" >> "$1/twice"
echo "$launch" >> "$1/launches"
trap 'exit 0' INT
i=0
while true; do
  i=$((i + 1))
  echo "$launch line $i end"
  echo "$i" > "$1/count.$launch"
  [ $((i % 50)) -eq 0 ] && read -r _ < /dev/null
  sleep 0.002 9>&-
done
"#;

#[test]
fn killed_agent_starts_nothing_twice_and_loses_no_log() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: without root there are no control groups to know launches by");
        return;
    }
    let count = env_number("DROVER_KILLS", 40);
    let seed = env_number("DROVER_SEED", u64::from(std::process::id()));
    eprintln!("{count} kills, DROVER_SEED={seed}");
    let mut dice = Dice(seed);
    let world = World::new();
    let notes = world.path("notes");
    fs::create_dir(&notes).unwrap();
    let stranger = Stranger::start();
    let data = world.path("data");

    let addr = free_addr();
    let mut agent = Agent::start(&data, &addr);
    register(&agent, &notes);
    for _ in 0..count {
        for _ in 0..dice.below(4) {
            if !kills::disturb(&agent, &mut dice) {
                register(&agent, &notes);
            }
        }
        spin(dice.below(60_000));
        agent.kill_9();
        agent = Agent::start(&data, &addr);
    }
    register(&agent, &notes);
    agent.wait_for("/v1/allocations", |allocs| {
        (running(allocs) == usize::try_from(TASKS).unwrap()).then_some(())
    });
    stop_everything(&agent, "kill9");

    check_launches(&notes);
    check_lines(&data, &notes, |_| true);
    assert_eq!(
        shims(&data),
        Vec::<String>::new(),
        "processes without an owner"
    );
    stranger.must_be_untouched();
    // Purged: now the directories go too.
    let purge = agent.delete("/v1/job/kill9?purge=true");
    assert_eq!(purge.map(|(status, _)| status), Some(200));
    agent.wait_for("/v1/allocations", |allocs| {
        allocs.as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(fs::read_dir(data.join("alloc")).unwrap().count(), 0);
}

fn register(agent: &Agent, notes: &Path) {
    let task = |n: u64| {
        json!({
            "Name": format!("t{n}"),
            "Driver": "raw_exec",
            "Config": { "command": "/bin/sh", "args": ["-c", SCRIPT, "task", notes] },
            "Resources": { "CPU": 10, "MemoryMB": 16 },
            "LogConfig": { "MaxFiles": 10, "MaxFileSizeMB": 10 },
            "KillTimeout": 2_000_000_000_i64,
        })
    };
    let group = |n: u64| {
        json!({
            "Name": format!("g{n}"),
            "Count": 1,
            "Tasks": [task(n)],
            "RestartPolicy": {
                "Attempts": 1_000_000, "Interval": 3_600_000_000_000_i64,
                "Delay": 1_000_000, "Mode": "delay",
            },
        })
    };
    let groups: Vec<Value> = (0..TASKS).map(group).collect();
    let job = json!({ "Job": { "ID": "kill9", "Type": "service", "TaskGroups": groups } });
    let (status, body) = agent
        .put("/v1/jobs", &job)
        .expect("the agent takes the job");
    assert_eq!(status, 200, "{body}");
}

fn check_launches(notes: &Path) {
    assert_eq!(
        fs::read_to_string(notes.join("twice")).unwrap_or_default(),
        "",
        "two at a time"
    );
    let launches = fs::read_to_string(notes.join("launches")).unwrap();
    let mut seen = BTreeSet::new();
    for launch in launches.lines() {
        assert_eq!(
            launch.len(),
            36,
            "a launch is known by its group: {launch:?}"
        );
        assert!(seen.insert(launch), "launch {launch} began twice");
    }
    eprintln!("{} launches", seen.len());
}
