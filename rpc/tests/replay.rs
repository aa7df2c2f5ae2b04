//! Connections as they were recorded between Nomad's client and server: given the server's bytes, we send
//! what the client sent, and understand what it was answered. And whole sessions with servers of several versions, the
//! oldest and the newest that this node is for among them.

#![allow(clippy::expect_used)]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::frames::{ACK, FIN, Frame, SYN, carried};
use common::session::{Exchange, Session, versions};
use common::{objects, recording};
use drover_rpc::connection::{
    Answer, Connection, Handler, InboundCall, Input, Limits, Output, open,
};
use drover_rpc::error::Error;
use drover_rpc::msgpack::{Value, decode, encode, end_of};
use drover_rpc::types::Request;
use drover_rpc::types::identity::AllocSignIdentities;
use drover_rpc::types::query::{AllocGetAllocs, Empty, NodeGetClientAllocs, StatusPing};
use drover_rpc::types::registration::{NodeEmitEvents, NodeRegister, NodeUpdateStatus};
use drover_rpc::types::service::{
    ServiceRegistrationDeleteById, ServiceRegistrationGetService, ServiceRegistrationUpsert,
};
use drover_rpc::types::stream::{AllocationsExec, ExecInput, FileSystemLogs, StreamOut};
use drover_rpc::types::update::NodeUpdateAlloc;
use drover_rpc::types::variable::VariablesRead;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// After this a session hangs.
const WITHIN: Duration = Duration::from_secs(60);

/// Reads until the node has sent so many bytes on a stream; returns all frames.
async fn sent(there: &mut DuplexStream, stream: u32, bytes: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    while carried(&frames, stream).len() < bytes {
        frames.push(
            Frame::read(there)
                .await
                .expect("frames")
                .expect("more of them"),
        );
    }
    frames
}

fn first_of(frames: &[Frame], stream: u32) -> &Frame {
    let mut of_it = frames.iter().filter(|frame| frame.stream == stream);
    of_it.next().expect("frames of that stream")
}

#[tokio::test]
async fn connection_start_is_as_recorded() {
    let recorded = recording("connection-start.from-node.bin");
    let (preamble, frames) = recorded.split_at(1);
    let theirs = carried(&Frame::all(frames), 1);
    let call = objects(&theirs[1..]);
    let request: StatusPing = decode(&call[1]).expect("the recorded request");

    let (here, mut there) = tokio::io::duplex(64 << 10);
    let (node, work) = open(
        here,
        "server",
        Arc::new(Recorded::default()),
        Limits::default(),
    );
    tokio::spawn(work);
    let reply = tokio::spawn(async move { node.call(&request, Duration::from_secs(30)).await });
    let mut first = [0];
    there.read_exact(&mut first).await.expect("a preamble");
    assert_eq!(first, preamble);
    let ours = sent(&mut there, 1, theirs.len()).await;
    assert_eq!(carried(&ours, 1), theirs);
    assert_eq!(first_of(&ours, 1).flags, SYN);

    let answer = recording("connection-start.to-node.bin");
    there.write_all(&answer).await.expect("the node listens");
    assert_eq!(reply.await.expect("the call"), Ok(Empty {}));
}

/// Serves streaming calls with what was recorded of them.
#[derive(Default)]
struct Recorded {
    out: Vec<StreamOut>,
    /// What was in the input, as text.
    input: Mutex<Vec<String>>,
}

impl Handler for Recorded {
    async fn call(&self, _: InboundCall) -> Answer {
        Answer::UnknownMethod
    }

    fn has_stream(&self, _: &str) -> bool {
        true
    }

    async fn stream(&self, call: InboundCall, input: &mut Input, output: &mut Output) {
        let mut seen = Vec::new();
        if call.method == "FileSystem.Logs" {
            let request: FileSystemLogs = call.decode().expect("a request");
            seen.push(format!("{} {}", request.task, request.log_type));
        } else {
            let request: AllocationsExec = call.decode().expect("a request");
            seen.push(format!("{} {:?}", request.task, request.cmd));
            // The terminal's size and text come before the end of the input.
            loop {
                let next: ExecInput = input.next().await.expect("input");
                seen.push(format!(
                    "{:?}",
                    next.tty_size.map(|size| (size.height, size.width))
                ));
                match next.stdin {
                    Some(data) if data.close => break,
                    Some(data) => seen.push(String::from_utf8_lossy(&data.data.0).into_owned()),
                    None => {}
                }
            }
        }
        self.input.lock().expect("not poisoned").append(&mut seen);
        for out in &self.out {
            output
                .send(out.payload.0.clone())
                .await
                .expect("the server reads");
        }
    }
}

