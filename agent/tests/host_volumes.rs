//! Host volumes: what is in the agent's configuration, who gets it, and how tasks see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use support::{Program, TIMEOUT, World, free_addr, request};

/// An agent with these blocks in its block `client`, once its API answers.
fn agent(world: &World, client: &str, addr: &str) -> Program {
    let addr: SocketAddr = addr.parse().unwrap();
    let text = format!(
        "bind_addr = \"{}\"\nports {{\n http = {}\n}}\ndata_dir = {:?}\nclient {{\n{client}\n}}",
        addr.ip(),
        addr.port(),
        world.data().display().to_string()
    );
    let file = world.file("agent.hcl", &text);
    let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
    let addr = addr.to_string();
    let until = Instant::now() + TIMEOUT;
    while !matches!(
        request(&addr, "GET", "/v1/agent/health", None),
        Ok((200, _))
    ) {
        assert!(Instant::now() < until, "the agent does not answer");
        std::thread::yield_now();
    }
    agent
}

fn get(addr: &str, path: &str) -> Value {
    let (status, body) = request(addr, "GET", path, None).unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn wait(addr: &str, path: &str, done: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + TIMEOUT;
    loop {
        let seen = get(addr, path);
        if done(&seen) {
            return seen;
        }
        assert!(Instant::now() < until, "{path}: {seen:#}");
        std::thread::yield_now();
    }
}

fn submit(addr: &str, job: &Value) {
    let body = json!({ "Job": job });
    let (status, body) = request(addr, "PUT", "/v1/jobs", Some(&body)).unwrap();
    assert_eq!(status, 200, "{body}");
}

/// A batch job that writes into the volume `data`, by its variable and by its link.
fn writer(id: &str, read_only: bool) -> Value {
    let script = "echo by-variable > \"$NOMAD_VOLUME_data/one\"; echo by-link > var/db/two";
    json!({
        "ID": id, "Type": "batch",
        "TaskGroups": [{
            "Name": "g",
            "Volumes": { "data": {
                "Name": "data", "Type": "host", "Source": "data", "ReadOnly": read_only,
            } },
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "VolumeMounts": [{ "Volume": "data", "Destination": "/var/db" }],
            }],
        }],
    })
}

fn volume(path: &Path, read_only: bool) -> String {
    let path = path.display().to_string();
    format!("host_volume \"data\" {{\n path = {path:?}\n read_only = {read_only}\n}}")
}

/// Why the group of a job is not placed, as Nomad's API tells it.
fn filtered(addr: &str, job: &str) -> Value {
    let evals = wait(addr, &format!("/v1/job/{job}/evaluations"), |evals| {
        evals[0]["FailedTGAllocs"]["g"].is_object()
    });
    evals[0]["FailedTGAllocs"]["g"]["ConstraintFiltered"].clone()
}

#[test]
fn task_writes_into_host_volume_that_outlives_its_job() {
    let world = World::new();
    let addr = free_addr();
    let dir = world.path("volume");
    fs::create_dir(&dir).unwrap();
    let agent = agent(&world, &volume(&dir, false), &addr);
    let nodes = get(&addr, "/v1/nodes");
    let node = get(
        &addr,
        &format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap()),
    );
    let shown = json!({ "data": { "Name": "data", "Path": dir, "ReadOnly": false, "ID": "" } });
    assert_eq!(node["HostVolumes"], shown);
    submit(&addr, &writer("db", false));
    wait(&addr, "/v1/job/db", |job| job["Status"] == "dead");
    request(&addr, "DELETE", "/v1/job/db?purge=true", None).unwrap();
    assert_eq!(
        fs::read_to_string(dir.join("one")).unwrap(),
        "by-variable\n"
    );
    assert_eq!(fs::read_to_string(dir.join("two")).unwrap(), "by-link\n");
    drop(agent);
}

#[test]
fn job_waits_for_volume_until_agent_has_it() {
    let world = World::new();
    let addr = free_addr();
    let dir = world.path("volume");
    fs::create_dir(&dir).unwrap();
    let first = agent(&world, "", &addr);
    submit(&addr, &writer("db", false));
    let reason = json!({ "missing compatible host volumes": 1 });
    assert_eq!(filtered(&addr, "db"), reason);
    drop(first);
    let second = agent(&world, &volume(&dir, true), &addr);
    submit(&addr, &writer("reader", true));
    wait(&addr, "/v1/job/reader", |job| job["Status"] == "dead");
    assert_eq!(filtered(&addr, "db"), reason);
    drop(second);
    fs::remove_file(dir.join("one")).unwrap();
    let third = agent(&world, &volume(&dir, false), &addr);
    wait(&addr, "/v1/job/db", |job| job["Status"] == "dead");
    assert!(dir.join("one").exists());
    drop(third);
}

#[test]
fn agent_without_directory_of_volume_does_not_start() {
    let world = World::new();
    let dir = world.path("volume");
    let text = format!(
        "data_dir = {:?}\nclient {{\n{}\n}}",
        world.data().display().to_string(),
        volume(&dir, false)
    );
    let file = world.file("agent.hcl", &text);
    let addr = free_addr();
    let args = ["agent", "-http", &addr, "-config", file.to_str().unwrap()];
    let agent = Program::start(args);
    let line = agent.err_line("host_volume");
    assert!(line.contains("No such file or directory"), "{line}");
    assert!(!world.data().exists(), "nothing is made");
}

