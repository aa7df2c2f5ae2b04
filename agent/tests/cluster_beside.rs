//! An agent and Nomad's own client side by side in a cluster of three servers of Nomad, which place jobs on both, drain one
//! to the other, roll out and preempt; and users who ask about both by the program `nomad`. Where there is none on the
//! PATH, or without root, this test says so and passes.
//!
//! It is one test, because its cluster takes longer to start than most of its parts take.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/beside.rs"]
mod beside;
#[path = "support/shapes.rs"]
mod shapes;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use beside::{BOTH, Beside, OURS, THEIRS, events, everywhere, pin, pinned};
use serde_json::{Value, json};
use support::free_addr;
use support::nomad::job;

const SECOND: i64 = 1_000_000_000;

/// What is tried of both nodes.
type Part = fn(&Beside);

#[test]
fn both_nodes_do_the_same() {
    let Some(beside) = Beside::start() else {
        return;
    };
    let parts: [(&str, Part); 8] = [
        ("job run", submission_is_followed_alike),
        ("system job", system_job_runs_on_both),
        ("batch job", batch_job_completes_on_both),
        ("drain", disk_follows_drains_from_one_to_the_other_and_back),
        ("roll-out", canaries_and_health_decide_over_roll_outs),
        ("preemption", important_job_gets_the_port_of_another),
        ("preemption by system jobs", system_job_preempts_on_both),
        ("commands", shapes::commands_say_the_same),
    ];
    for (name, part) in parts {
        eprintln!("{name}");
        part(&beside);
    }
}

/// What `nomad job run` says of a service on this node until its roll-out is over, without times and names.
fn run(beside: &Beside, node: &str) -> BTreeSet<String> {
    let text = format!(
        "job \"run-1-{node}\" {{
           constraint {{
             attribute = \"${{node.unique.name}}\"
             value = \"{node}\"
           }}
           update {{
             min_healthy_time = \"200ms\"
             health_check = \"task_states\"
           }}
           group \"g\" {{
             task \"t\" {{
               driver = \"raw_exec\"
               config {{
                 command = \"/bin/sleep\"
                 args = [\"1000\"]
               }}
               resources {{
                 cpu = 20
                 memory = 20
               }}
             }}
           }}
         }}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.hcl");
    fs::write(&file, text).unwrap();
    let answer = beside.nomad(&["job", "run", file.to_str().unwrap()]).ok();
    let lines = answer.lines().map(shapes::shape);
    lines.filter(|it| !it.is_empty()).collect()
}

fn submission_is_followed_alike(beside: &Beside) {
    let [ours, theirs] = BOTH.map(|node| run(beside, node));
    assert_eq!(ours, theirs);
    assert!(ours.contains("Status = successful"), "{ours:?}");
    for node in BOTH {
        beside.stop(&format!("run-1-{node}"));
    }
}

fn system_job_runs_on_both(beside: &Beside) {
    beside.submit(&everywhere("everywhere"));
    for node in BOTH {
        beside.alloc("everywhere", node, "running");
    }
    beside.stop("everywhere");
    for node in BOTH {
        beside.alloc("everywhere", node, "complete");
    }
}

fn batch_job_completes_on_both(beside: &Beside) {
    let mut once = job("once", "batch", "echo done; exit 0");
    once["Constraints"] = json!([{ "Operand": "distinct_hosts" }]);
    once["TaskGroups"][0]["Count"] = json!(2);
    beside.submit(&once);
    let ended = BOTH.map(|node| beside.alloc("once", node, "complete"));
    let [ours, theirs] = ended.map(|alloc| {
        let state = &alloc["TaskStates"]["t"];
        assert_eq!(
            (&state["State"], &state["Failed"]),
            (&json!("dead"), &json!(false))
        );
        let kinds: Vec<String> = events(&alloc).into_iter().map(|(kind, _)| kind).collect();
        kinds
    });
    assert_eq!(ours, theirs);
    beside.stop("once");
}

/// The allocation of the job with the disk that runs on this node, once its file has so many lines.
fn runs_with_lines(beside: &Beside, node: &str, lines: usize) {
    let alloc = beside.alloc("db", node, "running");
    let expected = vec!["x"; lines].join("\n");
    for file in ["alloc/data/lines", "t/local/lines"] {
        let id = alloc["ID"].as_str().unwrap();
        let read = || beside.nomad(&["alloc", "fs", id, file]);
        // The task runs before it has added its own line.
        let text = support::until(|| Some(read().out).filter(|it| it.len() >= expected.len()));
        assert_eq!(text, expected, "{file} on {node}: {alloc}");
    }
}

