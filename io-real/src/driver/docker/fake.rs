//! An engine that answers what a test wants.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use super::engine::Engine;

/// What the engine answers to a request such as `GET /v1.41/images/x/json`: a status and a body. What a request says
/// besides stands in a second line.
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
    let mut from = BufReader::new(stream.try_clone().unwrap());
    let mut lines = from.by_ref().lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    let mut content_length = 0;
    for header in lines.map_while(Result::ok).take_while(|it| !it.is_empty()) {
        let (name, value) = header.split_once(':').unwrap();
        if name.eq_ignore_ascii_case("content-length") {
            content_length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; content_length];
    from.read_exact(&mut body).unwrap();
    let request = request.trim_end_matches(" HTTP/1.1");
    let (status, body) = match request.rsplit('/').next() {
        Some("version") => (200, r#"{"ApiVersion":"1.41"}"#.to_owned()),
        Some("info") => (200, "{}".to_owned()),
        _ if body.is_empty() => answers(request),
        _ => answers(&format!("{request}\n{}", String::from_utf8_lossy(&body))),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = stream;
    // Whoever asked may be gone.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}
