//! Jobs that move from node to node, as a user sees them: two agents on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use support::{Agent, Program, Server, TIMEOUT, World, free_addr, is_gone, request};
use tar::{EntryType, Header};

/// A service with a disk that moves; `script` finds it as its working directory.
fn job(script: &str) -> Value {
    let script = format!("cd $NOMAD_ALLOC_DIR/data; {script}; exec sleep 1000");
    json!({ "Job": {
        "ID": "db", "Type": "service", "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "g",
            "EphemeralDisk": { "Sticky": true, "Migrate": true, "SizeMB": 300 },
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "Resources": { "CPU": 10, "MemoryMB": 20 },
            }],
        }],
    }})
}

/// The allocation of the job, once it has this status.
fn alloc(agent: &Agent, status: &str) -> Value {
    agent.wait_for("/v1/job/db/allocations", |allocs| {
        let alloc = allocs.as_array()?.first()?.clone();
        (alloc["ClientStatus"] == status).then_some(alloc)
    })
}

fn id(alloc: &Value) -> String {
    alloc["ID"].as_str().unwrap().to_owned()
}

fn stop(agent: &Agent) {
    agent.delete("/v1/job/db").unwrap();
    agent.wait_for("/v1/job/db/allocations", |allocs| {
        let mut allocs = allocs.as_array()?.iter();
        let over = |alloc: &Value| {
            alloc["ClientStatus"] != "running" && alloc["ClientStatus"] != "pending"
        };
        allocs.all(over).then_some(())
    });
}

/// Waits until a task has made this file.
fn written(file: &Path) {
    let until = Instant::now() + TIMEOUT;
    while !file.exists() {
        assert!(Instant::now() < until, "nobody writes {}", file.display());
        std::thread::yield_now();
    }
}

/// The command that moves a job from one agent to another.
fn moving(from: &str, to: &str, more: &[&str]) -> Vec<String> {
    let (from, to) = (format!("http://{from}"), format!("http://{to}"));
    let mut args = vec!["job", "move", "-address", &from, "-to", &to];
    args.extend(more);
    args.into_iter().map(str::to_owned).collect()
}

#[test]
fn job_move_transfers_disk() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    let other = Agent::start(&world.path("other"), &free_addr());
    let script = "test -f words || { echo first > words; mkdir d; ln -s ../words d/link; \
                  ln words again; chmod 640 words; touch -d @1000000000 words; mkfifo pipe; \
                  truncate -s 3M sparse; echo kept > $NOMAD_TASK_DIR/own; \
                  echo hidden > $NOMAD_SECRETS_DIR/s; }; echo start >> starts";
    one.put("/v1/jobs", &job(script)).unwrap();
    let before = alloc(&one, "running");
    let dir = world.path("one/alloc").join(id(&before));
    written(&dir.join("alloc/data/starts"));
    let out = Program::run(moving(&one.addr, &other.addr, &["db"])).ok();
    let taken = "takes over job \"db\"; 1 allocation(s) stop here";
    let last = out.lines().last().unwrap_or_default();
    assert!(
        out.contains(taken) && last.contains(" db.g[0] ") && last.contains(" running: "),
        "{out}"
    );
    let after = alloc(&other, "running");
    let whole = other.get(&format!("/v1/allocation/{}", id(&after)));
    let events = whole["TaskStates"]["t"]["Events"].to_string();
    assert!(
        events.contains("Migrated the disk of allocation"),
        "{events}"
    );
    let dir = world.path("other/alloc").join(id(&after));
    let data = dir.join("alloc/data");
    assert_eq!(fs::read_to_string(data.join("words")).unwrap(), "first\n");
    assert_eq!(fs::read_to_string(data.join("d/link")).unwrap(), "first\n");
    assert_eq!(fs::read_to_string(data.join("again")).unwrap(), "first\n");
    assert_eq!(
        fs::read_to_string(dir.join("t/local/own")).unwrap(),
        "kept\n"
    );
    let meta = fs::metadata(data.join("words")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o640, 1_000_000_000));
    assert_eq!(fs::metadata(data.join("sparse")).unwrap().len(), 3 << 20);
    assert!(!data.join("pipe").exists() && !dir.join("t/secrets/s").exists());
    assert!(
        !dir.with_extension("arriving").exists(),
        "nothing is left of the way"
    );
    // The same job, once: asking again changes nothing, and here it is stopped.
    assert_eq!(alloc(&one, "complete")["DesiredStatus"], "stop");
    stop(&other);
}

