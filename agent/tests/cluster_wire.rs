//! What a server of a cluster can ask of the agent, by a model of such a server: requests that make no sense, and
//! connections that break.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/model.rs"]
mod model;
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drover_rpc::msgpack::{Raw, Value, decode, encode};
use drover_rpc::types::allocation::Allocation;
use drover_rpc::types::inbound::{FileList, FileSystemList};
use drover_rpc::types::job::{Job, TaskGroup};
use drover_rpc::types::query::{Allocations, NodeClientAllocs};
use drover_rpc::types::stream::{
    AllocationsExec, ExecData, ExecInput, FileSystemLogs, FileSystemStream, StreamAck,
    StreamHeader, StreamOut, TerminalSize,
};
use drover_rpc::types::task::Task;
use model::wire::Dice;
use model::wire::peer::{Peer, PeerStream};
use model::wire::server::{Does, call};
use model::{Model, registered};
use serde::Serialize;
use support::nomad::node_at;
use support::{Lone, TIMEOUT, processes, until};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

const ALLOC: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";

/// A server whose only node is an agent, on which an allocation of its runs.
struct Setup {
    lone: Lone,
    peer: Peer,
    model: Model,
}

impl Setup {
    /// `script` is what the allocation's task runs.
    fn new(script: &str) -> Setup {
        let script = script.to_owned();
        Setup::serving(move |method, body, address| does(method, &body, address, &script))
    }

    /// The server does this with a call, which has this method and body; it has this address.
    fn serving(does: impl Fn(&str, Value, &str) -> Does + Clone + Send + Sync + 'static) -> Setup {
        let mut model = Model::start(does);
        let lone = node_at(&model.address);
        let path = format!("/v1/allocation/{ALLOC}");
        until(|| {
            let alloc = lone.agent.try_get(&path)?;
            (alloc["ClientStatus"] == "running").then_some(())
        });
        Setup {
            lone,
            peer: model.connected(),
            model,
        }
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.model.run(work)
    }

    /// Whether the agent still answers, over the same connection.
    async fn lives(&self) {
        let reply = call(&self.peer, "NodeMeta.Read", &[0x80]).await;
        assert_eq!(reply.expect("an answer").0, "");
    }
}

fn does(method: &str, body: &Value, address: &str, script: &str) -> Does {
    match method {
        "Node.Register" | "Node.UpdateStatus" => registered(address),
        "Node.GetClientAllocs" => match body {
            Value::Map(fields) if index(fields) == 0 => Does::reply(&NodeClientAllocs {
                allocs: [(ALLOC.to_owned(), 10)].into(),
                index: 10,
                ..NodeClientAllocs::default()
            }),
            _ => Does::Nothing,
        },
        "Alloc.GetAllocs" => Does::reply(&Allocations {
            allocs: vec![alloc(script)],
            index: 10,
            ..Allocations::default()
        }),
        _ => Does::empty(),
    }
}

fn index(fields: &BTreeMap<String, Value>) -> u64 {
    match fields.get("MinQueryIndex") {
        Some(Value::Uint(index)) => *index,
        Some(Value::Int(index)) => u64::try_from(*index).unwrap(),
        _ => 0,
    }
}

fn alloc(script: &str) -> Allocation {
    let words = ["-c", script].map(|word| Value::Text(word.to_owned()));
    let config = [
        ("command".to_owned(), Value::Text("/bin/sh".to_owned())),
        ("args".to_owned(), Value::List(words.to_vec())),
    ];
    let task = Task {
        name: "t".to_owned(),
        driver: "raw_exec".to_owned(),
        config: config.into(),
        ..Task::default()
    };
    let group = TaskGroup {
        name: "g".to_owned(),
        count: 1,
        tasks: vec![task],
        ..TaskGroup::default()
    };
    let job = Job {
        id: "job".to_owned(),
        name: "job".to_owned(),
        namespace: "default".to_owned(),
        region: "global".to_owned(),
        datacenters: vec!["dc1".to_owned()],
        r#type: "service".to_owned(),
        priority: 50,
        task_groups: vec![group],
        ..Job::default()
    };
    Allocation {
        id: ALLOC.to_owned(),
        name: "job.g[0]".to_owned(),
        namespace: "default".to_owned(),
        job_id: "job".to_owned(),
        job: Some(Box::new(job)),
        task_group: "g".to_owned(),
        desired_status: "run".to_owned(),
        client_status: "pending".to_owned(),
        alloc_modify_index: 10,
        create_index: 10,
        create_time: 1,
        ..Allocation::default()
    }
}