/// What a drain tells, without times and names; what is watched may be told in another order.
fn drain(beside: &Beside, node: &str) -> BTreeSet<String> {
    let id = beside.node(node);
    let answer = beside.nomad(&["node", "drain", "-enable", "-yes", "-deadline", "60s", &id]);
    let answer = answer.ok();
    let lines = answer.lines().filter_map(|line| line.split_once("Z: "));
    lines.map(|(_, line)| shapes::shape(line)).collect()
}

fn disk_follows_drains_from_one_to_the_other_and_back(beside: &Beside) {
    let script =
        "echo x >> $NOMAD_ALLOC_DIR/data/lines; echo x >> $NOMAD_TASK_DIR/lines; exec sleep 1000";
    let mut db = job("db", "service", script);
    db["TaskGroups"][0]["EphemeralDisk"] =
        json!({ "Sticky": true, "Migrate": true, "SizeMB": 300 });
    let eligible = |node: &str, how: &str| {
        let id = beside.node(node);
        beside.nomad(&["node", "eligibility", how, &id]).ok();
    };
    eligible(THEIRS, "-disable");
    beside.submit(&db);
    runs_with_lines(beside, OURS, 1);
    eligible(THEIRS, "-enable");
    let from_ours = drain(beside, OURS);
    runs_with_lines(beside, THEIRS, 2);
    eligible(OURS, "-enable");
    let from_theirs = drain(beside, THEIRS);
    runs_with_lines(beside, OURS, 3);
    eligible(THEIRS, "-enable");
    assert_eq!(from_ours, from_theirs);
    assert!(
        from_ours
            .iter()
            .any(|line| line.contains("status running -> complete")),
        "{from_ours:?}"
    );
    beside.stop("db");
}

/// A job of four, spread over the nodes, whose new versions have a canary.
fn web(script: &str, auto_promote: bool) -> Value {
    let mut web = job("web", "service", script);
    web["Spreads"] = json!([{ "Attribute": "${node.unique.name}", "Weight": 100 }]);
    web["TaskGroups"][0]["Count"] = json!(4);
    web["Update"] = json!({
        "MaxParallel": 2, "Canary": 1, "AutoPromote": auto_promote, "AutoRevert": true, "HealthCheck": "task_states",
        "MinHealthyTime": SECOND / 2, "HealthyDeadline": 40 * SECOND, "ProgressDeadline": 60 * SECOND,
    });
    web
}

/// The deployment of a version of the job, once its status is this one.
fn deployment(beside: &Beside, version: u64, status: &str) -> Value {
    beside.cluster.wait("/v1/job/web/deployments", |all| {
        let mut all = all.as_array()?.iter();
        let fits = |it: &&Value| it["JobVersion"] == version && it["Status"] == status;
        all.find(fits).cloned()
    })
}

/// The four that run this version, by their ids: on which node, and how often each was started.
fn healthy(beside: &Beside, version: u64) -> BTreeMap<String, (String, usize)> {
    beside.allocs("web", |all| {
        let is_one = |it: &&Value| {
            it["JobVersion"] == version
                && it["ClientStatus"] == "running"
                && it["DesiredStatus"] == "run"
                && it["DeploymentStatus"]["Healthy"] == true
        };
        let all: BTreeMap<String, (String, usize)> = all
            .iter()
            .filter(is_one)
            .map(|it| {
                let text = |name: &str| it[name].as_str().unwrap().to_owned();
                let events = events(it).into_iter();
                let starts = events.filter(|(kind, _)| kind == "Started").count();
                (text("ID"), (text("NodeName"), starts))
            })
            .collect();
        (all.len() == 4).then_some(all)
    })
}

fn canaries_and_health_decide_over_roll_outs(beside: &Beside) {
    let on_both = |all: &BTreeMap<String, (String, usize)>| {
        let nodes: BTreeSet<&str> = all.values().map(|(node, _)| node.as_str()).collect();
        assert_eq!(nodes, BTreeSet::from(BOTH), "{all:?}");
    };
    beside.submit(&web("exec sleep 1001", true));
    deployment(beside, 0, "successful");
    on_both(&healthy(beside, 0));
    beside.submit(&web("exec sleep 1002", true));
    let promoted = deployment(beside, 1, "successful");
    assert_eq!(promoted["TaskGroups"]["g"]["Promoted"], true, "{promoted}");
    let mut before = healthy(beside, 1);
    on_both(&before);
    // A canary fails on each of them: everything else goes on as it is, as the version that comes back.
    for (node, failing) in [(OURS, 2), (THEIRS, 4)] {
        let mut bad = web("sleep 0.1; exit 1", true);
        pin(&mut bad, node);
        beside.submit(&bad);
        let failed = deployment(beside, failing, "failed");
        let answer = failed["StatusDescription"].as_str().unwrap();
        assert!(answer.contains("rolling back"), "{failed}");
        let canary = beside.alloc("web", node, "failed");
        assert_eq!(canary["DeploymentStatus"]["Canary"], true, "{canary}");
        assert_eq!(canary["DeploymentStatus"]["Healthy"], false, "{canary}");
        let after = healthy(beside, failing + 1);
        assert_eq!(after, before, "healthy, and not left alone");
        before = after;
    }
    // And one that waits for a person.
    beside.submit(&web("exec sleep 1003", false));
    let waiting = beside.cluster.wait("/v1/job/web/deployments", |all| {
        let mut all = all.as_array()?.iter();
        let fits = |it: &&Value| {
            it["JobVersion"] == 6
                && it["Status"] == "running"
                && it["TaskGroups"]["g"]["HealthyAllocs"] == 1
        };
        all.find(fits).cloned()
    });
    let id = waiting["ID"].as_str().unwrap();
    beside.nomad(&["deployment", "promote", "-detach", id]).ok();
    deployment(beside, 6, "successful");
    on_both(&healthy(beside, 6));
    beside.stop("web");
}

