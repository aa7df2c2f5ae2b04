//! A short life of a node in a cluster, and the calls that are made in it. With `DROVER_RECORD_SESSION=FOLDER` what
//! both sides sent is left in that folder, without what would name the machine: so were the sessions made that
//! `rpc/tests/replay.rs` replays. Where there is no program `nomad` on the PATH, this test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;
#[path = "../../rpc/tests/common/mod.rs"]
mod wire;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::{env, fs};

use drover_rpc::msgpack::decode;
use drover_rpc::types::node::Node;
use drover_rpc::types::registration::NodeRegister;
use serde_json::{Value, json};
use support::nomad::{Nomad, job, node_at};
use support::until;
use wire::session::{Session, whole_frames};

const SECOND: i64 = 1_000_000_000;

/// Calls that are made with servers of every version.
const CALLS: [&str; 7] = [
    "Alloc.GetAllocs",
    "Node.GetClientAllocs",
    "Node.Register",
    "Node.UpdateAlloc",
    "Node.UpdateStatus",
    "ServiceRegistration.DeleteByID",
    "ServiceRegistration.Upsert",
];

/// What a task's templates ask of servers that sign its identity and have variables, which those before 1.4 do not.
const QUESTIONS: [&str; 2] = ["ServiceRegistration.GetService", "Variables.Read"];

/// Passes on what a node and a server send each other, and keeps that of the first connection.
struct Between {
    address: String,
    from_node: Arc<Mutex<Vec<u8>>>,
    to_node: Arc<Mutex<Vec<u8>>>,
    /// How many connections were made after the first.
    more: Arc<Mutex<usize>>,
}

impl Between {
    fn new(server: &str) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let between = Between {
            address: listener.local_addr().unwrap().to_string(),
            from_node: Arc::default(),
            to_node: Arc::default(),
            more: Arc::default(),
        };
        let (from, to) = (between.from_node.clone(), between.to_node.clone());
        let server = server.to_owned();
        let more = between.more.clone();
        thread::spawn(move || {
            let (node, _) = listener.accept().unwrap();
            let there = TcpStream::connect(&server).unwrap();
            pass_both(node, there, from, to);
            for node in listener.incoming() {
                *more.lock().unwrap() += 1;
                // The node's own life goes on. Nobody asks what it says here.
                let there = TcpStream::connect(&server).unwrap();
                pass_both(node.unwrap(), there, Arc::default(), Arc::default());
            }
        });
        between
    }
}

type Kept = Arc<Mutex<Vec<u8>>>;