/// Begins a streaming call. The acknowledgement was read.
async fn open<T: Serialize>(peer: &Peer, method: &str, request: &T) -> PeerStream {
    let mut stream = peer.open();
    stream.send(&[5]).await;
    let method = method.to_owned();
    stream.object(&StreamHeader { method }).await;
    let ack: StreamAck = stream.next().await.expect("an acknowledgement");
    assert_eq!(ack.error, "");
    stream.object(request).await;
    stream
}

/// What the node sends until the end, or until an error.
async fn all(stream: &mut PeerStream) -> (Vec<u8>, Option<(i64, String)>) {
    let mut sent = Vec::new();
    while let Some(object) = stream.next::<StreamOut>().await {
        sent.extend(object.payload.0);
        if let Some(error) = object.error {
            return (sent, Some((error.code.unwrap_or_default(), error.message)));
        }
    }
    (sent, None)
}

fn exec(words: &[&str]) -> AllocationsExec {
    AllocationsExec {
        alloc_id: ALLOC.to_owned(),
        task: "t".to_owned(),
        cmd: words.iter().map(|word| (*word).to_owned()).collect(),
        ..AllocationsExec::default()
    }
}

/// The arguments of a program that runs for long, and that nobody else runs.
fn long(number: u32) -> String {
    format!("sleep {number}{}", std::process::id())
}

/// A session whose program runs: it has said so.
async fn session(peer: &Peer, number: u32) -> PeerStream {
    let script = format!("echo begun; exec {}", long(number));
    let mut stream = open(peer, "Allocations.Exec", &exec(&["/bin/sh", "-c", &script])).await;
    let first: StreamOut = stream.next().await.expect("output");
    let begun = format!(
        r#"{{"stdout":{{"data":"{}"}}}}"#,
        STANDARD.encode("begun\n")
    );
    assert_eq!(String::from_utf8_lossy(&first.payload.0), begun);
    runs(&long(number)).await;
    stream
}

async fn runs(program: &str) {
    while processes(program).is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
}

async fn is_gone(program: &str) {
    while !processes(program).is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn invalid_requests_fail_alone() {
    let setup = Setup::new("exec sleep 1000");
    let methods = [
        "Allocations.Stats",
        "Allocations.Checks",
        "Allocations.Restart",
        "Allocations.Signal",
        "Allocations.GarbageCollect",
        "Allocations.SetPauseState",
        "Allocations.None",
        "ClientStats.Stats",
        "FileSystem.List",
        "FileSystem.Stat",
        "NodeMeta.Apply",
        "NodeIdentity.Get",
        "HostVolume.Create",
        "CSI.NodeDetachVolume",
        "Agent.Host",
        "Agent.Profile",
        "No.Method",
        "",
    ];
    let field = |name: &str, value: Value| {
        let fields: BTreeMap<String, Value> = [(name.to_owned(), value)].into();
        encode(&fields).unwrap()
    };
    let mut bodies = vec![
        vec![0x80],
        vec![0xc0],
        vec![0x90],
        vec![0x07],
        vec![0xa1, b'x'],
    ];
    for name in ["AllocID", "NodeID", "Path", "Meta"] {
        bodies.push(field(name, Value::Text("../../../../../etc".to_owned())));
        bodies.push(field(name, Value::List(vec![Value::Nil; 100])));
        bodies.push(field(name, Value::Text("x".repeat(100_000))));
    }
    setup.run(async {
        for method in methods {
            for body in &bodies {
                // Either is an answer: a reply, or the end of the stream.
                drop(call(&setup.peer, method, body).await);
            }
        }
        for method in [
            "FileSystem.Logs",
            "FileSystem.Stream",
            "Allocations.Exec",
            "Agent.Monitor",
            "Agent.MonitorExport",
        ] {
            for body in &bodies {
                let mut stream = open(&setup.peer, method, &decode::<Value>(body).unwrap()).await;
                if method != "Agent.Monitor" {
                    let (_, error) = all(&mut stream).await;
                    assert!(
                        error.is_some_and(|(code, _)| code >= 400),
                        "{method}: {body:?}"
                    );
                }
                stream.finish();
            }
        }
        setup.lives().await;
    });
    let state = setup.lone.agent.get(&format!("/v1/allocation/{ALLOC}"));
    assert_eq!(state["ClientStatus"], "running");
}

/// The items of a list of an object.
fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    match object {
        Value::Map(fields) => match fields.get(field) {
            Some(Value::List(items)) => items,
            _ => &[],
        },
        _ => &[],
    }
}

fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    match object {
        Value::Map(fields) => match fields.get(field) {
            Some(Value::Text(text)) => text,
            _ => "",
        },
        _ => "",
    }
}

