//! Nothing twice, nothing lost, of tasks that are kept apart: the agent and its container engine are killed with -9 at
//! random moments, again and again, while tasks of `exec` and `docker`, some of them behind the bridge, are started,
//! restarted and stopped.
//!
//! Each task writes down that it has its place among the copies, whatever allocation it is of, and looks for as long as it
//! lives, also while it ends, whether another has it. In the end each place is filled, the web servers answer where the
//! API says, no two processes had one place at the same time, every line of `exec` tasks is in the logs, once and whole,
//! no line of `docker` tasks is there twice, and no process, container, network, mount or control group is left.
//!
//! The agent is killed 20 times, or as often as `DROVER_KILLS` says, and the engine eight times, or as often as
//! `DROVER_ENGINE_KILLS` says, half of these together with the agent; `DROVER_SEED` repeats a run. Without root or an
//! engine this test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../io-real/tests/common/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod engine;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use engine::{Engine, IMAGE};
use serde_json::Value;
use support::kills::{self, Stranger, check_lines, env_number, running, spin, stop_everything};
use support::netns::{has_port_link, leave_network, links};
use support::{Dice, Lone, TIMEOUT, exchange, shims};

/// The task. What has a port is a web server besides.
const SCRIPT: &str = r#"
run=$(cat /proc/sys/kernel/random/uuid)
place="$NOMAD_GROUP_NAME.$NOMAD_ALLOC_INDEX"
echo "$run" > "/notes/at.$place"
[ -n "$NOMAD_PORT_http" ] && /bin/busybox httpd -p "$NOMAD_PORT_http" -h /local
echo "$NOMAD_ALLOC_ID $run" >> /notes/runs
left=-1
trap 'left=25' INT
i=0
while [ $left -ne 0 ]; do
  left=$((left - 1))
  i=$((i + 1))
  echo "$run line $i end"
  echo "$i" > "/notes/count.$run"
  read -r at < "/notes/at.$place"
  [ "$at" = "$run" ] || echo "$place $run $at" >> /notes/twice
  sleep 0.02
done
"#;

/// The groups: their names, drivers, whether they are behind the bridge, and how many copies they have.
const GROUPS: [(&str, &str, bool, usize); 4] = [
    ("exec", "exec", false, 3),
    ("exec-web", "exec", true, 2),
    ("docker", "docker", false, 3),
    ("docker-web", "docker", true, 2),
];

fn group((name, driver, bridge, copies): (&str, &str, bool, usize)) -> String {
    let network = match bridge {
        true => "network {\n mode = \"bridge\"\n port \"http\" {}\n }\n",
        false => "",
    };
    let (image, ports) = match (driver, bridge) {
        ("docker", true) => (format!("image = \"{IMAGE}\"\n"), "ports = [\"http\"]\n"),
        ("docker", false) => (format!("image = \"{IMAGE}\"\n"), ""),
        _ => (String::new(), ""),
    };
    format!(
        r#"
  group "{name}" {{
    count = {copies}
    {network}
    volume "notes" {{
      type   = "host"
      source = "notes"
    }}
    restart {{
      attempts = 1000000
      interval = "1h"
      delay    = "1ms"
      mode     = "delay"
    }}
    task "t" {{
      driver       = "{driver}"
      kill_timeout = "2s"
      config {{
        {image}{ports}
        command = "/bin/sh"
        args    = ["/local/run"]
      }}
      template {{
        data        = <<EOF
{SCRIPT}EOF
        destination = "local/run"
      }}
      template {{
        data        = "here"
        destination = "local/index.html"
      }}
      volume_mount {{
        volume      = "notes"
        destination = "/notes"
      }}
      resources {{
        cpu    = 10
        memory = 32
      }}
    }}
  }}
"#
    )
}

fn start(engine: &Engine, notes: &Path) -> Lone {
    let (socket, notes) = (engine.socket(), notes.display());
    let socket = socket.display();
    Lone::configured(&format!(
        "client {{\n host_volume \"notes\" {{\n path = \"{notes}\"\n }}\n}}\nplugin \"docker\" {{\n config {{\n endpoint \
         = \"unix://{socket}\"\n }}\n}}\n"
    ))
}

