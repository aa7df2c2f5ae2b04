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

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
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
    let kills = env_number("DROVER_KILLS", 40);
    let seed = env_number("DROVER_SEED", u64::from(std::process::id()));
    eprintln!("{kills} kills, DROVER_SEED={seed}");
    let mut dice = Dice(seed);
    let world = World::new();
    let notes = world.path("notes");
    fs::create_dir(&notes).unwrap();
    let stranger = Stranger::start();
    let data = world.path("data");

    let addr = free_addr();
    let mut agent = Agent::start(&data, &addr);
    register(&agent, &notes);
    for _ in 0..kills {
        for _ in 0..dice.below(4) {
            disturb(&agent, &notes, &mut dice);
        }
        spin(dice.below(60_000));
        agent.kill_9();
        agent = Agent::start(&data, &addr);
    }
    register(&agent, &notes);
    agent.wait_for("/v1/allocations", |allocs| {
        (running(allocs) == usize::try_from(TASKS).unwrap()).then_some(())
    });
    stop_everything(&agent);

    check_launches(&notes);
    check_lines(&data, &notes);
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

fn env_number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Lets some time pass without a clock: a number of system calls.
fn spin(rounds: u64) {
    for _ in 0..rounds {
        std::thread::yield_now();
    }
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

/// Something that an operator may do. It may be refused, and the agent may die over it.
fn disturb(agent: &Agent, notes: &Path, dice: &mut Dice) {
    let allocs = agent.get("/v1/allocations");
    let allocs = allocs.as_array().unwrap();
    let alive: Vec<&Value> = allocs
        .iter()
        .filter(|a| a["DesiredStatus"] == "run")
        .collect();
    if alive.is_empty() {
        return register(agent, notes);
    }
    let at = usize::try_from(dice.below(alive.len() as u64)).unwrap();
    let id = alive[at]["ID"].as_str().unwrap();
    let nothing = json!({});
    match dice.below(6) {
        0 | 1 => agent.put(&format!("/v1/client/allocation/{id}/restart"), &nothing),
        2 => agent.put(&format!("/v1/allocation/{id}/stop"), &nothing),
        3 => agent.put(
            &format!("/v1/client/allocation/{id}/signal"),
            &json!({"Signal": "SIGINT"}),
        ),
        4 => agent.put(
            &format!("/v1/client/allocation/{id}/signal"),
            &json!({"Signal": "SIGKILL"}),
        ),
        _ => agent.put("/v1/system/gc", &nothing),
    };
}

fn running(allocs: &Value) -> usize {
    let running =
        |alloc: &&Value| alloc["ClientStatus"] == "running" && alloc["DesiredStatus"] == "run";
    allocs.as_array().unwrap().iter().filter(running).count()
}

fn stop_everything(agent: &Agent) {
    let stopped = agent.delete("/v1/job/kill9?purge=false");
    assert_eq!(stopped.map(|(status, _)| status), Some(200));
    agent.wait_for("/v1/allocations", |allocs| {
        let over = |alloc: &Value| {
            let tasks = alloc["TaskStates"].as_object();
            tasks.is_some_and(|tasks| tasks.values().all(|task| task["State"] == "dead"))
        };
        allocs.as_array().unwrap().iter().all(over).then_some(())
    });
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

/// Every line that a task says it wrote is in the logs that are left, once, whole and in order.
fn check_lines(data: &Path, notes: &Path) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = 0;
    for log in logs(data) {
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [launch, "line", number, "end"] = words.as_slice() else {
                panic!("a torn line: {line:?}")
            };
            let number: u64 = number.parse().unwrap();
            let before = last.insert((*launch).to_owned(), number).unwrap_or(0);
            assert_eq!(number, before + 1, "launch {launch}: after line {before}");
            lines += 1;
        }
    }
    for (launch, number) in &last {
        let count = fs::read_to_string(notes.join(format!("count.{launch}")));
        let count: u64 = count
            .ok()
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0);
        assert!(
            *number >= count,
            "launch {launch} wrote {count} lines, and {number} are there"
        );
    }
    eprintln!("{lines} lines of {} launches are complete", last.len());
}

/// The standard output of every task, its files put together.
fn logs(data: &Path) -> Vec<String> {
    let mut logs = Vec::new();
    for alloc in fs::read_dir(data.join("alloc")).unwrap() {
        let dir = alloc.unwrap().path().join("alloc/logs");
        let mut files: Vec<PathBuf> = fs::read_dir(&dir)
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        files.retain(|file| file.to_string_lossy().contains(".stdout."));
        let number = |file: &PathBuf| -> u64 {
            file.extension().unwrap().to_str().unwrap().parse().unwrap()
        };
        files.sort_by_key(number);
        logs.push(
            files
                .iter()
                .map(|file| fs::read_to_string(file).unwrap())
                .collect(),
        );
    }
    logs
}

/// A process that is none of the agent's business.
struct Stranger(Child);

impl Stranger {
    fn start() -> Stranger {
        let child = Command::new("sleep")
            .arg("100000")
            .stdin(Stdio::null())
            .spawn();
        Stranger(child.unwrap())
    }

    fn must_be_untouched(mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "a stranger was signalled");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
