//! What users ask servers of a cluster about an allocation, and servers ask of the agent. Where there is no program
//! `nomad` on the PATH, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::nomad::{Nomad, job, node_of};
use support::{Ended, Lone, Program, TIMEOUT, command, free_addr, processes, request, until};

const SECOND: i64 = 1_000_000_000;

/// Says what it does, and answers a signal.
const SCRIPT: &str = "echo to out; echo to err >&2; trap 'echo got usr1' USR1; echo content > local/file; \
                      while true; do sleep 0.05; done";

/// A server, a node of it, and an allocation that runs there.
struct Setup {
    nomad: Nomad,
    lone: Lone,
    node: String,
    alloc: String,
}

impl Setup {
    fn new() -> Option<Setup> {
        let mut speaker = job("speaker", "service", SCRIPT);
        speaker["TaskGroups"][0]["Tasks"][0]["Identity"] = json!({ "File": true });
        let setup = Setup::with(&speaker, "running")?;
        // Its trap is set then.
        setup.until("cat", |(_, text)| text.contains("content"));
        Some(setup)
    }

    /// With another job, whose allocation has this status.
    fn with(job: &Value, status: &str) -> Option<Setup> {
        let nomad = Nomad::start()?;
        let lone = node_of(&nomad);
        let node = nomad.node("ready")["ID"].as_str().unwrap().to_owned();
        nomad.submit(job);
        let alloc = nomad.alloc(job["ID"].as_str().unwrap(), status);
        Some(Setup {
            node,
            alloc: alloc["ID"].as_str().unwrap().to_owned(),
            nomad,
            lone,
        })
    }

    /// What the server answers about the allocation: `AREA/WHAT` below the routes for clients.
    fn path(&self, area: &str) -> String {
        let alloc = &self.alloc;
        match area {
            "cat" => format!("/v1/client/fs/cat/{alloc}?path=t/local/file"),
            "out" => self.logs("stdout", "&plain=true"),
            area => format!("/v1/client/allocation/{alloc}/{area}"),
        }
    }

    fn logs(&self, kind: &str, more: &str) -> String {
        let alloc = &self.alloc;
        format!("/v1/client/fs/logs/{alloc}?task=t&type={kind}{more}")
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.nomad.request("GET", path, "").unwrap()
    }

