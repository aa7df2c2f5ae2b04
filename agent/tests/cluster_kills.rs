//! A node of a cluster of three servers of Nomad: the agent and the leader are killed with -9 at random moments, again and
//! again, while allocations are started, restarted and stopped; then the agent is away until servers do not know any more
//! what became of its allocations, and at last all servers are away for a time. Where there is no program `nomad` on the
//! PATH, this test says so and passes.
//!
//! Each task holds a lock of its place among the copies for as long as it lives, whatever allocation it is of. In the end
//! each place is filled, the servers and the node say the same, no two processes had one place at the same time, and what
//! nobody disturbed is the same processes as in the beginning, with the same services.
//!
//! The agent is killed 20 times, or as often as `DROVER_KILLS` says, and the leader at each fifth of these; `DROVER_AWAY` says
//! for how many seconds all servers are away (10 if it does not); `DROVER_SEED` repeats a run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::kills::{env_number, running, spin};
use support::nomad::Cluster;
use support::{Dice, Lone, TIMEOUT, shims};

/// The task: `$1` is a directory for its notes.
const SCRIPT: &str = r#"
place="$NOMAD_JOB_NAME.$NOMAD_GROUP_NAME.$NOMAD_ALLOC_INDEX"
exec 9>>"$1/lock.$place"
flock -n 9 || echo "$place $NOMAD_ALLOC_ID" >> "$1/twice"
echo "$place $$" >> "$1/launches"
trap 'exit 0' INT
while true; do
  sleep 0.05 9>&-
done
"#;

/// A job of these many copies.
fn job(name: &str, kind: &str, copies: usize, notes: &Path) -> Value {
    json!({
        "ID": name,
        "Name": name,
        "Type": kind,
        "Datacenters": ["dc1"],
        "TaskGroups": [{
            "Name": "g",
            "Count": copies,
            "RestartPolicy": {
                "Attempts": 1_000_000, "Interval": 3_600_000_000_000_i64,
                "Delay": 1_000_000, "Mode": "delay",
            },
            "Tasks": [{
                "Name": "t",
                "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", SCRIPT, "task", notes] },
                "Resources": { "CPU": 20, "MemoryMB": 20 },
                "KillTimeout": 2_000_000_000_i64,
            }],
        }],
    })
}

const SECOND: i64 = 1_000_000_000;

/// A job that nobody disturbs: servers wait for it when its node is away. Each copy is an instance of a service.
fn still(name: &str, kind: &str, copies: usize, notes: &Path) -> Value {
    let mut job = job(name, kind, copies, notes);
    let group = &mut job["TaskGroups"][0];
    group["Disconnect"] = json!({ "LostAfter": 600 * SECOND });
    group["Networks"] = json!([{ "DynamicPorts": [{ "Label": "http" }] }]);
    group["Services"] = json!([{ "Name": name, "Provider": "nomad", "PortLabel": "http" }]);
    job
}

/// What nobody disturbs, and what everybody does.
const STILL: [(&str, &str, usize); 2] = [("still", "service", 4), ("system", "system", 1)];
const DISTURBED: (&str, &str, usize) = ("disturbed", "service", 6);

/// What nobody disturbed: the processes that each place ever had, and the instances of services, each with its
/// allocation and where it is.
#[derive(Debug, PartialEq)]
struct Undisturbed {
    processes: BTreeMap<String, Vec<String>>,
    instances: BTreeMap<String, [Value; 3]>,
}

impl Undisturbed {
    /// Once servers know as many instances as there are copies.
    fn of(cluster: &Cluster, notes: &Path) -> Undisturbed {
        let text = fs::read_to_string(notes.join("launches")).unwrap_or_default();
        let mut processes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let is_still = |line: &&str| STILL.iter().any(|it| line.starts_with(it.0));
        for (place, pid) in text
            .lines()
            .filter(is_still)
            .filter_map(|it| it.split_once(' '))
        {
            processes
                .entry(place.to_owned())
                .or_default()
                .push(pid.to_owned());
        }
        let instances = STILL.into_iter().flat_map(|(name, _, copies)| {
            cluster.wait(&format!("/v1/service/{name}"), |all| {
                let all = all.as_array().filter(|all| all.len() == copies)?;
                let instance = |it: &Value| {
                    let known_instance =
                        ["AllocID", "Address", "Port"].map(|name| it[name].clone());
                    Some((it["ID"].as_str()?.to_owned(), known_instance))
                };
                all.iter().map(instance).collect::<Option<Vec<_>>>()
            })
        });
        let instances = instances.collect();
        Undisturbed {
            processes,
            instances,
        }
    }

