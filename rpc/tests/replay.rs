//! Connections as they were recorded between Nomad's client and server: given the server's bytes, we send
//! what the client sent, and understand what it was answered.

#![allow(clippy::expect_used)]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::frames::{ACK, FIN, Frame, SYN, carried};
use common::{objects, recording};
use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Limits, Output, open};
use drover_rpc::msgpack::decode;
use drover_rpc::types::query::{Empty, StatusPing};
use drover_rpc::types::stream::{AllocationsExec, ExecInput, FileSystemLogs, StreamOut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

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
async fn the_beginning_of_a_connection_is_as_recorded() {
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
async fn a_log_that_was_recorded_is_served_as_recorded() {
    assert_eq!(replayed("logs-stream", 2).await, ["main stdout"]);
}

#[tokio::test]
async fn an_exec_session_that_was_recorded_is_served_as_recorded() {
    let seen = replayed("exec-stream", 0x28).await;
    assert_eq!(seen[0], "main [\"/bin/cat\"]");
    assert!(seen.len() > 1, "{seen:?}");
}
