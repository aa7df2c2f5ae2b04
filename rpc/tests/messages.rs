//! What was recorded between a node and its servers is read whole, and what we write is what was recorded.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use drover_rpc::msgpack::{Value, decode, encode, end_of};
use drover_rpc::types::identity::{AclGetPolicies, AclWhoAmI, AllocSignIdentities};
use drover_rpc::types::query::{
    AllocGetAlloc, AllocGetAllocs, NodeGetClientAllocs, NodeGetNode, StatusPing,
};
use drover_rpc::types::registration::{NodeEmitEvents, NodeRegister, NodeUpdateStatus};
use drover_rpc::types::service::{ServiceRegistrationDeleteById, ServiceRegistrationUpsert};
use drover_rpc::types::stats::{AllocationsStats, ClientStatsStats};
use drover_rpc::types::task::Task;
use drover_rpc::types::update::NodeUpdateAlloc;
use drover_rpc::types::{InboundRequest, Request, inbound, stream};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The objects of a recording, in order.
fn objects(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(name);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut rest = &bytes[..];
    let mut objects = Vec::new();
    while !rest.is_empty() {
        let (object, more) = rest.split_at(end_of(rest).expect("whole objects"));
        objects.push(object.to_vec());
        rest = more;
    }
    assert!(!objects.is_empty(), "{name} holds nothing");
    objects
}

/// The bodies of calls: each second object, where the header says that there was no error.
fn bodies(name: &str) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for call in objects(name).chunks(2) {
        let header: Value = decode(&call[0]).expect("a header");
        let Value::Map(header) = header else {
            panic!("{header:?}")
        };
        if header
            .get("Error")
            .is_none_or(|error| *error == Value::Text(String::new()))
        {
            bodies.push(call[1].clone());
        }
    }
    assert!(!bodies.is_empty(), "{name} holds nothing but errors");
    bodies
}

/// The object with what Go leaves open decided as we do: entries of maps by their keys (structs are sorted
/// already), and nil in place of empty lists and maps. A body that is an empty struct stays one. Everything
/// else keeps its bytes.
fn settled(object: &[u8]) -> Vec<u8> {
    match object {
        [0x80] => object.to_vec(),
        _ => settled_part(object).0,
    }
}

/// The first object, settled, and the bytes behind it.
fn settled_part(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let wide = || usize::from(u16::from_be_bytes([bytes[1], bytes[2]]));
    let (head, items, map) = match bytes[0] {
        mark @ 0x80..=0x8f => (1, usize::from(mark & 0x0f), true),
        0xde => (3, wide(), true),
        mark @ 0x90..=0x9f => (1, usize::from(mark & 0x0f), false),
        0xdc => (3, wide(), false),
        _ => {
            let (object, rest) = bytes.split_at(end_of(bytes).expect("an object"));
            return (object.to_vec(), rest);
        }
    };
    if items == 0 {
        return (vec![0xc0], &bytes[head..]);
    }
    let mut rest = &bytes[head..];
    let mut parts = Vec::new();
    for _ in 0..items {
        let key = if map { end_of(rest).expect("a key") } else { 0 };
        let (key, behind) = rest.split_at(key);
        let (value, behind) = settled_part(behind);
        // Keys are sorted by their text, which lies behind a head of one byte or three.
        let text = if key.first() == Some(&0xda) {
            3
        } else {
            key.len().min(1)
        };
        parts.push((key[text..].to_vec(), [key, &value].concat()));
        rest = behind;
    }
    if map {
        parts.sort();
    }
    let parts = parts.into_iter().flat_map(|(_, part)| part);
    (bytes[..head].iter().copied().chain(parts).collect(), rest)
}

/// We read it, and write the same.
fn written_again<T: Serialize + DeserializeOwned>(bodies: Vec<Vec<u8>>) {
    for body in bodies {
        let read: T = decode(&body).expect("it is read");
        let written = encode(&read).expect("it is written");
        let (ours, theirs) = (written, settled(&body));
        assert!(
            ours == theirs,
            "{}:\n ours {:?}\n theirs {:?}",
            std::any::type_name::<T>(),
            decode::<Value>(&ours),
            decode::<Value>(&theirs)
        );
    }
}

/// All that we read of it is in it under that name, with that value.
fn found_again<T: Serialize + DeserializeOwned>(bodies: Vec<Vec<u8>>) {
    for body in bodies {
        let read: T = decode(&body).expect("it is read");
        let ours: Value = decode(&encode(&read).expect("it is written")).expect("a value");
        let theirs: Value = decode(&settled(&body)).expect("a value");
        contained(&ours, &theirs, std::any::type_name::<T>());
    }
}