    /// Each place has one process, which runs.
    fn is_whole(&self) -> bool {
        let runs = |pids: &Vec<String>| match pids.as_slice() {
            [pid] => Path::new("/proc").join(pid).exists(),
            _ => false,
        };
        let copies: usize = STILL.iter().map(|it| it.2).sum();
        let counts = [self.processes.len(), self.instances.len()];
        counts == [copies, copies] && self.processes.values().all(runs)
    }
}

/// Waits until servers know that all copies of all jobs run.
fn all_run(cluster: &Cluster) {
    for (name, _, copies) in STILL.into_iter().chain([DISTURBED]) {
        wait_running(cluster, name, copies);
    }
}

/// Agents are killed so often, and leaders now and then, while operators disturb what they may.
fn killed(cluster: &mut Cluster, mut lone: Lone, count: u64, dice: &mut Dice) -> Lone {
    for _ in 0..count {
        for _ in 0..dice.below(3) {
            disturb(cluster, dice);
        }
        spin(dice.below(60_000));
        if dice.below(5) == 0 {
            let leader = cluster.leader();
            leader.kill_9();
            spin(dice.below(60_000));
            leader.start_again();
        }
        lone = lone.next_agent();
    }
    lone
}

/// The agent is away for so long that servers do not know any more what became of what runs there. The next one goes on.
fn stays_away(cluster: &Cluster, lone: Lone) -> Lone {
    lone.next_agent_after(|| {
        for (name, _, copies) in STILL {
            cluster.wait(&format!("/v1/job/{name}/allocations"), |allocs| {
                let allocs = allocs.as_array()?.iter();
                let unknown = allocs.filter(|it| it["ClientStatus"] == "unknown");
                (unknown.count() == copies).then_some(())
            });
        }
    })
}

/// Something that an operator asks the servers for. It may be refused.
fn disturb(cluster: &Cluster, dice: &mut Dice) {
    let path = format!("/v1/job/{}/allocations", DISTURBED.0);
    let Some(allocs) = cluster.ask("GET", &path, "") else {
        return;
    };
    let wanted = allocs.as_array().into_iter().flatten();
    let wanted: Vec<&Value> = wanted.filter(|it| it["DesiredStatus"] == "run").collect();
    if wanted.is_empty() {
        return;
    }
    let at = usize::try_from(dice.below(wanted.len() as u64)).unwrap();
    let id = wanted[at]["ID"].as_str().unwrap();
    let signal = |name: &str| json!({ "Signal": name }).to_string();
    let (path, body) = match dice.below(4) {
        0 => (
            format!("/v1/client/allocation/{id}/restart"),
            "{}".to_owned(),
        ),
        1 => (format!("/v1/allocation/{id}/stop"), "{}".to_owned()),
        2 => (
            format!("/v1/client/allocation/{id}/signal"),
            signal("SIGINT"),
        ),
        _ => (
            format!("/v1/client/allocation/{id}/signal"),
            signal("SIGKILL"),
        ),
    };
    drop(cluster.ask("PUT", &path, &body));
}

/// Waits until the servers know that all copies of a job run.
fn wait_running(cluster: &Cluster, name: &str, copies: usize) {
    cluster.wait(&format!("/v1/job/{name}/allocations"), |allocs| {
        (running(allocs) == copies).then_some(())
    });
}

/// The node runs a job that it did not know: so it has heard of all else, too.
fn runs_another(cluster: &Cluster, name: &str, notes: &Path) {
    let body = json!({ "Job": job(name, "service", 1, notes) }).to_string();
    let until = Instant::now() + TIMEOUT;
    while cluster.ask("PUT", "/v1/jobs", &body).is_none() {
        assert!(Instant::now() < until, "no server takes a job");
    }
    wait_running(cluster, name, 1);
}