/// The last allocation of a job never had its turn: what it was to get lies where the one before it
/// wrote it, but for what had come over already when that broke off.
#[test]
fn job_move_transfers_disk_of_previous_alloc() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    let other = Agent::start(&world.path("other"), &free_addr());
    // It does not end before it is allowed to, so that the next one has to wait.
    let script = "trap 'until test -e end; do sleep 0.1; done; exit' INT; echo first > words; \
                  while :; do sleep 0.1; done";
    one.put("/v1/jobs", &job(script)).unwrap();
    let before = alloc(&one, "running");
    let words = world.path("one/alloc").join(id(&before));
    let words = words.join("alloc/data/words");
    written(&words);
    one.put("/v1/jobs", &job("echo second > others")).unwrap();
    let replacement = one.wait_for("/v1/job/db/allocations", |allocs| {
        let mut allocs = allocs.as_array()?.iter();
        let replacement = allocs.find(|alloc| id(alloc) != id(&before))?;
        Some(id(replacement))
    });
    // Another node would only wait for the second.
    let (status, why) = one.put("/v1/job/db/handover", &json!({})).unwrap();
    assert!(status == 409 && why.contains("has not ended yet"), "{why}");
    one.delete("/v1/job/db").unwrap();
    fs::write(words.with_file_name("end"), "").unwrap();
    stop(&one);
    let moved = world.path("one/alloc").join(replacement).join("t/local");
    fs::create_dir_all(&moved).unwrap();
    fs::write(moved.join("own"), "moved\n").unwrap();
    let (status, handover) = one.put("/v1/job/db/handover", &json!({})).unwrap();
    assert_eq!(status, 200, "{handover}");
    let mut handover: Value = serde_json::from_str(&handover).unwrap();
    handover["Allocs"][0]["Address"] = json!(format!("http://{}", one.addr));
    let mut body = job("cat words");
    body["TakeOver"] = handover["Allocs"].take();
    let (status, answer) = other.put("/v1/jobs", &body).unwrap();
    assert_eq!(status, 200, "{answer}");
    let after = alloc(&other, "running");
    let dir = world.path("other/alloc").join(id(&after));
    for (file, text) in [("alloc/data/words", "first\n"), ("t/local/own", "moved\n")] {
        let read = fs::read_to_string(dir.join(file));
        assert_eq!(read.unwrap(), text, "{file}");
    }
    stop(&other);
}

#[test]
fn disk_snapshot_requires_token() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    one.put("/v1/jobs", &job("echo secret > words")).unwrap();
    let alloc = id(&alloc(&one, "running"));
    let path = format!("/v1/client/allocation/{alloc}/snapshot");
    let (status, body) = request(&one.addr, "GET", &path, None).unwrap();
    assert_eq!((status, body.contains("secret")), (403, false));
    let secret = fs::metadata(world.path("one/secret-id")).unwrap();
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);
    stop(&one);
}

/// Nobody takes for the whole what was left of a disk while it was removed.
#[test]
fn disk_purged_during_transfer_is_incomplete() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    let script = "truncate -s 64M first; truncate -s 64M second";
    one.put("/v1/jobs", &job(script)).unwrap();
    let alloc = id(&alloc(&one, "running"));
    let dir = world.path("one/alloc").join(&alloc);
    written(&dir.join("alloc/data/second"));
    let (_, handover) = one.put("/v1/job/db/handover", &json!({})).unwrap();
    let handover: Value = serde_json::from_str(&handover).unwrap();
    let token = handover["Allocs"][0]["Token"].as_str().unwrap();
    stop(&one);
    let mut stream = TcpStream::connect(&one.addr).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let path = format!("/v1/client/allocation/{alloc}/snapshot");
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nX-Nomad-Token: {token}\r\nConnection: close\r\n\r\n",
        one.addr
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 1 << 10];
    stream.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"));
    one.delete("/v1/job/db?purge=true").unwrap();
    one.wait_for("/v1/allocations", |allocs| {
        allocs.as_array()?.is_empty().then_some(())
    });
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let words = format!("NOMAD-{alloc}-ERROR.log");
    let found = rest.windows(words.len()).any(|at| at == words.as_bytes());
    assert!(found, "{} bytes without a word of it", rest.len());
}

