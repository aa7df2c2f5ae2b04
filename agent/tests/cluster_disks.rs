//! Disks that migrate between nodes of a real server of Nomad: to and from Nomad's own node, and between two of ours.
//! Where there is no program `nomad` on the PATH, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod support;
#[path = "support/tls_files.rs"]
mod tls_files;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use authority::Authority;
use serde_json::{Value, json};
use support::nomad::{Nomad, job};
use support::{Lone, Program, World, free_addr};
use tls_files::tls;

const ACL: &str = "acl {\n enabled = true\n}\n";
const RAW_EXEC: &str = "plugin \"raw_exec\" {\n config {\n enabled = true\n }\n}\n";

/// An agent of this name that is a node of the server, with more settings.
fn node_named(nomad: &Nomad, name: &str, more: &str) -> Lone {
    Lone::configured(&format!(
        "name = \"{name}\"\n{more}client {{\n servers = [\"{}\"]\n}}\n{RAW_EXEC}",
        nomad.rpc
    ))
}

/// An agent of this name that is a node of the server, where all is encrypted and both sides show certificates.
fn encrypted_node(nomad: &Nomad, ca: &Authority, name: &str) -> (Program, World) {
    let (world, addr) = (World::new(), free_addr());
    let settings = format!(
        "name = \"{name}\"\ndata_dir = \"{}\"\nports {{\n http = {}\n}}\nclient {{\n servers = [\"{}\"]\n}}\n{RAW_EXEC}{}",
        world.data().display(),
        addr.rsplit(':').next().unwrap(),
        nomad.rpc,
        tls(&world.path(""), ca, &ca.member("client.global"), true),
    );
    let file = world.file("agent.hcl", &settings);
    let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
    (agent, world)
}

/// A service whose disk migrates: each of its allocations adds a line to what those before it wrote.
fn db() -> Value {
    let script = "echo x >> $NOMAD_ALLOC_DIR/data/lines; echo x >> $NOMAD_TASK_DIR/lines; \
                  exec sleep 1000";
    let mut db = job("db", "service", script);
    db["TaskGroups"][0]["EphemeralDisk"] =
        json!({ "Sticky": true, "Migrate": true, "SizeMB": 300 });
    db
}

fn put(nomad: &Nomad, path: &str, body: &Value) {
    let (status, text) = nomad.request("PUT", path, &body.to_string()).unwrap();
    assert_eq!(status, 200, "{path}: {text}");
}

/// The id of the node with this name, once it is ready.
fn ready(nomad: &Nomad, name: &str) -> String {
    nomad.wait("/v1/nodes", |nodes| {
        let mut nodes = nodes.as_array()?.iter();
        let node = nodes.find(|it| it["Name"] == name && it["Status"] == "ready")?;
        Some(node["ID"].as_str()?.to_owned())
    })
}

/// The servers place what comes on one of these nodes, and drain the other one.
fn move_to(nomad: &Nomad, to: &str, from: &str) {
    let allowed = json!({ "DrainSpec": null, "MarkEligible": true });
    put(nomad, &format!("/v1/node/{to}/drain"), &allowed);
    let drained = json!({ "DrainSpec": { "Deadline": 60_000_000_000_i64 } });
    put(nomad, &format!("/v1/node/{from}/drain"), &drained);
}

/// The allocation of the job that runs on this node, once both of its files have so many lines.
fn runs_with_lines(nomad: &Nomad, node: &str, lines: usize) -> Value {
    let alloc = nomad.wait("/v1/job/db/allocations", |all| {
        let mut all = all.as_array()?.iter();
        let on_it = all.find(|it| it["NodeID"] == node && it["ClientStatus"] == "running");
        on_it.cloned()
    });
    let id = alloc["ID"].as_str().unwrap();
    let expected = "x\n".repeat(lines);
    for file in ["alloc/data/lines", "t/local/lines"] {
        let path = format!("/v1/client/fs/cat/{id}?path={file}");
        // The task runs before it has added its own line.
        let text = nomad.wait("/v1/jobs", |_| {
            let (status, text) = nomad.request("GET", &path, "").ok()?;
            (status == 200 && text.len() >= expected.len()).then_some(text)
        });
        assert_eq!(text, expected, "{file} of {alloc}");
    }
    alloc
}