fn pass_both(node: TcpStream, server: TcpStream, from_node: Kept, to_node: Kept) {
    let (back, there) = (server.try_clone().unwrap(), node.try_clone().unwrap());
    thread::spawn(move || pass_on(back, there, &to_node));
    thread::spawn(move || pass_on(node, server, &from_node));
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        // Kept first: who sees that it arrived finds it here.
        kept.lock().unwrap().extend(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}

/// A service whose task has an identity of its own, and shows a variable and a service.
fn web(asks: bool) -> Value {
    let script = match asks {
        true => "cat local/shown; exec sleep 1000",
        false => "echo one; exec sleep 1000",
    };
    let mut web = job("web", "service", script);
    let group = &mut web["TaskGroups"][0];
    group["Services"] = json!([{
        "Name": "web",
        "Provider": "nomad",
        "PortLabel": "8080",
        "Tags": ["blue"],
    }]);
    let task = &mut group["Tasks"][0];
    task["KillTimeout"] = json!(SECOND / 10);
    task["Identities"] = json!([{ "Name": "db", "Audience": ["db.example"], "File": true }]);
    if asks {
        let text = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .value }}{{ end }}\
                    {{ range nomadService \"none\" }}x{{ end }}\n";
        task["Templates"] = json!([{
            "EmbeddedTmpl": text,
            "DestPath": "local/shown",
            "ChangeMode": "noop",
        }]);
    }
    web
}

#[test]
fn life_of_node_goes_by_calls_that_are_recorded() {
    let Some(nomad) = Nomad::start() else { return };
    let between = Between::new(&nomad.rpc);
    let lone = node_at(&between.address);
    nomad.node("ready");
    let variable = json!({ "Path": "nomad/jobs/web", "Items": { "value": "one" } }).to_string();
    // A server that began a moment ago may have no keys yet.
    let has_variables = until(|| {
        let put = nomad.request("PUT", "/v1/var/nomad/jobs/web", &variable);
        let (status, _) = put.ok()?;
        (status < 500).then_some(status == 200)
    });
    nomad.submit(&web(has_variables));
    let alloc = nomad.alloc("web", "running")["ID"]
        .as_str()
        .unwrap()
        .to_owned();
    nomad.wait("/v1/service/web", |all| all.get(0).map(drop));
    let log = lone.world.data().join("alloc").join(&alloc);
    let log = log.join("alloc/logs/t.stdout.0");
    until(|| {
        fs::metadata(&log)
            .is_ok_and(|it| it.len() > 0)
            .then_some(())
    });
    let logs = format!("/v1/client/fs/logs/{alloc}?task=t&type=stdout&plain=true");
    let shown = nomad.request("GET", &logs, "").unwrap();
    assert_eq!(shown, (200, "one\n".to_owned()));
    assert!(nomad.ask("DELETE", "/v1/job/web", "").is_some());
    nomad.alloc("web", "complete");
    nomad.wait("/v1/service/web", |all| {
        all.as_array()?.is_empty().then_some(())
    });
    drop(lone);

    let more = *between.more.lock().unwrap();
    assert_eq!(
        more, 0,
        "the node connected again: what it sent then is not in the recording"
    );
    let (from, to) = (
        between.from_node.lock().unwrap(),
        between.to_node.lock().unwrap(),
    );
    let session = Session::new(&from, &to);
    let calls = session.calls();
    let made: BTreeSet<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    let questions = QUESTIONS.iter().filter(|_| has_variables);
    for method in CALLS.iter().chain(questions) {
        assert!(
            made.contains(method),
            "{method} was not called, but {made:?}"
        );
    }
    assert_ne!(session.streamed("FileSystem.Logs"), []);
    if let Some(folder) = env::var_os("DROVER_RECORD_SESSION") {
        let first = calls.iter().find(|call| call.method == "Node.Register");
        let first: NodeRegister = decode(&first.unwrap().request).unwrap();
        let names = names_of_machine(&first.node.unwrap());
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).unwrap();
        let mut whole = from[..1].to_vec();
        whole.extend(whole_frames(&from[1..]));
        fs::write(folder.join("session.from-node.bin"), without(whole, &names)).unwrap();
        let whole = whole_frames(&to).to_vec();
        fs::write(folder.join("session.to-node.bin"), without(whole, &names)).unwrap();
    }
}

/// What in a registration is of this machine alone.
fn names_of_machine(node: &Node) -> Vec<String> {
    let facts = node.attributes.iter().filter(|(name, _)| {
        let name = name.as_str();
        name.starts_with("unique.") || matches!(name, "cpu.modelname" | "kernel.version")
    });
    let mut names: Vec<String> = facts.map(|(_, value)| value.clone()).collect();
    let networks = node.node_resources.iter().flat_map(|it| &it.node_networks);
    for network in networks {
        names.push(network.mac_address.clone());
        names.extend(network.addresses.iter().map(|it| it.address.clone()));
    }
    // An address of the loopback says nothing, and short texts are in others.
    names.retain(|name| name.len() > 3 && !name.starts_with("127."));
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names
}

/// The bytes, as long as they are, with these names overwritten.
fn without(mut bytes: Vec<u8>, names: &[String]) -> Vec<u8> {
    for name in names {
        let mut at = 0;
        while let Some(found) = find(&bytes[at..], name.as_bytes()) {
            at += found;
            bytes[at..at + name.len()].fill(b'x');
        }
    }
    bytes
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let mut all = bytes.windows(part.len());
    all.position(|window| window == part)
}