    fn json(&self, path: &str) -> Value {
        let (status, text) = self.get(path);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn put(&self, path: &str, body: &Value) -> (u16, String) {
        self.nomad.request("PUT", path, &body.to_string()).unwrap()
    }

    /// Asks again until the answer is this one.
    fn until(&self, area: &str, is_it: impl Fn(&(u16, String)) -> bool) {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.get(&self.path(area));
            if is_it(&seen) {
                return;
            }
            assert!(Instant::now() < until, "{area}: {seen:?}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Our own command line, of the server.
    fn exec(&self, args: &[&str], input: &str) -> Ended {
        let mut child = command(["alloc", "exec"])
            .args(args)
            .env("DROVER_ADDR", format!("http://{}", self.nomad.http))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Program::child(child).end()
    }

    /// Begins to read an answer that has no end.
    fn open(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.nomad.http).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.nomad.http
        )
        .unwrap();
        stream
    }
}

/// Reads until this was read.
fn read_until(stream: &mut TcpStream, text: &str) {
    let (mut all, mut more) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(text) {
        let count = stream.read(&mut more).unwrap();
        assert!(count > 0, "the end: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&more[..count]);
    }
}

#[test]
fn servers_pass_on_logs_and_files() {
    let Some(setup) = Setup::new() else { return };
    let (status, out) = setup.get(&setup.logs("stdout", "&plain=true"));
    assert_eq!((status, out.as_str()), (200, "to out\n"));
    let (_, err) = setup.get(&setup.logs("stderr", ""));
    let frame: Value = serde_json::from_str(&err).unwrap();
    assert_eq!(frame["Data"], "dG8gZXJyCg==");
    assert_eq!(frame["File"], "alloc/logs/t.stderr.0");
    assert_eq!(frame["Offset"], 7);
    let (_, end) = setup.get(&setup.logs("stdout", "&plain=true&origin=end&offset=4"));
    assert_eq!(end, "out\n");
    let bad = setup.get(
        &setup
            .logs("stdout", "&plain=true")
            .replace("task=t", "task=zz"),
    );
    assert_eq!(bad, (400, "unknown task name \"zz\"".to_owned()));

    let alloc = &setup.alloc;
    let list = setup.json(&format!("/v1/client/fs/ls/{alloc}?path=t/local"));
    let file = list.as_array().unwrap().iter();
    let file = file.clone().find(|it| it["Name"] == "file").unwrap();
    assert_eq!((&file["Size"], &file["IsDir"]), (&json!(8), &json!(false)));
    let info = setup.json(&format!("/v1/client/fs/stat/{alloc}?path=t/local/file"));
    assert_eq!(info["FileMode"], file["FileMode"]);
    assert_eq!(info["ModTime"], file["ModTime"]);
    assert!(info["ModTime"].as_str().unwrap().starts_with("20"));
    assert_eq!(setup.get(&setup.path("cat")), (200, "content\n".to_owned()));
    let part = format!("/v1/client/fs/readat/{alloc}?path=t/local/file&offset=3&limit=2");
    assert_eq!(setup.get(&part), (200, "te".to_owned()));
    for path in ["cat", "stat", "ls"] {
        let missing = format!("/v1/client/fs/{path}/{alloc}?path=t/local/none");
        let (status, text) = setup.get(&missing);
        assert!(text.contains("no such file or directory"), "{path}: {text}");
        // Nomad's servers say 200 whatever becomes of cat.
        let expected = if path == "cat" { 200 } else { 404 };
        assert_eq!(status, expected, "{path}: {text}");
        // To the root, however deep the allocation lies.
        let up = "../".repeat(12);
        let outside = format!("/v1/client/fs/{path}/{alloc}?path={up}etc/passwd");
        let (status, text) = setup.get(&outside);
        assert!(!text.contains("root"), "{path}: {text}");
        assert!(path == "cat" || status >= 400, "{path}: {status}");
    }
    let data = setup.lone.world.data();
    let token = data.join("alloc").join(alloc).join("t/secrets/nomad_token");
    let token = fs::read_to_string(token).unwrap();
    for path in ["ls", "stat", "cat"] {
        for at in ["t/secrets", "t/secrets/nomad_token"] {
            let (status, text) = setup.get(&format!("/v1/client/fs/{path}/{alloc}?path={at}"));
            assert!(!text.contains(&token), "{path} {at}: {text}");
            assert!(
                path == "cat" || status >= 400,
                "{path} {at}: {status} {text}"
            );
        }
    }
}

#[test]
fn servers_pass_on_what_follows_until_user_goes() {
    let Some(setup) = Setup::new() else { return };
    let pid = setup.lone.agent.pid();
    let open = || {
        let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let mut watches = targets.map(|it| it.display().to_string());
        watches.by_ref().filter(|it| it.contains("inotify")).count()
    };
    let before = open();
    let mut plain = setup.open(&setup.logs("stdout", "&plain=true&follow=true"));
    let mut frames = setup.open(&setup.logs("stdout", "&follow=true"));
    read_until(&mut plain, "to out");
    // A frame, and a heartbeat.
    read_until(&mut frames, "dG8gb3V0Cg==");
    read_until(&mut frames, "{}");
    assert!(open() >= before + 2, "{before}, then {}", open());
    let signal = json!({ "Signal": "SIGUSR1", "Task": "t" });
    let (status, text) = setup.put(&setup.path("signal"), &signal);
    assert_eq!(status, 200, "{text}");
    read_until(&mut plain, "got usr1");
    drop((plain, frames));
    let until = Instant::now() + TIMEOUT;
    while open() > before {
        assert!(Instant::now() < until, "they are still followed");
        sleep(Duration::from_millis(20));
    }

    let node = &setup.node;
    let path = format!("/v1/agent/monitor?node_id={node}&log_level=trace");
    let mut log = setup.open(&path);
    // It is followed from the first heartbeat on.
    read_until(&mut log, "{}");
    setup.nomad.submit(&job("broken", "batch", "exit 1"));
    read_until(&mut log, "{\"Data\":\"");
}

#[test]
fn servers_pass_on_statistics_and_actions() {
    let Some(setup) = Setup::new() else { return };
    let (node, alloc) = (&setup.node, &setup.alloc);
    let stats = setup.json(&setup.path("stats"));
    assert!(stats["ResourceUsage"]["MemoryStats"]["Usage"].as_u64() > Some(0));
    let task = &stats["Tasks"]["t"]["ResourceUsage"];
    assert!(task["CpuStats"]["Measured"].is_array(), "{stats}");
    let stats = setup.json(&format!("/v1/client/stats?node_id={node}"));
    assert!(stats["Memory"]["Total"].as_u64() > Some(0), "{stats}");
    assert!(stats["AllocDirStats"]["Size"].as_u64() > Some(0), "{stats}");
    assert!(stats["CPU"][0]["Idle"].is_number(), "{stats}");
    let (status, checks) = setup.get(&setup.path("checks"));
    assert_eq!(status, 200, "{checks}");

    let (status, text) = setup.put(&setup.path("restart"), &json!({ "TaskName": "t" }));
    assert_eq!(status, 200, "{text}");
    setup
        .nomad
        .wait(&format!("/v1/allocation/{alloc}"), |alloc| {
            let task = &alloc["TaskStates"]["t"];
            (task["State"] == "running" && task["Restarts"] == 1).then_some(())
        });
    let (status, text) = setup.put(&setup.path("restart"), &json!({ "TaskName": "zz" }));
    assert!(
        status == 500 && text.contains("Could not find task runner"),
        "{text}"
    );
    let (status, text) = setup.get(&setup.path("gc"));
    let words = "the allocation is not terminal: stop it first";
    assert!(status == 500 && text.contains(words), "{text}");
    assert_eq!(setup.get(&format!("/v1/client/gc?node_id={node}")).0, 200);

    let path = format!("/v1/client/metadata?node_id={node}");
    let change = json!({ "NodeID": node, "Meta": { "rack": "r1", "gone": null } });
    let (status, text) = setup
        .nomad
        .request("POST", &path, &change.to_string())
        .unwrap();
    assert_eq!(status, 200, "{text}");
    let meta = setup.json(&path);
    assert_eq!(meta["Meta"]["rack"], "r1", "{meta}");
    assert_eq!(meta["Dynamic"], json!({ "rack": "r1" }));
    let change = json!({ "NodeID": node, "Meta": { "no key": "x" } });
    let (status, text) = setup
        .nomad
        .request("POST", &path, &change.to_string())
        .unwrap();
    assert!(
        status == 400 && text.contains("is no key of metadata"),
        "{status} {text}"
    );
    setup.nomad.wait(&format!("/v1/node/{node}"), |node| {
        (node["Meta"]["rack"] == "r1").then_some(())
    });
}

/// A service that answers, and one at a port where nobody listens.
fn checked(port: u16) -> Value {
    let service = |name: &str, port: u16| {
        json!({
            "Name": name,
            "Provider": "nomad",
            "PortLabel": port.to_string(),
            "Checks": [{ "Name": "answers", "Type": "tcp", "Interval": SECOND, "Timeout": SECOND }],
        })
    };
    let nobody = free_addr().rsplit(':').next().unwrap().parse().unwrap();
    let mut checked = job("checked", "service", "exec sleep 1000");
    checked["TaskGroups"][0]["Services"] = json!([service("up", port), service("down", nobody)]);
    checked
}

#[test]
fn servers_pass_on_what_checks_found() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let Some(setup) = Setup::with(&checked(port), "running") else {
        return;
    };
    let found = setup.nomad.wait(&setup.path("checks"), |found| {
        let of_service = |name: &str| {
            let mut all = found.as_object()?.values();
            all.find(|it| it["Service"] == name && it["Status"] != "pending")
        };
        Some([of_service("up")?.clone(), of_service("down")?.clone()])
    });
    for check in &found {
        assert_eq!(check["Check"], "answers", "{check}");
        assert_eq!(check["Group"], "checked.g[0]", "{check}");
        assert!(check["Timestamp"].as_i64() > Some(0), "{check}");
    }
    let [up, down] = found;
    assert_eq!(
        (&up["Status"], &up["Output"]),
        (&json!("success"), &json!("nomad: tcp ok"))
    );
    assert_eq!(down["Status"], "failure");
    let output = down["Output"].as_str().unwrap();
    assert!(output.contains("refused"), "{output}");
}

#[test]
fn allocation_that_servers_collect_is_gone_here() {
    let done = job(
        "done",
        "batch",
        "echo content > $NOMAD_TASK_DIR/file; exit 0",
    );
    let Some(setup) = Setup::with(&done, "complete") else {
        return;
    };
    let here = format!("/v1/allocation/{}", setup.alloc);
    assert_eq!(setup.get(&setup.path("cat")), (200, "content\n".to_owned()));
    let dir = setup.lone.world.data().join("alloc").join(&setup.alloc);
    assert!(dir.exists());
    // The node may not know yet that servers know of its end.
    setup.until("gc", |(status, _)| *status == 200);
    let shown = || request(&setup.lone.agent.addr, "GET", &here, None).ok();
    until(|| shown().filter(|(status, _)| *status == 404));
    assert!(!dir.exists(), "its directory is left");
    // Servers still show what became of it, and nothing runs it again.
    assert_eq!(setup.json(&here)["ClientStatus"], "complete");
    assert_ne!(setup.get(&setup.path("stats")).0, 200);
}

#[test]
fn servers_ask_who_node_is() {
    let Some(setup) = Setup::new() else { return };
    let node = &setup.node;
    let host = setup.json(&format!("/v1/agent/host?node_id={node}"));
    assert_eq!(host["AgentID"], node.as_str());
    assert!(host["HostData"]["OS"].as_str().unwrap().contains("Linux"));
    let claims = setup.json(&format!("/v1/client/identity?node_id={node}"));
    assert_eq!(claims["Claims"]["nomad_node_id"], node.as_str(), "{claims}");
    assert!(claims["Claims"]["exp"].is_number(), "{claims}");
    let renew = json!({ "NodeID": node });
    let (status, text) = setup
        .nomad
        .request("POST", "/v1/client/identity/renew", &renew.to_string())
        .unwrap();
    assert_eq!(status, 200, "{text}");
    setup
        .nomad
        .wait(&format!("/v1/client/identity?node_id={node}"), |now| {
            (now["Claims"]["iat"] != claims["Claims"]["iat"]).then_some(())
        });
    let (status, text) = setup.get(&format!("/v1/agent/pprof/cmdline?node_id={node}"));
    assert!(
        status == 501 && text.contains("no program in Go"),
        "{status} {text}"
    );
}

#[test]
fn servers_connect_users_with_programs() {
    let Some(setup) = Setup::new() else { return };
    let id = setup.alloc.as_str();
    let script = "echo task $NOMAD_TASK_NAME; cat; echo bad >&2; exit 3";
    let ended = setup.exec(&["-task", "t", id, "/bin/sh", "-c", script], "typed\n");
    assert_eq!(ended.code, 3, "{ended:?}");
    assert_eq!((&*ended.out, &*ended.err), ("task t\ntyped", "bad"));
    let large = "line of some length\n".repeat(100_000);
    let ended = setup.exec(&[id, "/usr/bin/md5sum"], &large);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.out, "c81770c72875859e4d2efb137af6a763  -");
    let ended = setup.exec(&[id, "/no/such/program"], "");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("there is no program"), "{ended:?}");
}

