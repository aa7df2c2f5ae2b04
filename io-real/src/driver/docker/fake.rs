//! An engine that answers what a test wants.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use super::engine::Engine;

/// What the engine answers to a request such as `GET /v1.41/images/x/json`: a status and a body.
type Answers = dyn Fn(&str) -> (u16, String) + Send + Sync;

/// An engine, and where it listens as long as the directory is there.
pub(super) async fn engine(
    answers: impl Fn(&str) -> (u16, String) + Send + Sync + 'static,
) -> (Engine, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers: Arc<Answers> = Arc::new(answers);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = answers.clone();
            thread::spawn(move || serve(stream, &*answers));
        }
    });
    let socket: Arc<Path> = socket.into();
    (Engine::connect(&socket).await.unwrap(), dir)
}

fn serve(stream: UnixStream, answers: &Answers) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    // No test sends a body.
    let is_header = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|it| !it.is_empty());
    lines.take_while(is_header).for_each(drop);
    let request = request.trim_end_matches(" HTTP/1.1");
    let (status, body) = match request.rsplit('/').next() {
        Some("version") => (200, r#"{"ApiVersion":"1.41"}"#.to_owned()),
        Some("info") => (200, "{}".to_owned()),
        _ => answers(request),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = stream;
    // Whoever asked may be gone.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}