/// An allocation of a node that is none.
const FOREIGN: &str = "11111111-2222-4333-8444-555555555555";

/// Hands a job to an agent as if it came from `server`.
fn taken_over(agent: &Agent, server: &Server) {
    let mut body = job("cat words");
    body["TakeOver"] = json!([{
        "ID": FOREIGN, "Group": "g", "Index": 0, "Token": "AA==",
        "Address": format!("http://{}", server.addr),
    }]);
    let (status, answer) = agent.put("/v1/jobs", &body).unwrap();
    assert_eq!(status, 200, "{answer}");
}

fn snapshot_path() -> String {
    format!("/v1/client/allocation/{FOREIGN}/snapshot")
}

/// A server on which the allocation is over, and left this.
fn node(snapshot: &[u8]) -> Server {
    let server = Server::new();
    let over = json!({ "ID": FOREIGN, "ClientStatus": "complete" });
    server.gives(
        &format!("/v1/allocation/{FOREIGN}"),
        over.to_string().as_bytes(),
    );
    server.gives(&snapshot_path(), snapshot);
    server
}

fn entry(name: &str, kind: EntryType, target: &str, mode: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    // As it is, whatever it says: the builder would refuse some of these.
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    out.append(&header, bytes).unwrap();
    out.into_inner().unwrap()
}

