//! What the tests of the whole program share: an agent as a process, and a small HTTP client.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "every test has its own copy of it, and uses a part"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

pub mod kills;
mod lone;
pub mod netns;
pub(crate) mod nomad;
mod program;
mod server;
mod world;

pub use lone::Lone;
pub use program::{Ended, Program, command};
pub use server::{Does, Server, is_gone};
pub use world::{World, children, files_with, shims};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that anything in these tests may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A program that runs an agent; killed when dropped.
pub(crate) struct Agent {
    child: Child,
    pub(crate) addr: String,
}

impl Agent {
    /// Starts `drover agent` and waits until its API answers.
    pub(crate) fn start(data_dir: &Path, addr: &str) -> Agent {
        Agent::start_with(data_dir, addr, &[])
    }

    /// The same, with more options.
    pub(crate) fn start_with(data_dir: &Path, addr: &str, options: &[&str]) -> Agent {
        Agent::start_with_programs(data_dir, addr, options, None)
    }

    /// The same, for which programs of this directory are there, too.
    pub(crate) fn start_with_programs(
        data_dir: &Path,
        addr: &str,
        options: &[&str],
        programs: Option<&Path>,
    ) -> Agent {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::env::split_paths(&path);
        let path = std::env::join_paths(programs.map(Path::to_owned).into_iter().chain(dirs));
        let child = command(["agent", "-log-level", "error", "-http", addr, "-data-dir"])
            .arg(data_dir)
            .args(options)
            .env("PATH", path.unwrap())
            // Which engine it has is its configuration's affair alone.
            .env("DOCKER_HOST", "unix:///nowhere.sock")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut agent = Agent {
            child,
            addr: addr.to_owned(),
        };
        let until = Instant::now() + TIMEOUT;
        while !matches!(request(addr, "GET", "/v1/agent/health", None), Ok((200, _))) {
            if let Some(status) = agent.child.try_wait().unwrap() {
                panic!("the agent ended at its start: {status}");
            }
            assert!(Instant::now() < until, "the agent does not answer");
            std::thread::yield_now();
        }
        agent
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the agent as a crash would.
    pub(crate) fn kill_9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = request(&self.addr, "GET", path, None).unwrap();
        assert_eq!(status, 200, "GET {path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// What it answers, if that is no error.
    pub(crate) fn try_get(&self, path: &str) -> Option<Value> {
        let (status, body) = request(&self.addr, "GET", path, None).ok()?;
        (status == 200).then(|| serde_json::from_str(&body).unwrap())
    }

    /// A change that may meet an agent that is just dying, or be refused.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Option<(u16, String)> {
        request(&self.addr, "PUT", path, Some(body)).ok()
    }

    pub(crate) fn delete(&self, path: &str) -> Option<(u16, String)> {
        request(&self.addr, "DELETE", path, None).ok()
    }

    /// Asks again and again, each time waiting for a change, until `done` finds what it wants.
    pub(crate) fn wait_for<T>(&self, path: &str, mut done: impl FnMut(&Value) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.get(path);
            if let Some(found) = done(&seen) {
                return found;
            }
            assert!(
                Instant::now() < until,
                "{path} never became what was awaited: {seen:#}"
            );
            std::thread::yield_now();
        }
    }
}

/// Fails if one of these parts is not in the text.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// Looks again and again until something is found.
#[track_caller]
pub(crate) fn until<T>(found: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "it never was so");
        std::thread::yield_now();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Gone already, in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes whose arguments are these.
pub(crate) fn processes(arguments: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap();
    let named = all.filter_map(|entry| {
        let path = entry.ok()?.path();
        let line = std::fs::read(path.join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.trim_end() == arguments).then_some(path)
    });
    named.collect()
}

/// An address of the loopback that is free, and below the ports that the kernel gives to others:
/// an agent that is killed finds its own port again.
pub(crate) fn free_addr() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() % 1000 * 10;
    loop {
        let port = 10_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let addr = format!("127.0.0.1:{port}");
        if TcpListener::bind(&addr).is_ok() {
            return addr;
        }
    }
}

/// One request. The status and the body.
pub(crate) fn request(
    addr: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> std::io::Result<(u16, String)> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(addr, request.as_bytes())
}

/// Sends these bytes, and reads an answer until the connection ends. The status and the body.
pub fn exchange(addr: &str, request: &[u8]) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head)?;
    let gone = || std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(gone)?;
    let mut chunked = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(gone());
        }
        chunked |= line
            .to_ascii_lowercase()
            .starts_with("transfer-encoding: chunked");
        if line == "\r\n" {
            break;
        }
    }
    let mut raw = Vec::new();
    reader.read_to_end(&mut raw)?;
    let body = if chunked { unchunk(&raw) } else { raw };
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

fn unchunk(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&raw[..end]).unwrap_or("0");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let start = end + 2;
        if size == 0 || raw.len() < start + size + 2 {
            break;
        }
        body.extend_from_slice(&raw[start..start + size]);
        raw = &raw[start + size + 2..];
    }
    body
}

/// A deterministic source of choices.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}