/// When the last event of this type was.
fn last(alloc: &Value, kind: &str) -> i64 {
    let events = events(alloc).into_iter();
    let times = events.filter(|(it, _)| it == kind).map(|(_, at)| at);
    times
        .max()
        .unwrap_or_else(|| panic!("no {kind} in {alloc}"))
}

/// The one that has to go went as a whole before the other one began, and says for whom.
fn preempted(beside: &Beside, node: &str, low: &str, high: &str) -> (Value, Vec<String>) {
    let high = beside.alloc(high, node, "running");
    let gone = beside.alloc(low, node, "complete");
    assert_eq!(gone["DesiredStatus"], "evict", "{gone}");
    assert_eq!(gone["PreemptedByAllocation"], high["ID"], "{gone}");
    assert!(
        last(&gone, "Killed") <= last(&high, "Started"),
        "{gone} {high}"
    );
    let kinds = events(&gone).into_iter().map(|(kind, _)| kind);
    (
        json!([
            gone["DesiredDescription"]
                .as_str()
                .unwrap()
                .split(' ')
                .next(),
            gone["ClientDescription"]
        ]),
        kinds.collect(),
    )
}

fn preemption(beside: &Beside, is_on: bool) {
    let on = json!({
        "SystemSchedulerEnabled": is_on, "ServiceSchedulerEnabled": is_on, "BatchSchedulerEnabled": is_on,
    });
    let settings = json!({ "SchedulerAlgorithm": "binpack", "PreemptionConfig": on });
    beside.put("/v1/operator/scheduler/configuration", &settings);
}

/// On Nomad's node a port may be free at a second address.
fn important_job_gets_the_port_of_another(beside: &Beside) {
    preemption(beside, true);
    let port: u16 = free_addr().rsplit(':').next().unwrap().parse().unwrap();
    for (name, priority) in [("low", 10), ("high", 90)] {
        let mut job = pinned(name, "service", "exec sleep 1000", OURS);
        job["Priority"] = json!(priority);
        let ports = json!([{ "Label": "http", "Value": port }]);
        job["TaskGroups"][0]["Networks"] = json!([{ "Mode": "host", "ReservedPorts": ports }]);
        beside.submit(&job);
        beside.alloc(name, OURS, "running");
    }
    preempted(beside, OURS, "low", "high");
    for name in ["low", "high"] {
        beside.stop(name);
    }
}

fn system_job_preempts_on_both(beside: &Beside) {
    let most = |node: &str| {
        let path = format!("/v1/node/{}", beside.node(node));
        let shown = beside.cluster.wait(&path, |node| Some(node.clone()));
        shown["NodeResources"]["Cpu"]["CpuShares"].as_u64().unwrap() * 2 / 3
    };
    let cpu = BOTH.map(most).into_iter().min().unwrap();
    for node in BOTH {
        let mut low = pinned(&format!("large-{node}"), "service", "exec sleep 1000", node);
        low["Priority"] = json!(10);
        low["TaskGroups"][0]["Tasks"][0]["Resources"]["CPU"] = json!(cpu);
        beside.submit(&low);
        beside.alloc(&format!("large-{node}"), node, "running");
    }
    let mut high = everywhere("guard");
    high["Priority"] = json!(90);
    high["TaskGroups"][0]["Tasks"][0]["Resources"]["CPU"] = json!(cpu);
    beside.submit(&high);
    let [ours, theirs] =
        BOTH.map(|node| preempted(beside, node, &format!("large-{node}"), "guard"));
    assert_eq!(ours, theirs);
    beside.stop("guard");
    for node in BOTH {
        beside.stop(&format!("large-{node}"));
    }
    preemption(beside, false);
}