/// Plays what the server sent on a stream; returns what the handler saw.
async fn replayed(name: &str, stream: u32) -> Vec<String> {
    let theirs = Frame::all(&recording(&format!("{name}.from-node.bin")));
    let theirs = carried(&theirs, stream);
    let out = objects(&theirs);
    let out = out
        .iter()
        .skip(1)
        .map(|object| decode(object).expect("an object"))
        .collect();
    let handler = Arc::new(Recorded {
        out,
        ..Default::default()
    });

    let (here, mut there) = tokio::io::duplex(64 << 10);
    let (node, work) = open(here, "server", handler.clone(), Limits::default());
    tokio::spawn(work);
    there.read_exact(&mut [0]).await.expect("a preamble");
    let bytes = recording(&format!("{name}.to-node.bin"));
    there.write_all(&bytes).await.expect("the node listens");
    let mut ours = sent(&mut there, stream, theirs.len()).await;
    assert_eq!(carried(&ours, stream), theirs, "{name}");
    let first = first_of(&ours, stream);
    assert_eq!(
        (first.flags, first.length),
        (ACK, 0),
        "it is acknowledged at once"
    );
    while ours.iter().all(|frame| frame.flags & FIN == 0) {
        ours.push(
            Frame::read(&mut there)
                .await
                .expect("frames")
                .expect("an end"),
        );
    }
    drop(node);
    handler.input.lock().expect("not poisoned").clone()
}

#[tokio::test]
async fn recorded_log_stream_is_served_as_recorded() {
    assert_eq!(replayed("logs-stream", 2).await, ["main stdout"]);
}

#[tokio::test]
async fn recorded_exec_session_is_served_as_recorded() {
    let seen = replayed("exec-stream", 0x28).await;
    assert_eq!(seen[0], "main [\"/bin/cat\"]");
    assert!(seen.len() > 1, "{seen:?}");
}

/// A call that is made again; what became of it, as a value.
type Made = JoinHandle<Result<Value, Error>>;

/// The value as we read it: what a field is missing in is as if it had nothing.
fn value<T: Serialize>(read: &T) -> Value {
    decode(&encode(read).expect("it is written")).expect("a value")
}

/// Makes the call once more.
fn made_again(node: &Connection, call: &Exchange) -> Made {
    match call.method.as_str() {
        "Alloc.GetAllocs" => made::<AllocGetAllocs>(node, call),
        "Alloc.SignIdentities" => made::<AllocSignIdentities>(node, call),
        "Node.EmitEvents" => made::<NodeEmitEvents>(node, call),
        "Node.GetClientAllocs" => made::<NodeGetClientAllocs>(node, call),
        "Node.Register" => made::<NodeRegister>(node, call),
        "Node.UpdateAlloc" => made::<NodeUpdateAlloc>(node, call),
        "Node.UpdateStatus" => made::<NodeUpdateStatus>(node, call),
        "ServiceRegistration.DeleteByID" => made::<ServiceRegistrationDeleteById>(node, call),
        "ServiceRegistration.GetService" => made::<ServiceRegistrationGetService>(node, call),
        "ServiceRegistration.Upsert" => made::<ServiceRegistrationUpsert>(node, call),
        "Status.Ping" => made::<StatusPing>(node, call),
        "Variables.Read" => made::<VariablesRead>(node, call),
        other => panic!("{other} is not known here"),
    }
}

fn made<R>(node: &Connection, call: &Exchange) -> Made
where
    R: Request + DeserializeOwned + Send + 'static,
    R::Reply: Serialize + Send,
{
    let request: R = decode(&call.request).expect("a request");
    contained(
        &value(&request),
        &decode(&call.request).expect("a value"),
        R::METHOD,
    );
    let node = node.clone();
    tokio::spawn(async move {
        let reply = node.call(&request, Duration::from_secs(30)).await?;
        Ok(value(&reply))
    })
}

/// Nothing, in any of the forms that stand for it.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Nil | Value::Bool(false) | Value::Int(0) | Value::Uint(0) => true,
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