/// A reply about this one is longer than any may be.
const HUGE: &str = "1a1b2c3d-0000-4000-8000-0123456789ab";

#[test]
fn allocation_too_large_to_be_sent_has_failed_and_keeps_no_other_from_running() {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let is_huge = |id: &Value| matches!(id, Value::Text(id) if id == HUGE);
    let setup = Setup::serving(move |method, body, address| match method {
        "Node.GetClientAllocs" if matches!(&body, Value::Map(fields) if index(fields) == 0) => {
            Does::reply(&NodeClientAllocs {
                allocs: [ALLOC, HUGE].map(|id| (id.to_owned(), 10)).into(),
                index: 10,
                ..NodeClientAllocs::default()
            })
        }
        "Alloc.GetAllocs" if items(&body, "AllocIDs").iter().any(is_huge) => {
            let mut long = alloc("true");
            long.name = "x".repeat(17 << 20);
            Does::reply(&Allocations {
                allocs: vec![long],
                index: 10,
                ..Allocations::default()
            })
        }
        "Node.UpdateAlloc" => {
            for report in items(&body, "Alloc") {
                let output = ["ID", "ClientStatus", "ClientDescription"];
                let output = output.map(|field| text_of(report, field).to_owned());
                drop(reports.send(output));
            }
            Does::empty()
        }
        _ => does(method, &body, address, "sleep 1000"),
    });
    let why = setup.run(async {
        loop {
            let [id, status, why] = reported.recv().await.unwrap();
            if id == HUGE {
                assert_eq!(status, "failed");
                return why;
            }
        }
    });
    assert!(why.contains("longer than a message may be"), "{why}");
    setup.run(setup.lives());
}

/// Bytes at random in place of requests and of what follows them.
#[test]
fn random_bytes_cost_nothing_but_their_stream() {
    let setup = Setup::new("exec sleep 1000");
    let mut dice = Dice(7);
    setup.run(async {
        for round in 0..300 {
            let mut stream = setup.peer.open();
            let streaming = round % 2 == 0;
            stream.send(&[if streaming { 5 } else { 1 }]).await;
            if streaming {
                let method = ["FileSystem.Logs", "Allocations.Exec"][round % 4 / 2].to_owned();
                stream.object(&StreamHeader { method }).await;
            }
            if round % 3 == 0 {
                let program = long(51);
                let words: Vec<&str> = program.split(' ').collect();
                stream.object(&exec(&words)).await;
            }
            let bytes: Vec<u8> = (0..dice.below(200)).map(|_| dice.next() as u8).collect();
            stream.send(&bytes).await;
            stream.finish();
        }
        setup.lives().await;
        is_gone(&long(51)).await;
    });
}

#[test]
fn path_that_leads_out_of_allocation_is_refused() {
    let setup = Setup::new(
        "ln -s /etc local/out; ln -s /etc/passwd local/passwd; echo x > local/in; exec sleep 1000",
    );
    let list = |path: &str| FileSystemList {
        alloc_id: ALLOC.to_owned(),
        path: path.to_owned(),
        ..FileSystemList::default()
    };
    setup.run(async {
        let until = Instant::now() + TIMEOUT;
        let names = loop {
            let request = encode(&list("t/local")).unwrap();
            let (error, body) = call(&setup.peer, "FileSystem.List", &request)
                .await
                .unwrap();
            assert_eq!(error, "");
            let found: FileList = decode(&body).unwrap();
            let names: Vec<String> = found.files.into_iter().map(|file| file.name).collect();
            if names.contains(&"in".to_owned()) {
                break names;
            }
            assert!(Instant::now() < until, "{names:?}");
        };
        assert!(names.contains(&"out".to_owned()), "{names:?}");
        for path in [
            "../..",
            "t/local/out",
            "/../../../etc",
            "t/local/../../../..",
        ] {
            let request = encode(&list(path)).unwrap();
            let (error, body) = call(&setup.peer, "FileSystem.List", &request)
                .await
                .unwrap();
            let found: FileList = decode(&body).unwrap_or_default();
            let refused = !error.is_empty() && found.files.is_empty();
            assert!(refused, "{path}: {found:?}");
        }
        // The last of them leads to the root, however deep the allocation lies.
        let outside = format!("{}etc/passwd", "../".repeat(12));
        for (path, text) in [
            ("t/local/in", Some("x\n")),
            ("t/local/passwd", None),
            (outside.as_str(), None),
        ] {
            let request = FileSystemStream {
                alloc_id: ALLOC.to_owned(),
                path: path.to_owned(),
                plain_text: true,
                ..FileSystemStream::default()
            };
            let mut stream = open(&setup.peer, "FileSystem.Stream", &request).await;
            let (sent, error) = all(&mut stream).await;
            match text {
                Some(text) => assert_eq!((sent.as_slice(), error), (text.as_bytes(), None)),
                None => assert!(sent.is_empty() && error.is_some(), "{path}: {error:?}"),
            }
        }
    });
}

