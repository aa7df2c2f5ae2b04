//! `alloc exec`, as a user and as a program of Nomad's see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::io::Write;
use std::process::Stdio;

use drover::cli::args::Connection;
use drover::cli::client::{Client, Socket};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use support::{Lone, Program, command};
use tokio_tungstenite::tungstenite::Message;

const JOB: &str = r#"
job "web" {
  group "g" {
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
    task "mock" {
      driver = "mock_driver"
      lifecycle {
        hook    = "poststart"
        sidecar = true
      }
      config {
        run_for = "10h"
        exec_command {
          exit_code     = 7
          stdout_string = "from the mock driver\n"
        }
      }
    }
  }
}
"#;

struct Setup {
    lone: Lone,
    alloc: String,
}

impl Setup {
    fn new() -> Setup {
        let lone = Lone::new();
        let file = lone.world.file("web.hcl", JOB);
        lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
            .ok();
        let alloc = lone.agent.wait_for("/v1/job/web/allocations", |all| {
            let states = &all.get(0)?["TaskStates"];
            let runs = |task: &str| states[task]["State"] == "running";
            (runs("main") && runs("mock")).then(|| all[0]["ID"].as_str().unwrap().to_owned())
        });
        Setup { lone, alloc }
    }

    fn address(&self) -> String {
        format!("http://{}", self.lone.agent.addr)
    }

    /// Runs `alloc exec` with this input.
    fn exec(&self, input: &str, args: &[&str]) -> support::Ended {
        let mut command = command(["alloc", "exec"]);
        command.args(args).env("DROVER_ADDR", self.address());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        Program::child(child).end()
    }

    async fn socket(&self, query: &[(&str, &str)]) -> Socket {
        let options = Connection {
            address: Some(self.address()),
            ..Connection::default()
        };
        let client = Client::new(&options, |_| None).unwrap();
        let path = format!("/v1/client/allocation/{}/exec", self.alloc);
        client.websocket(&path, query, 1 << 20).await.unwrap()
    }
}

/// All that comes: messages, and how the agent closes the websocket.
async fn all(socket: &mut Socket) -> (Vec<Value>, Option<(u16, String)>) {
    let mut messages = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) => messages.push(serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => {
                let closed = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                return (messages, closed);
            }
            _ => {}
        }
    }
    (messages, None)
}

#[test]
fn exec_passes_streams_and_exit_code_on() {
    let setup = Setup::new();
    let id = setup.alloc.as_str();
    let script = "echo task $NOMAD_TASK_NAME; cat; echo bad >&2; exit 3";
    let ended = setup.exec("typed\n", &["-task", "main", id, "/bin/sh", "-c", script]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert_eq!((&*ended.out, &*ended.err), ("task main\ntyped", "bad"));
    let ended = setup.exec("", &["-job", "web", "/bin/echo", "-n", "-task", "x"]);
    assert_eq!((ended.code, &*ended.out), (0, "-task x"), "{ended:?}");
    let ended = setup.exec("", &["-task=mock", id, "anything"]);
    assert_eq!((ended.code, &*ended.out), (7, "from the mock driver"));
    let ended = setup.exec("", &["-task", "main", id, "/no/such"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .contains("failed to exec into task: there is no program")
    );
    let ended = setup.exec("", &["-task", "zz", id, "/bin/true"]);
    let words = "Could not find task named: zz, found: main, mock";
    assert!(ended.code == 1 && ended.err.contains(words), "{ended:?}");
}

#[test]
fn websocket_speaks_as_recorded() {
    let setup = Setup::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let command = r#"["/bin/sh", "-c", "read l; echo got $l; exit 5"]"#;
        let query = [("task", "main"), ("command", command), ("tty", "false")];
        let mut socket = setup.socket(&query).await;
        let line = r#"{"stdin":{"data":"bGluZSBvbmUK"}}"#;
        socket.send(Message::text(line)).await.unwrap();
        let (messages, closed) = all(&mut socket).await;
        assert_eq!(
            messages[0],
            json!({"stdout": {"data": "Z290IGxpbmUgb25lCg=="}})
        );
        for stream in ["stdout", "stderr"] {
            assert!(messages.contains(&json!({ stream: {"close": true} })));
        }
        let last = json!({"exited": true, "result": {"exit_code": 5}});
        assert_eq!(messages.last(), Some(&last));
        assert_eq!(closed.map(|(code, _)| code), Some(1000));

        let greeted = [
            ("task", "main"),
            ("command", r#"["/bin/true"]"#),
            ("ws_handshake", "true"),
        ];
        let mut socket = setup.socket(&greeted).await;
        let greeting = r#"{"version":1,"auth_token":""}"#;
        socket.send(Message::text(greeting)).await.unwrap();
        let (messages, _) = all(&mut socket).await;
        assert_eq!(
            messages.last(),
            Some(&json!({"exited": true, "result": {}}))
        );
        let mut socket = setup.socket(&greeted).await;
        socket
            .send(Message::text(r#"{"version":2}"#))
            .await
            .unwrap();
        let (_, closed) = all(&mut socket).await;
        let words = "unexpected handshake value: 2".to_owned();
        assert_eq!(closed, Some((1008, words)));

        for (task, command, code, words) in [
            ("zz", r#"["/bin/true"]"#, 1011, "task not found"),
            ("main", "[]", 1008, "command is not present"),
            ("main", "nonsense", 1008, "invalid command"),
            ("main", r#"["/no/such"]"#, 1011, "there is no program"),
        ] {
            let mut socket = setup.socket(&[("task", task), ("command", command)]).await;
            let (messages, closed) = all(&mut socket).await;
            let (closed, reason) = closed.unwrap();
            assert!(messages.is_empty() && closed == code, "{closed} {reason}");
            assert!(reason.contains(words), "{reason}");
        }
        let mut socket = setup.socket(&query).await;
        socket.send(Message::text("nonsense")).await.unwrap();
        assert_eq!(all(&mut socket).await.1.unwrap().0, 1008);
        let mut socket = setup.socket(&query).await;
        let long = format!(r#"{{"stdin":{{"data":"{}"}}}}"#, "A".repeat(2 << 20));
        // The agent may have closed it before all of it was sent.
        let _ = socket.send(Message::text(long)).await;
        let (messages, _) = all(&mut socket).await;
        assert_eq!(messages, Vec::<Value>::new(), "nothing of it arrives");
    });
}

#[test]
fn dead_agent_ends_session_and_next_one_opens_another() {
    let setup = Setup::new();
    let id = setup.alloc.clone();
    let address = setup.address();
    let mut command = command(["alloc", "exec", "-task", "main", &id, "/bin/sh", "-c"]);
    command.arg("echo began; exec sleep 1000");
    let session = Program::of(command.env("DROVER_ADDR", address).stdin(Stdio::piped()));
    session.line("began");
    let lone = setup.lone.next_agent();
    let ended = session.end();
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("the connection broke"), "{ended:?}");
    let setup = Setup { lone, alloc: id };
    let ended = setup.exec("", &["-task", "main", &setup.alloc, "/bin/echo", "again"]);
    assert_eq!((ended.code, &*ended.out), (0, "again"), "{ended:?}");
}