/// What is in the one is in the other, under the same name. Older servers have not all that we read.
fn contained(ours: &Value, theirs: &Value, at: &str) {
    match (ours, theirs) {
        (Value::Map(ours), Value::Map(theirs)) => {
            for (key, value) in ours {
                let at = format!("{at}.{key}");
                contained(value, theirs.get(key).unwrap_or(&Value::Nil), &at);
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
        _ if is_nothing(ours) && is_nothing(theirs) => {}
        _ => assert_eq!(ours, theirs, "{at}"),
    }
}

/// Has the node make the calls of a session, and gives it what the server sent then. The calls that were answered, and
/// what we read of the answers.
async fn calls_again(
    node: &Connection,
    there: DuplexStream,
    session: &Session,
) -> Vec<(String, Value)> {
    let (mut from_node, mut to_node) = tokio::io::split(there);
    let (frames, mut sent) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        from_node.read_exact(&mut [0]).await.expect("a preamble");
        while let Ok(Some(frame)) = Frame::read(&mut from_node).await {
            drop(frames.send(frame));
        }
    });
    let (mut calls, mut ours) = (session.calls().into_iter().peekable(), Vec::new());
    let (mut all, mut answered) = (Vec::new(), Vec::new());
    for frame in &session.to_node {
        let is_ours = frame.stream % 2 == 1;
        while let Some(call) = calls.next_if(|call| is_ours && call.stream <= frame.stream) {
            let made = made_again(node, &call);
            let body = loop {
                if let Some(body) = asked(&ours, call.stream) {
                    break body;
                }
                ours.push(sent.recv().await.expect("the call is made"));
            };
            let recorded: Value = decode(&call.request).expect("a value");
            contained(&recorded, &decode(&body).expect("a value"), &call.method);
            all.push((call, made));
        }
        let written = to_node.write_all(&frame.bytes()).await;
        written.expect("the node listens");
    }
    for (call, made) in all {
        let Some((error, body)) = call.reply else {
            made.abort();
            continue;
        };
        match made.await.expect("the call") {
            Ok(reply) => {
                assert_eq!(error, "", "{}", call.method);
                contained(&reply, &decode(&body).expect("a value"), &call.method);
                answered.push((call.method, reply));
            }
            Err(Error::Server { error: refusal, .. }) => assert_eq!(refusal.text, error),
            Err(other) => panic!("{}: {other}", call.method),
        }
    }
    // Its own end of what the server opened.
    for (stream, theirs) in session.streamed("FileSystem.Logs") {
        while carried(&ours, stream).len() < theirs.len() {
            ours.push(sent.recv().await.expect("what the log has"));
        }
        assert_eq!(carried(&ours, stream), theirs, "the log");
    }
    answered
}

/// What a call on a stream asks for, once all of it is there.
fn asked(frames: &[Frame], stream: u32) -> Option<Vec<u8>> {
    let sent = carried(frames, stream);
    let call = sent.strip_prefix(&[1])?;
    let body = &call[end_of(call).ok()?..];
    Some(body[..end_of(body).ok()?].to_vec())
}

#[tokio::test]
async fn session_with_server_of_each_version_goes_as_recorded() {
    let versions = versions();
    assert!(versions.len() > 1, "{versions:?}");
    for version in versions {
        let session = Session::recorded(&version);
        let logs = session.streamed("FileSystem.Logs");
        let (_, log) = logs.first().expect("a log that was read");
        let log = objects(log);
        let out = log.iter().skip(1);
        let handler = Arc::new(Recorded {
            out: out.map(|it| decode(it).expect("a part")).collect(),
            ..Default::default()
        });
        let (here, there) = tokio::io::duplex(64 << 10);
        let (node, work) = open(here, "server", handler, Limits::default());
        tokio::spawn(work);
        let again = tokio::time::timeout(WITHIN, calls_again(&node, there, &session));
        let answered = again.await;
        let answered =
            answered.unwrap_or_else(|_| panic!("{version}: what was recorded does not come"));
        for (method, path) in [
            ("Node.Register", &["HeartbeatTTL"][..]),
            ("Node.Register", &["Servers", "RPCAdvertiseAddr"]),
            ("Node.UpdateStatus", &["HeartbeatTTL"]),
            ("Node.GetClientAllocs", &["Index"]),
            ("Alloc.GetAllocs", &["Allocs", "AllocModifyIndex"]),
            (
                "Alloc.GetAllocs",
                &["Allocs", "Job", "TaskGroups", "Tasks", "Driver"],
            ),
            (
                "Alloc.GetAllocs",
                &["Allocs", "Job", "TaskGroups", "Services", "Provider"],
            ),
            ("Node.UpdateAlloc", &["Index"]),
            ("ServiceRegistration.Upsert", &["Index"]),
        ] {
            let mut replies = answered.iter().filter(|(of, _)| of == method);
            let is_read = replies.any(|(_, reply)| !is_nothing(at(reply, path)));
            assert!(is_read, "{version}: {method} answered no {path:?}");
        }
    }
}

/// What is at a path of fields; of a list the first item.
fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    match (value, path) {
        (Value::List(items), _) => items.first().map_or(&Value::Nil, |item| at(item, path)),
        (Value::Map(fields), [field, rest @ ..]) => fields
            .get(*field)
            .map_or(&Value::Nil, |value| at(value, rest)),
        (found, []) => found,
        (_, [_, ..]) => &Value::Nil,
    }
}
