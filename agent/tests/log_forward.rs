//! Logs of tasks are sent elsewhere, in every protocol, and none of them is missing after a restart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Does, Lone, Server, TIMEOUT, World, request};

const TALK: &str = "echo out one; echo out two; echo err >&2; printf rest";

fn shell(id: &str, script: &str) -> Value {
    json!({
        "ID": id, "Type": "batch", "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "g",
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "LogConfig": { "MaxFiles": 2, "MaxFileSizeMB": 1 },
            }],
        }],
    })
}

fn run(lone: &Lone, job: &Value) {
    let (status, body) = lone.agent.put("/v1/jobs", &json!({ "Job": job })).unwrap();
    assert_eq!(status, 200, "{body}");
}

/// Reads datagrams until one contains each of these texts.
fn datagrams(mut next: impl FnMut(&mut [u8]) -> std::io::Result<usize>, texts: &[&str]) -> String {
    let (mut all, mut buffer) = (String::new(), vec![0; 65_536]);
    while !texts.iter().all(|text| all.contains(text)) {
        let count = next(&mut buffer).unwrap_or_else(|error| panic!("{error}; before it: {all}"));
        all.push_str(&String::from_utf8_lossy(&buffer[..count]));
        all.push('\n');
    }
    all
}

#[test]
fn syslog_gets_lines_by_datagrams() {
    let world = World::new();
    let path = world.path("log");
    let here = UnixDatagram::bind(&path).unwrap();
    here.set_read_timeout(Some(TIMEOUT)).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(TIMEOUT)).unwrap();
    let (path, addr) = (path.display(), udp.local_addr().unwrap());
    let lone = Lone::configured(&format!(
        "log_forward \"here\" {{\n type = \"syslog\"\n address = \"unix://{path}\"\n}}\n\
         log_forward \"udp\" {{\n type = \"syslog\"\n address = \"udp://{addr}\"\n facility = \"local0\"\n}}\n"
    ));
    run(&lone, &shell("talks", TALK));
    let all = datagrams(
        |buffer| here.recv(buffer),
        &["] out two", "] rest", "] err"],
    );
    assert!(all.contains("<14>1 ") && all.contains("<11>1 "), "{all}");
    assert!(
        all.contains(" job=\"talks\" ") && all.contains(" stream=\"stderr\" "),
        "{all}"
    );
    let all = datagrams(|buffer| udp.recv(buffer), &["] out one", "] rest", "] err"]);
    assert!(all.contains("<134>1 "), "{all}");
}

/// Reads messages with their lengths.
fn framed(reader: &mut impl BufRead) -> String {
    let mut length = Vec::new();
    reader.read_until(b' ', &mut length).unwrap();
    let length: usize = String::from_utf8(length).unwrap().trim().parse().unwrap();
    let mut message = vec![0; length];
    reader.read_exact(&mut message).unwrap();
    String::from_utf8(message).unwrap()
}

#[test]
fn syslog_gets_lines_over_tcp_and_over_a_new_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let lone = Lone::configured(&format!(
        "log_forward \"tcp\" {{\n type = \"syslog\"\n address = \"tcp://{addr}\"\n}}\n"
    ));
    run(&lone, &shell("one", "printf 'first\\n'"));
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let first = framed(&mut BufReader::new(stream));
    assert!(
        first.ends_with("] first") && first.starts_with("<14>1 "),
        "{first}"
    );
    // That connection is closed now.
    run(&lone, &shell("two", "printf 'second\\n'"));
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let second = framed(&mut BufReader::new(stream));
    assert!(second.ends_with("] second"), "{second}");
}

#[test]
fn journal_gets_fields() {
    let world = World::new();
    let path = world.path("journal");
    let journal = UnixDatagram::bind(&path).unwrap();
    journal.set_read_timeout(Some(TIMEOUT)).unwrap();
    let path = path.display();
    let lone = Lone::configured(&format!(
        "log_forward \"j\" {{\n type = \"journald\"\n address = \"{path}\"\n labels = {{ env = \"prod\" }}\n}}\n"
    ));
    run(&lone, &shell("talks", TALK));
    let texts = [
        "MESSAGE=out one\n",
        "MESSAGE=rest\n",
        "MESSAGE=err\n",
        "PRIORITY=3\n",
    ];
    let all = datagrams(|buffer| journal.recv(buffer), &texts);
    for field in [
        "DROVER_JOB=talks\n",
        "DROVER_ENV=prod\n",
        "SYSLOG_IDENTIFIER=t\n",
    ] {
        assert!(all.contains(field), "{field}: {all}");
    }
}

/// All lines that a server of this kind was given, in their order.
fn lines(server: &Server, path: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of_loki = |body: &Value| {
        let streams = body["streams"].as_array().into_iter().flatten();
        let values = streams.flat_map(|stream| stream["values"].as_array().unwrap().clone());
        values.map(|value| text(&value[1])).collect::<Vec<_>>()
    };
    let of_otlp = |body: &Value| {
        let resources = body["resourceLogs"].as_array().into_iter().flatten();
        let scopes = resources.flat_map(|it| it["scopeLogs"].as_array().unwrap().clone());
        let records = scopes.flat_map(|it| it["logRecords"].as_array().unwrap().clone());
        records
            .map(|record| text(&record["body"]["stringValue"]))
            .collect::<Vec<_>>()
    };
    let posts = server.posted(path, 0);
    let bodies = posts
        .iter()
        .map(|post| serde_json::from_str::<Value>(post).unwrap());
    bodies
        .flat_map(|body| [of_loki(&body), of_otlp(&body)].concat())
        .collect()
}