/// What is around the allocations' directories, which nothing may change.
fn around(world: &World) -> Vec<PathBuf> {
    let mut names: Vec<_> = [".", "data", "data/alloc"]
        .iter()
        .flat_map(|dir| fs::read_dir(world.path(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    names
}

#[test]
fn hostile_disk_archive_fails_alloc() {
    let file = EntryType::Regular;
    let through = [
        entry("alloc/data/d", EntryType::Symlink, "../..", 0o777, b""),
        entry("alloc/data/d/x", file, "", 0o644, b"x"),
    ]
    .map(|archive| archive[..archive.len() - 1024].to_vec())
    .concat();
    for (archive, why) in [
        (
            entry("/etc/x", file, "", 0o644, b"x"),
            "has an absolute name",
        ),
        (
            entry("alloc/data/../../../x", file, "", 0o644, b"x"),
            "leads out",
        ),
        (
            entry(
                "alloc/data/l",
                EntryType::Symlink,
                "/etc/passwd",
                0o777,
                b"",
            ),
            "leads out",
        ),
        (
            entry("alloc/data/l", EntryType::Symlink, "../../../x", 0o777, b""),
            "leads out",
        ),
        (
            entry(
                "alloc/data/l",
                EntryType::Link,
                "../../../../lock",
                0o644,
                b"",
            ),
            "no file of the archive",
        ),
        (
            entry("alloc/data/n", EntryType::Char, "", 0o666, b""),
            "is a device",
        ),
        (
            entry("alloc/data/p", EntryType::Fifo, "", 0o666, b""),
            "is a pipe",
        ),
        (entry("alloc/data/s", file, "", 0o4755, b"x"), "setuid"),
        (through, "goes through a link"),
        ([b'x'; 1024].to_vec(), "no tar archive"),
    ] {
        let world = World::new();
        let server = node(&archive);
        let agent = Agent::start(&world.path("data"), &free_addr());
        taken_over(&agent, &server);
        let failed = alloc(&agent, "failed");
        let whole = agent.get(&format!("/v1/allocation/{}", id(&failed)));
        let events = whole["TaskStates"]["t"]["Events"].to_string();
        assert!(events.contains(why), "{why}: {events}");
        assert!(!events.contains("Started"), "{events}");
        let own = world.path("data/alloc").join(id(&failed));
        let alone = around(&world)
            .into_iter()
            .filter(|path| path.parent() == own.parent());
        assert_eq!(alone.collect::<Vec<_>>(), [own], "{why}");
        stop(&agent);
    }
}

#[test]
fn agent_killed_during_transfer_fetches_disk_again() {
    let world = World::new();
    let server = node(b"");
    let stalls = server.stalls(&snapshot_path());
    let (data, addr) = (world.path("data"), free_addr());
    let agent = Agent::start(&data, &addr);
    taken_over(&agent, &server);
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    let waits = alloc(&agent, "pending");
    let words = waits["ClientDescription"].as_str().unwrap().to_owned();
    assert!(
        words.starts_with("Migrating the disk of allocation 11111111 at http://"),
        "{words}"
    );
    agent.kill_9();
    is_gone(stream);
    server.gives(
        &snapshot_path(),
        &entry("alloc/data/words", EntryType::Regular, "", 0o644, b"kept"),
    );
    let agent = Agent::start(&data, &addr);
    let alloc = id(&alloc(&agent, "running"));
    let words = data.join("alloc").join(&alloc).join("alloc/data/words");
    assert_eq!(fs::read_to_string(words).unwrap(), "kept");
    assert!(
        !data
            .join("alloc")
            .join(format!("{alloc}.arriving"))
            .exists()
    );
    assert_eq!(server.asked(&snapshot_path()).len(), 2);
    let asked = server.asked(&snapshot_path());
    assert!(asked[0].contains("x-nomad-token: aa=="), "{asked:?}");
    stop(&agent);
}

#[test]
fn alloc_waiting_for_other_node_can_be_stopped() {
    let world = World::new();
    let server = node(b"");
    let stalls = server.stalls(&snapshot_path());
    let agent = Agent::start(&world.path("data"), &free_addr());
    taken_over(&agent, &server);
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    stop(&agent);
    is_gone(stream);
}

/// A third node would await this one only, and run the job beside the first.
#[test]
fn alloc_waiting_for_other_node_is_not_moved() {
    let world = World::new();
    let server = node(b"");
    let stalls = server.stalls(&snapshot_path());
    let agent = Agent::start(&world.path("data"), &free_addr());
    taken_over(&agent, &server);
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    let refused = || {
        let out = Program::run(moving(&agent.addr, "127.0.0.1:1", &["db"])).failed();
        let words = format!("waits for allocation 11111111 at http://{}", server.addr);
        assert!(out.contains(&words), "{out}");
    };
    refused();
    stop(&agent);
    is_gone(stream);
    // Nothing of it is left but that.
    agent.wait_for("/v1/job/db/allocations", |allocs| {
        // Not before the fetch that was broken off has ended here, too.
        agent.put("/v1/system/gc", &json!({})).unwrap();
        allocs.as_array()?.is_empty().then_some(())
    });
    refused();
}

#[test]
fn unsuitable_job_move_is_refused_with_reason() {
    let world = World::new();
    let agent = Agent::start(&world.path("data"), &free_addr());
    for (field, value, why) in [
        ("ID", "x", "the ID is no UUID"),
        ("Address", "ftp://x", "is no address http://HOST:PORT"),
        ("Address", "http://a/b c", "is no address http://HOST:PORT"),
        ("Address", "HTTPS://a", "is no address http://HOST:PORT"),
        ("Address", "https://a", "no certificate authority"),
        ("Token", "a\nb", "the Token is none"),
    ] {
        let mut body = job("true");
        body["TakeOver"] = json!([{
            "ID": FOREIGN, "Group": "g", "Index": 0, "Token": "AA==",
            "Address": "http://127.0.0.1:1",
        }]);
        body["TakeOver"][0][field] = json!(value);
        let (status, answer) = agent.put("/v1/jobs", &body).unwrap();
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains(why), "{answer}");
    }
}

/// A job that reads a variable runs on; the other node, which has none, is not given it.
#[test]
fn job_move_without_variable_is_refused() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    let other = Agent::start(&world.path("other"), &free_addr());
    let variable = json!({ "Items": { "word": "secret" } });
    one.put("/v1/var/nomad/jobs/db", &variable).unwrap();
    let mut body = job("true");
    body["Job"]["TaskGroups"][0]["Tasks"][0]["Templates"] = json!([{
        "EmbeddedTmpl": "{{ with nomadVar \"nomad/jobs/db\" }}{{ .word }}{{ end }}",
        "DestPath": "local/word",
    }]);
    one.put("/v1/jobs", &body).unwrap();
    let before = id(&alloc(&one, "running"));
    let args = moving(&one.addr, &other.addr, &["db"]);
    let err = Program::run(&args).failed();
    assert!(
        err.contains("cannot run the job, which keeps running here"),
        "{err}"
    );
    assert!(
        err.contains("\"nomad/jobs/db\", which does not exist"),
        "{err}"
    );
    assert!(!err.contains("secret"), "{err}");
    assert_eq!(id(&alloc(&one, "running")), before);
    assert_eq!(other.get("/v1/jobs"), json!([]));
    other.put("/v1/var/nomad/jobs/db", &variable).unwrap();
    Program::run(args).ok();
    alloc(&other, "running");
}

/// A device that the other node does not have, or has and gives to another job, keeps the job here.
#[test]
fn job_move_without_free_device_is_refused() {
    let world = World::new();
    let with_device = |name: &str, id: &str| {
        let file = world.path(&format!("{name}.hcl"));
        fs::write(
            &file,
            format!("device \"acme/fpga/x1\" {{ id = \"{id}\" }}\n"),
        )
        .unwrap();
        let options = ["-config", file.to_str().unwrap()];
        Agent::start_with(&world.path(name), &free_addr(), &options)
    };
    let one = with_device("one", "slot-1");
    let bare = Agent::start(&world.path("bare"), &free_addr());
    let other = with_device("other", "slot-2");
    let mut body = job("true");
    body["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["Devices"] =
        json!([{ "Name": "acme/fpga", "Count": 1 }]);
    one.put("/v1/jobs", &body).unwrap();
    let before = id(&alloc(&one, "running"));
    let refused = |to: &Agent| {
        let err = Program::run(moving(&one.addr, &to.addr, &["db"])).failed();
        assert!(
            err.contains("cannot run the job, which keeps running here"),
            "{err}"
        );
        assert!(err.contains("acme/fpga"), "{err}");
        assert_eq!(id(&alloc(&one, "running")), before);
    };
    refused(&bare);
    body["Job"]["ID"] = json!("holder");
    other.put("/v1/jobs", &body).unwrap();
    other.wait_for("/v1/job/holder/allocations", |allocs| {
        (allocs[0]["ClientStatus"] == "running").then_some(())
    });
    refused(&other);
    other.delete("/v1/job/holder").unwrap();
    other.wait_for("/v1/job/holder/allocations", |allocs| {
        (allocs[0]["ClientStatus"] == "complete").then_some(())
    });
    Program::run(moving(&one.addr, &other.addr, &["db"])).ok();
    alloc(&other, "running");
}

/// What the other node can run, and fails there all the same, comes back if that is wanted.
#[test]
fn failed_job_move_is_reverted_on_request() {
    let world = World::new();
    let one = Agent::start(&world.path("one"), &free_addr());
    let other = Agent::start(&world.path("other"), &free_addr());
    let script = format!(
        "case $NOMAD_ALLOC_DIR in {}/*) exit 3;; esac",
        world.path("other").display()
    );
    one.put("/v1/jobs", &job(&script)).unwrap();
    alloc(&one, "running");
    let ended = Program::run(moving(&one.addr, &other.addr, &["-rollback", "db"]));
    assert!(ended.out.contains("it is moved back"), "{ended:?}");
    alloc(&one, "running");
}