#[test]
fn log_that_is_followed_beats_until_server_wants_no_more() {
    let setup = Setup::new("echo line; exec sleep 1000");
    let request = |plain_text| FileSystemLogs {
        alloc_id: ALLOC.to_owned(),
        task: "t".to_owned(),
        log_type: "stdout".to_owned(),
        follow: true,
        plain_text,
        ..FileSystemLogs::default()
    };
    setup.run(async {
        for (plain, line, beat) in [
            (true, "line\n", ""),
            (
                false,
                r#"{"Data":"bGluZQo=","File":"alloc/logs/t.stdout.0","Offset":5}"#,
                "{}",
            ),
        ] {
            let mut stream = open(&setup.peer, "FileSystem.Logs", &request(plain)).await;
            let mut seen = Vec::new();
            while !seen.contains(&line.to_owned()) || seen.last().is_none_or(|last| last != beat) {
                let next: StreamOut = stream.next().await.expect("it is followed");
                assert_eq!(next.error, None);
                seen.push(String::from_utf8(next.payload.0).unwrap());
            }
            stream.finish();
            while stream.next::<StreamOut>().await.is_some() {}
        }
    });
}

#[test]
fn program_ends_when_its_client_does() {
    let setup = Setup::new("exec sleep 1000");
    setup.run(async {
        let mut sessions = Vec::new();
        for number in 61..65 {
            sessions.push(session(&setup.peer, number).await);
        }
        // The server sends no more, also behind input that nobody reads, or what makes no sense.
        sessions[0].finish();
        let input = typed(&"x".repeat(50_000));
        for _ in 0..4 {
            sessions[1].object(&input).await;
        }
        sessions[1].finish();
        sessions[2].send(&[0x07]).await;
        for (session, number) in sessions[..3].iter_mut().zip(61..) {
            while session.bytes().await.is_some() {}
            is_gone(&long(number)).await;
        }
        // One is left, and ends with its connection.
        assert_eq!(processes(&long(64)).len(), 1);
        setup.peer.close();
        is_gone(&long(64)).await;
    });
}

#[test]
fn program_has_terminal_of_size_that_client_says() {
    let setup = Setup::new("exec sleep 1000");
    setup.run(async {
        let mut request = exec(&["/bin/sh", "-c", "read line; tty; stty size; exit 7"]);
        request.tty = true;
        let mut stream = open(&setup.peer, "Allocations.Exec", &request).await;
        let size = TerminalSize {
            height: 31,
            width: 77,
        };
        let resize = ExecInput {
            tty_size: Some(size),
            ..ExecInput::default()
        };
        // A heartbeat, the size, and what the program waits for.
        for output in [ExecInput::default(), resize, typed("go\n")] {
            stream.object(&output).await;
        }
        let (sent, error) = all(&mut stream).await;
        assert_eq!(error, None);
        let sent = String::from_utf8(sent).unwrap();
        let output = output(&sent);
        assert!(output.contains("/dev/"), "{output:?}");
        assert!(output.contains("31 77\r\n"), "{output:?}");
        let end = r#"{"exited":true,"result":{"exit_code":7}}"#;
        assert!(sent.ends_with(end) && !sent.contains("stderr"), "{sent}");
    });
}

/// What was written to standard output, of messages one behind the other.
fn output(messages: &str) -> String {
    let messages = serde_json::Deserializer::from_str(messages).into_iter::<serde_json::Value>();
    let data = messages.filter_map(|it| Some(it.unwrap()["stdout"]["data"].as_str()?.to_owned()));
    let bytes = data.flat_map(|data| STANDARD.decode(data).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

fn typed(text: &str) -> ExecInput {
    ExecInput {
        stdin: Some(ExecData {
            close: false,
            data: Raw(text.as_bytes().to_vec()),
        }),
        ..ExecInput::default()
    }
}

#[test]
fn slow_reader_holds_up_only_its_own_stream() {
    let setup = Setup::new("exec sleep 1000");
    setup.run(async {
        let program = format!("yes {}", long(71));
        let request = exec(&["/bin/sh", "-c", &format!("exec {program}")]);
        let mut slow = open(&setup.peer, "Allocations.Exec", &request).await;
        slow.grants = false;
        for _ in 0..20 {
            setup.lives().await;
        }
        // The end is noticed although there is something to send.
        runs(&program).await;
        slow.finish();
        is_gone(&program).await;
    });
}