fn register(lone: &Lone) {
    let groups: String = GROUPS.into_iter().map(group).collect();
    let file = lone
        .world
        .file("apart.hcl", &format!("job \"apart\" {{{groups}}}\n"));
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// Why drivers or networks that the tasks need cannot be had here.
fn missing(lone: &Lone) -> Option<String> {
    let drivers = lone.agent.wait_for("/v1/nodes?resources=true", |nodes| {
        let drivers = &nodes.get(0)?["Drivers"];
        let known = !drivers["exec"].is_null() && drivers["docker"]["Healthy"] == true;
        known.then(|| nodes[0].clone())
    });
    let exec = &drivers["Drivers"]["exec"];
    let id = drivers["ID"].as_str().unwrap();
    let node = lone.agent.get(&format!("/v1/node/{id}"));
    let fault = node["Attributes"]["network.bridge.fault"].as_str();
    let fault = fault.map(str::to_owned);
    fault.or_else(|| (exec["Healthy"] != true).then(|| exec.to_string()))
}

/// Who is killed.
#[derive(Clone, Copy)]
enum Kill {
    Agent,
    Engine,
    Both,
}

/// So many kills of the agent and so many of the engine, as many of these together as alone, in any order.
fn all_kills(of_agent: u64, of_engine: u64, dice: &mut Dice) -> Vec<Kill> {
    let both = (of_engine / 2).min(of_agent);
    let mut all = Vec::new();
    all.extend((both..of_agent).map(|_| Kill::Agent));
    all.extend((both..of_engine).map(|_| Kill::Engine));
    all.extend((0..both).map(|_| Kill::Both));
    for last in (1..all.len()).rev() {
        let with = dice.below(last as u64 + 1);
        all.swap(last, usize::try_from(with).unwrap());
    }
    all
}

#[test]
fn killed_agent_and_engine_start_nothing_twice_and_leave_nothing() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: not root");
    }
    let count = env_number("DROVER_KILLS", 20);
    let engine_count = env_number("DROVER_ENGINE_KILLS", 8.min(count));
    let seed = env_number("DROVER_SEED", u64::from(std::process::id()));
    let mut dice = Dice(seed);
    let Some(()) = leave_network() else { return };
    // With or without: then its containers live on while it is away, or end with it.
    let keeps = dice.below(2) == 0;
    let Some(mut engine) = Engine::start(keeps) else {
        return;
    };
    eprintln!(
        "{count} kills of the agent, {engine_count} of the engine, DROVER_SEED={seed}, live-restore {keeps}"
    );
    let notes = tempfile::tempdir().unwrap();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(notes.path(), everybody.clone()).unwrap();
    for name in ["twice", "runs"] {
        let file = notes.path().join(name);
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, everybody.clone()).unwrap();
    }
    let mut lone = start(&engine, notes.path());
    if let Some(why) = missing(&lone) {
        return eprintln!("skipped: {why}");
    }
    let stranger = Stranger::start();
    let other = engine.says(&[
        "run",
        "-d",
        "--network",
        "none",
        IMAGE,
        "/bin/sleep",
        "100000",
    ]);
    register(&lone);
    for kill in all_kills(count, engine_count, &mut dice) {
        for _ in 0..dice.below(3) {
            if !kills::disturb(&lone.agent, &mut dice) {
                register(&lone);
            }
        }
        spin(dice.below(200_000));
        match kill {
            Kill::Agent => lone = lone.next_agent_after(|| {}),
            Kill::Engine => {
                engine.kill_9();
                spin(dice.below(200_000));
                engine.begin();
            }
            Kill::Both => {
                lone = lone.next_agent_after(|| {
                    engine.kill_9();
                    engine.begin();
                });
            }
        }
    }
    register(&lone);
    let wanted: usize = GROUPS.iter().map(|it| it.3).sum();
    lone.agent.wait_for("/v1/allocations", |allocs| {
        (running(allocs) == wanted).then_some(())
    });
    web_servers_answer(&lone);
    stop_everything(&lone.agent, "apart");
    let twice = fs::read_to_string(notes.path().join("twice")).unwrap();
    assert_eq!(twice, "", "two at a time in one place");
    check_lines_of_exec(&lone, notes.path());
    check_lines_of_docker(&lone, engine_count == 0);
    left_clean(&lone, &engine, &other);
    if keeps {
        let state = [
            "inspect",
            "-f",
            "{{.State.Running}} {{.RestartCount}}",
            &other,
        ];
        assert_eq!(engine.says(&state), "true 0", "another's container");
    }
    stranger.must_be_untouched();
}