/// What is said of the allocations that are to run.
fn alive(allocs: &Value) -> BTreeMap<String, String> {
    let all = allocs.as_array().unwrap().iter();
    let wanted = all.filter(|it| it["DesiredStatus"] == "run");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    wanted
        .map(|it| (text(&it["ID"]), text(&it["ClientStatus"])))
        .collect()
}

/// Servers and node say the same of all allocations.
fn agree(cluster: &Cluster, lone: &Lone) {
    let until = Instant::now() + TIMEOUT;
    loop {
        let there = cluster.wait("/v1/allocations", |all| Some(alive(all)));
        let here = alive(&lone.agent.get("/v1/allocations"));
        if there == here {
            return;
        }
        assert!(Instant::now() < until, "servers {there:?}, node {here:?}");
        std::thread::yield_now();
    }
}

#[test]
fn killed_agent_and_servers_double_nothing_and_restart_nothing_healthy() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let count = env_number("DROVER_KILLS", 20);
    let away = env_number("DROVER_AWAY", 10);
    let seed = env_number("DROVER_SEED", u64::from(std::process::id()));
    eprintln!("{count} kills, {away} s without servers, DROVER_SEED={seed}");
    let mut dice = Dice(seed);
    let notes = tempfile::tempdir().unwrap();
    let servers: Vec<&str> = cluster.servers.iter().map(|it| it.rpc.as_str()).collect();
    let mut lone = Lone::configured(&format!("client {{\n servers = {servers:?}\n}}\n"));
    let node = |nodes: &Value| (nodes[0]["Status"] == "ready").then_some(());
    cluster.wait("/v1/nodes", node);
    let jobs = STILL.map(|(name, kind, copies)| still(name, kind, copies, notes.path()));
    let (name, kind, copies) = DISTURBED;
    let disturbed = job(name, kind, copies, notes.path());
    for job in jobs.into_iter().chain([disturbed]) {
        let body = json!({ "Job": job }).to_string();
        assert!(cluster.ask("PUT", "/v1/jobs", &body).is_some());
    }
    all_run(&cluster);
    let before = Undisturbed::of(&cluster, notes.path());
    assert!(before.is_whole(), "{before:?}");
    lone = killed(&mut cluster, lone, count, &mut dice);
    all_run(&cluster);
    lone = stays_away(&cluster, lone);
    all_run(&cluster);
    let now = Undisturbed::of(&cluster, notes.path());
    assert_eq!(
        now, before,
        "healthy, and not left alone while the agent was away"
    );
    runs_another(&cluster, "before", notes.path());
    cluster.servers.iter_mut().for_each(|it| it.kill_9());
    std::thread::sleep(Duration::from_secs(away));
    lone = lone.next_agent();
    cluster.servers.iter_mut().for_each(|it| it.start_again());
    cluster.leader();
    runs_another(&cluster, "after", notes.path());
    all_run(&cluster);
    agree(&cluster, &lone);
    let now = Undisturbed::of(&cluster, notes.path());
    assert_eq!(now, before, "healthy, and not left alone");
    assert!(now.is_whole(), "{now:?}");
    let twice = fs::read_to_string(notes.path().join("twice"));
    assert_eq!(twice.unwrap_or_default(), "", "two at a time in one place");
    let names = STILL.into_iter().chain([DISTURBED]).map(|(name, ..)| name);
    let names = names.chain(["before", "after"]);
    for name in names {
        assert!(
            cluster
                .ask("DELETE", &format!("/v1/job/{name}"), "")
                .is_some()
        );
    }
    cluster.wait("/v1/allocations", |allocs| {
        // Servers gave some up while the node was away.
        let over = |it: &Value| matches!(it["ClientStatus"].as_str(), Some("complete" | "lost"));
        let mut all = allocs.as_array()?.iter();
        all.all(over).then_some(())
    });
    assert_eq!(shims(&lone.world.data()), [""; 0], "helpers are left");
}