#[track_caller]
fn wait_for_line(server: &Server, path: &str, wanted: &str) -> Vec<String> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let lines = lines(server, path);
        if lines.iter().any(|line| line == wanted) {
            return lines;
        }
        let last = lines.iter().rev().take(5).collect::<Vec<_>>();
        assert!(
            Instant::now() < until,
            "no {wanted:?} in {} lines, …{last:?}",
            lines.len()
        );
        std::thread::yield_now();
    }
}

fn http(name: &str, kind: &str, server: &Server, path: &str, more: &str) -> String {
    let url = server.url(path);
    format!("log_forward \"{name}\" {{\n type = \"{kind}\"\n url = \"{url}\"\n {more}\n}}\n")
}

#[test]
fn http_servers_get_lines_of_the_jobs_that_are_meant() {
    let server = Server::new();
    server.gives("/loki", b"");
    server.gives("/otlp", b"{}");
    let loki = http("loki", "loki", &server, "/loki", "jobs = [\"web-*\"]");
    let otlp = http(
        "otlp",
        "otlp",
        &server,
        "/otlp",
        "headers = { X-Token = \"t\" }",
    );
    let lone = Lone::configured(&format!("{loki}{otlp}"));
    run(&lone, &shell("other", "echo not for loki"));
    wait_for_line(&server, "/otlp", "not for loki");
    run(&lone, &shell("web-1", TALK));
    let all = wait_for_line(&server, "/loki", "rest");
    assert!(!all.iter().any(|line| line == "not for loki"), "{all:?}");
    wait_for_line(&server, "/otlp", "rest");
    assert!(server.heads("/otlp")[0].contains("x-token: t\r\n"));
}

#[test]
fn restarted_agent_goes_on_and_loses_no_line() {
    let server = Server::new();
    server.gives("/", b"");
    let lone = Lone::configured(&http("loki", "loki", &server, "/", ""));
    let script =
        "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo end; exec sleep 1000";
    run(&lone, &shell("counts", script));
    wait_for_line(&server, "/", "line 100");
    let lone = lone.next_agent();
    let all = wait_for_line(&server, "/", "end");
    let mut next = 0;
    for line in &all {
        if *line == format!("line {next}") {
            next += 1;
        }
    }
    assert_eq!(next, 20_000, "in order, with some twice");
    // What was sent and noted is not sent by another one.
    let (_, _) = (drop(server), lone);
}

#[test]
fn rotated_log_lines_are_reported_as_lost() {
    let server = Server::new();
    server.does("/", Does::Refuses(503));
    let lone = Lone::configured(&http("loki", "loki", &server, "/", ""));
    let script = "head -c 6000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo end";
    run(&lone, &shell("floods", script));
    lone.agent.wait_for("/v1/job/floods/allocations", |seen| {
        (seen[0]["ClientStatus"] == "complete").then_some(())
    });
    let until = Instant::now() + TIMEOUT;
    while server.posted("/", 0).is_empty() {
        assert!(Instant::now() < until, "nothing was tried");
    }
    server.gives("/", b"");
    let all = wait_for_line(&server, "/", "end");
    let mut marks: Vec<&String> = all
        .iter()
        .filter(|line| line.contains("bytes of log lost"))
        .collect();
    // Those of refused requests are there too.
    marks.dedup();
    assert_eq!(marks.len(), 1, "{marks:?}");
    let lost: u64 = marks[0].split(' ').nth(2).unwrap().parse().unwrap();
    assert!((3_000_000..6_000_000).contains(&lost), "{lost}");
    let path = "/v1/metrics?format=prometheus";
    let (_, text) = request(&lone.agent.addr, "GET", path, None).unwrap();
    let samples = text.lines();
    let samples = samples.filter_map(|line| line.strip_prefix("drover_log_forward_lost_bytes{"));
    let counted: Vec<u64> = samples
        .map(|sample| sample.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counted, [lost], "{text}");
}

#[test]
fn line_without_an_end_is_sent_after_a_while() {
    let world = World::new();
    let path = world.path("log");
    let here = UnixDatagram::bind(&path).unwrap();
    here.set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let path = path.display();
    let lone = Lone::configured(&format!(
        "log_forward \"here\" {{\n type = \"syslog\"\n address = \"unix://{path}\"\n}}\n"
    ));
    run(&lone, &shell("asks", "printf 'name? '; exec sleep 1000"));
    datagrams(|buffer| here.recv(buffer), &["] name? "]);
}

#[test]
fn agent_that_forwards_nothing_has_no_place_for_it() {
    let lone = Lone::new();
    run(&lone, &shell("talks", TALK));
    lone.agent.wait_for("/v1/job/talks/allocations", |seen| {
        (seen[0]["ClientStatus"] == "complete").then_some(())
    });
    assert!(!lone.world.data().join("log-forward").exists());
    assert!(!lone.world.data().join("notify").exists());
}