/// Each allocation behind the bridge serves at the address that the API tells.
fn web_servers_answer(lone: &Lone) {
    let until = Instant::now() + TIMEOUT;
    loop {
        // One whose container ended with its engine may be found out just now.
        let allocs = lone.agent.get("/v1/job/apart/allocations");
        let allocs = allocs.as_array().unwrap().iter();
        let web = allocs.filter(|it| it["TaskGroup"].as_str().unwrap().ends_with("-web"));
        let runs = web.filter(|it| it["DesiredStatus"] == "run");
        if runs.filter(|alloc| serves(lone, alloc)).count() == 4 {
            return;
        }
        assert!(Instant::now() < until, "not all web servers answer");
        std::thread::yield_now();
    }
}

fn serves(lone: &Lone, alloc: &Value) -> bool {
    let path = format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap());
    let Some(whole) = lone.agent.try_get(&path) else {
        return false;
    };
    let ports = &whole["AllocatedResources"]["Shared"]["Ports"][0];
    let port = match ports["To"].as_i64() {
        Some(to) if to > 0 => Some(to),
        _ => ports["Value"].as_i64(),
    };
    let own = whole["NetworkStatus"]["Address"].as_str();
    let (Some(own), Some(port)) = (own, port) else {
        return false;
    };
    let answer = exchange(&format!("{own}:{port}"), b"GET / HTTP/1.0\r\n\r\n");
    answer.is_ok_and(|(status, body)| status == 200 && body == "here")
}

/// The allocations of groups whose names begin so.
fn allocs_of(lone: &Lone, groups: &str) -> Vec<String> {
    let allocs = lone.agent.get("/v1/job/apart/allocations?all=true");
    let of_them = |it: &&Value| it["TaskGroup"].as_str().unwrap().starts_with(groups);
    let of_them = allocs.as_array().unwrap().iter().filter(of_them);
    of_them
        .map(|it| it["ID"].as_str().unwrap().to_owned())
        .collect()
}

/// What containers write passes through the engine, which may lose some when it is killed, and tells of it in its own
/// way; nothing is there twice. Where it was not killed, nothing is missing between two lines either.
fn check_lines_of_docker(lone: &Lone, engine_lived: bool) {
    let ids = allocs_of(lone, "docker");
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for log in kills::logs(&lone.world.data(), |id| ids.contains(id)) {
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            // The engine may have been killed in the middle of a line.
            let [run, "line", number, "end"] = words.as_slice() else {
                continue;
            };
            let number: u64 = number.parse().unwrap();
            let before = last.insert((*run).to_owned(), number).unwrap_or(0);
            assert!(number > before, "run {run}: line {number} after {before}");
            // The first files of a long run may be gone.
            let missing = engine_lived && before > 0 && number > before + 1;
            assert!(!missing, "run {run}: nothing between {before} and {number}");
        }
    }
    assert!(!last.is_empty(), "no lines of containers are left");
}

fn check_lines_of_exec(lone: &Lone, notes: &Path) {
    let ids = allocs_of(lone, "exec");
    check_lines(&lone.world.data(), notes, |id| ids.contains(id));
    let runs = fs::read_to_string(notes.join("runs")).unwrap();
    let runs = runs.lines().filter_map(|line| line.split_once(' '));
    let kept = |id: &str| lone.world.data().join("alloc").join(id).is_dir();
    for (id, run) in runs.filter(|(id, _)| ids.iter().any(|it| it == id) && kept(id)) {
        let found = kills::logs(&lone.world.data(), |it| it == id);
        let is_there = found.iter().any(|log| log.contains(run));
        // A run may have ended before its first line.
        let wrote = notes.join(format!("count.{run}")).is_file();
        assert!(
            is_there || !wrote,
            "nothing is left of what run {run} of {id} wrote"
        );
    }
}

/// Nothing is left of what ran, and another's container was not touched.
fn left_clean(lone: &Lone, engine: &Engine, other: &str) {
    let networks = lone.world.data().join("networks");
    let left = || {
        let dirs = fs::read_dir(&networks).unwrap().flatten();
        let dirs: Vec<_> = dirs.map(|it| it.path()).filter(|it| it.is_dir()).collect();
        let containers = engine.says(&["ps", "-aq", "--no-trunc"]);
        let links = links();
        let clean = dirs.is_empty() && containers == other && !has_port_link(&links);
        (!clean).then(|| format!("{dirs:?}, containers {containers}, {links}"))
    };
    let until = Instant::now() + TIMEOUT;
    while let Some(left) = left() {
        assert!(Instant::now() < until, "left: {left}");
        std::thread::yield_now();
    }
    lone.purge("apart");
    assert_eq!(shims(&lone.world.data()), [""; 0], "helpers are left");
    assert_eq!(engine.says(&["volume", "ls", "-q"]), "");
}