/// The words of the events of the task.
fn events(alloc: &Value) -> String {
    alloc["TaskStates"]["t"]["Events"].to_string()
}

#[test]
fn disk_migrates_from_nomads_node_to_this_one_and_back() {
    let dir = RefCell::new(PathBuf::new());
    let settings = |path: &std::path::Path| {
        dir.replace(path.to_owned());
        format!("{ACL}client {{\n enabled = true\n}}\n{RAW_EXEC}")
    };
    let Some(mut nomad) = Nomad::start_with(settings) else {
        return;
    };
    let root = nomad.wait_for_answer("PUT", "/v1/acl/bootstrap");
    nomad.token = root["SecretID"].as_str().unwrap().to_owned();
    let theirs = nomad.wait("/v1/nodes", |nodes| {
        let node = nodes.get(0)?;
        (node["Status"] == "ready").then(|| node["ID"].as_str().unwrap().to_owned())
    });
    nomad.submit(&db());
    runs_with_lines(&nomad, &theirs, 1);
    let _lone = node_named(&nomad, "ours", ACL);
    let ours = ready(&nomad, "ours");
    move_to(&nomad, &ours, &theirs);
    let here = runs_with_lines(&nomad, &ours, 2);
    assert!(events(&here).contains("Migrated the disk"), "{here}");
    move_to(&nomad, &theirs, &ours);
    runs_with_lines(&nomad, &theirs, 3);
    leave_clean(&nomad, &dir.borrow());
}

/// Nothing of Nomad's own node is left.
fn leave_clean(nomad: &Nomad, dir: &std::path::Path) {
    let (status, text) = nomad
        .request("DELETE", "/v1/job/db?purge=true", "")
        .unwrap();
    assert_eq!(status, 200, "{text}");
    nomad.wait("/v1/nodes", |_| {
        // What ended is collected when servers are asked to, and a moment later.
        put(nomad, "/v1/system/gc", &json!({}));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        (!mounts.contains(dir.to_str().unwrap())).then_some(())
    });
}

#[test]
fn disk_migrates_between_two_agents_of_one_cluster() {
    let Some(nomad) = Nomad::start() else { return };
    let _one = node_named(&nomad, "one", "");
    let one = ready(&nomad, "one");
    nomad.submit(&db());
    runs_with_lines(&nomad, &one, 1);
    let _two = node_named(&nomad, "two", "");
    let two = ready(&nomad, "two");
    move_to(&nomad, &two, &one);
    runs_with_lines(&nomad, &two, 2);
    move_to(&nomad, &one, &two);
    runs_with_lines(&nomad, &one, 3);
}

#[test]
fn disk_migrates_between_two_agents_whose_api_speaks_tls() {
    let ca = Authority::new();
    let server = ca.member("server.global");
    let Some(nomad) = Nomad::start_with(|folder| tls(folder, &ca, &server, false)) else {
        return;
    };
    let _one = encrypted_node(&nomad, &ca, "one");
    let one = ready(&nomad, "one");
    nomad.submit(&db());
    runs_with_lines(&nomad, &one, 1);
    let _two = encrypted_node(&nomad, &ca, "two");
    let two = ready(&nomad, "two");
    move_to(&nomad, &two, &one);
    let here = runs_with_lines(&nomad, &two, 2);
    assert!(events(&here).contains("at https://"), "{here}");
}

#[test]
fn task_starts_with_an_empty_disk_where_the_previous_node_is_down() {
    let Some(nomad) = Nomad::start() else { return };
    let one = node_named(&nomad, "one", "");
    let id = ready(&nomad, "one");
    nomad.submit(&db());
    runs_with_lines(&nomad, &id, 1);
    let _two = node_named(&nomad, "two", "");
    let two = ready(&nomad, "two");
    let Lone { agent, world, .. } = one;
    agent.kill_9();
    let here = runs_with_lines(&nomad, &two, 1);
    assert!(events(&here).contains("its node is down"), "{here}");
    drop(world);
}