#[test]
fn volume_path_replaceable_by_jobs_is_reported() {
    let world = World::new();
    let outer = world.path("volume");
    let inner = outer.join("inner");
    fs::create_dir_all(&inner).unwrap();
    let path = inner.display().to_string();
    let both = volume(&outer, false) + &format!("\nhost_volume \"inner\" {{\n path = {path:?}\n}}");
    let agent = agent(&world, &both, &free_addr());
    let line = agent.err_line("lies in the directory of host_volume");
    assert!(line.contains(&path), "{line}");
}

/// The command line, asking this agent.
fn run(addr: &str, args: &[&str]) -> support::Ended {
    let addr = format!("http://{addr}");
    Program::of(support::command(args).env("DROVER_ADDR", addr)).end()
}

#[test]
fn volume_is_created_used_and_deleted_while_agent_runs() {
    let world = World::new();
    let addr = free_addr();
    let first = agent(&world, "", &addr);
    submit(&addr, &writer("db", false));
    filtered(&addr, "db");
    let text = "name = \"data\"\ntype = \"host\"\nplugin_id = \"mkdir\"\nparameters {\n mode = \"0750\"\n}\n";
    let file = world.file("volume.hcl", text);
    let file = file.to_str().unwrap();
    let made = run(&addr, &["volume", "create", file]).ok();
    assert!(made.contains("Created host volume data with ID"), "{made}");
    wait(&addr, "/v1/job/db", |job| job["Status"] == "dead");
    let volumes = get(&addr, "/v1/volumes?type=host");
    let id = volumes[0]["ID"].as_str().unwrap().to_owned();
    let volume = get(&addr, &format!("/v1/volume/host/{id}"));
    assert_eq!(
        (&volume["State"], &volume["PluginID"]),
        (&json!("ready"), &json!("mkdir"))
    );
    let dir = Path::new(volume["HostPath"].as_str().unwrap());
    assert_eq!(fs::read_to_string(dir.join("two")).unwrap(), "by-link\n");
    let again = run(&addr, &["volume", "create", file]).failed();
    assert!(
        again.contains("the node has a volume of this name already"),
        "{again}"
    );
    first.kill_9();
    let second = agent(&world, "", &addr);
    let shown = run(&addr, &["volume", "status", "data"]).ok();
    assert!(shown.contains(&id) && shown.contains("ready"), "{shown}");
    let mut holder = writer("holder", false);
    holder["TaskGroups"][0]["Tasks"][0]["Config"]["args"] = json!(["-c", "exec sleep 1000"]);
    submit(&addr, &holder);
    wait(&addr, "/v1/job/holder", |job| job["Status"] == "running");
    let refused = run(&addr, &["volume", "delete", "data"]).failed();
    assert!(refused.contains("in use by allocation"), "{refused}");
    run(&addr, &["job", "stop", "holder"]).ok();
    wait(&addr, "/v1/allocations", |allocs| {
        allocs
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["ClientStatus"] == "complete")
    });
    let until = Instant::now() + TIMEOUT;
    // The allocation is over before nothing of it is left.
    while run(&addr, &["volume", "delete", "data"]).code != 0 {
        assert!(Instant::now() < until, "it is never deleted");
    }
    assert!(!dir.exists());
    assert_eq!(get(&addr, "/v1/volumes?type=host"), json!([]));
    drop(second);
}

#[test]
fn registered_volume_is_forgotten_and_its_directory_stays() {
    let world = World::new();
    let addr = free_addr();
    let agent = agent(&world, "", &addr);
    let dir = world.path("volume");
    let text = format!(
        "name = \"data\"\ntype = \"host\"\nhost_path = {:?}\n",
        dir.display().to_string()
    );
    let file = world.file("volume.hcl", &text);
    let file = file.to_str().unwrap();
    let why = run(&addr, &["volume", "register", file]).failed();
    assert!(why.contains("No such file"), "{why}");
    fs::create_dir(&dir).unwrap();
    run(&addr, &["volume", "register", file]).ok();
    submit(&addr, &writer("db", false));
    wait(&addr, "/v1/job/db", |job| job["Status"] == "dead");
    assert!(dir.join("one").exists());
    let until = Instant::now() + TIMEOUT;
    while run(&addr, &["volume", "delete", "data"]).code != 0 {
        assert!(Instant::now() < until, "it is never deleted");
    }
    assert!(dir.join("one").exists());
    drop(agent);
}

#[test]
fn mistake_in_file_of_volume_has_a_place() {
    let world = World::new();
    let file = world.file("volume.hcl", "name = \"data\"\ntpye = \"host\"\n");
    let why = run("127.0.0.1:1", &["volume", "create", file.to_str().unwrap()]).failed();
    assert!(why.contains("volume.hcl:2:1"), "{why}");
}

#[test]
fn destroy_without_volumes_option_keeps_volumes() {
    let world = World::new();
    let addr = free_addr();
    let agent = agent(&world, "", &addr);
    let file = world.file("volume.hcl", "name = \"data\"\ntype = \"host\"\n");
    run(&addr, &["volume", "create", file.to_str().unwrap()]).ok();
    agent.kill_9();
    let data = world.data();
    let destroy = |more: &[&str]| {
        let args = [
            "system",
            "destroy",
            "-yes",
            "-data-dir",
            data.to_str().unwrap(),
        ];
        Program::run(args.iter().chain(more))
    };
    let why = destroy(&[]).failed();
    assert!(
        why.contains("has host volumes with what jobs keep"),
        "{why}"
    );
    assert!(data.join("host_volumes").exists());
    destroy(&["-volumes"]).ok();
    assert!(!data.exists());
}