fn contained(ours: &Value, theirs: &Value, at: &str) {
    match (ours, theirs) {
        (Value::Map(ours), Value::Map(theirs)) => {
            for (key, value) in ours {
                let at = format!("{at}.{key}");
                match theirs.get(key) {
                    Some(other) => contained(value, other, &at),
                    // Left out if no hint is given; we never write it.
                    None => assert_eq!(key, "DesiredTransition", "{at} is not there"),
                }
            }
        }
        (Value::List(ours), Value::List(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{at}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                contained(ours, theirs, at);
            }
        }
        // A number has one form for each type.
        (Value::Uint(ours), Value::Int(theirs)) => assert_eq!(*ours as i64, *theirs, "{at}"),
        (Value::Int(ours), Value::Uint(theirs)) => assert_eq!(*ours, *theirs as i64, "{at}"),
        _ => assert_eq!(ours, theirs, "{at}"),
    }
}

fn sent<R: Request + DeserializeOwned>()
where
    R::Reply: Serialize,
{
    written_again::<R>(bodies(&format!("{}.request.msgpack", R::METHOD)));
    found_again::<R::Reply>(bodies(&format!("{}.reply.msgpack", R::METHOD)));
}

fn asked<R: InboundRequest + Serialize>()
where
    R::Reply: DeserializeOwned,
{
    found_again::<R>(bodies(&format!("{}.request.msgpack", R::METHOD)));
    written_again::<R::Reply>(bodies(&format!("{}.reply.msgpack", R::METHOD)));
}

#[test]
fn requests_of_a_node_are_written_as_recorded_and_replies_are_read() {
    sent::<StatusPing>();
    sent::<NodeRegister>();
    sent::<NodeUpdateStatus>();
    sent::<NodeGetClientAllocs>();
    sent::<AllocGetAllocs>();
    sent::<AllocGetAlloc>();
    sent::<NodeGetNode>();
    sent::<NodeUpdateAlloc>();
    sent::<NodeEmitEvents>();
    sent::<AllocSignIdentities>();
    sent::<ServiceRegistrationUpsert>();
    sent::<ServiceRegistrationDeleteById>();
    sent::<AclWhoAmI>();
    sent::<AclGetPolicies>();
}

#[test]
fn requests_of_servers_are_read_and_replies_are_written_as_recorded() {
    asked::<inbound::AllocationsSignal>();
    asked::<inbound::AllocationsRestart>();
    asked::<inbound::AllocationsGarbageCollect>();
    asked::<inbound::AllocationsGarbageCollectAll>();
    asked::<inbound::AllocationsChecks>();
    asked::<inbound::FileSystemList>();
    asked::<inbound::FileSystemStat>();
    asked::<inbound::NodeMetaRead>();
    asked::<inbound::NodeMetaApply>();
    asked::<inbound::NodeIdentityGet>();
    asked::<inbound::NodeIdentityRenew>();
    asked::<inbound::HostVolumeCreate>();
    asked::<inbound::HostVolumeDelete>();
    asked::<ClientStatsStats>();
    asked::<AllocationsStats>();
}

#[test]
fn objects_of_streaming_calls_are_read_and_written_as_recorded() {
    for method in [
        "FileSystem.Logs",
        "FileSystem.Stream",
        "Allocations.Exec",
        "Agent.Monitor",
    ] {
        let part = |part: &str| objects(&format!("{method}.stream-{part}.msgpack"));
        written_again::<stream::StreamHeader>(part("header"));
        written_again::<stream::StreamAck>(part("ack"));
        written_again::<stream::StreamOut>(part("out"));
    }
    found_again::<stream::FileSystemLogs>(objects("FileSystem.Logs.stream-request.msgpack"));
    found_again::<stream::FileSystemStream>(objects("FileSystem.Stream.stream-request.msgpack"));
    found_again::<stream::AllocationsExec>(objects("Allocations.Exec.stream-request.msgpack"));
    found_again::<stream::ExecInput>(objects("Allocations.Exec.stream-in.msgpack"));
    found_again::<stream::AgentMonitor>(objects("Agent.Monitor.stream-request.msgpack"));
}

/// No recording has one: a job with a `secret` block would make all allocations of its reply unreadable.
#[test]
fn secrets_of_a_task_are_read() {
    let text = |text: &str| Value::Text(text.to_owned());
    let map = |pairs: &[(&str, Value)]| {
        let pairs = pairs.iter();
        Value::Map(
            pairs
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
        )
    };
    let secret = map(&[
        ("Config", map(&[("namespace", text("team"))])),
        ("Name", text("db")),
        ("Path", text("secrets/db")),
        ("Provider", text("nomad")),
    ]);
    let sent = map(&[
        ("Name", text("server")),
        ("Secrets", Value::List(vec![secret])),
    ]);
    let bytes = encode(&sent).expect("any value can be written");
    let task: Task = decode(&bytes).expect("a task");
    let [secret] = task.secrets.as_slice() else {
        panic!("{:?}", task.secrets);
    };
    assert_eq!((&*secret.name, &*secret.path), ("db", "secrets/db"));
    assert_eq!(secret.config.get("namespace"), Some(&text("team")));
}