#[test]
fn program_does_not_outlive_users_session_through_server() {
    let Some(setup) = Setup::new() else { return };
    let address = format!("http://{}", setup.nomad.http);
    let begin = |seconds: &str, input: Stdio| {
        let args = ["alloc", "exec", setup.alloc.as_str(), "/bin/sleep", seconds];
        let session = Program::of(command(args).env("DROVER_ADDR", &address).stdin(input));
        let line = format!("/bin/sleep {seconds}");
        let until = Instant::now() + TIMEOUT;
        while processes(&line).is_empty() {
            assert!(Instant::now() < until, "it does not begin");
            sleep(Duration::from_millis(20));
        }
        (session, line)
    };
    // One that reads nothing of what it is sent, too.
    let zeros = fs::File::open("/dev/zero").unwrap();
    let some = zeros.take(100 << 10);
    let mut file = tempfile::tempfile().unwrap();
    std::io::copy(&mut { some }, &mut file).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    for (session, line) in [
        begin("86401.5", Stdio::null()),
        begin("86402.5", file.into()),
    ] {
        session.kill_9();
        let until = Instant::now() + TIMEOUT;
        while !processes(&line).is_empty() {
            assert!(Instant::now() < until, "{line} goes on");
            sleep(Duration::from_millis(20));
        }
    }
}
