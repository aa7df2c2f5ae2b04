//! A registry of images on this machine's loopback, for engines of tests, which trust 127.0.0.0/8 without TLS. It
//! serves what it was given, counts who asks, and misbehaves as configured.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// How a client of TLS begins: engines try that first.
const TLS: u8 = 0x16;

/// Nobody is held longer, whatever a test forgets.
const LONGEST: Duration = Duration::from_secs(60);

/// What it does with those who ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Does {
    /// Serves them.
    #[default]
    Serve,
    /// Keeps the second half of each blob back, until it is told otherwise.
    Hold,
    /// Sends blobs whose content is not what their digests say.
    Lie,
    /// Sends manifests that never end, byte by byte, until it is told otherwise.
    Babble,
}

/// The registry. It ends when dropped.
pub struct Registry {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By path, such as `web/manifests/1`.
    manifests: BTreeMap<String, Vec<u8>>,
    /// By digest.
    blobs: BTreeMap<String, Vec<u8>>,
    requests: Vec<String>,
    /// What the header `Authorization` must be.
    login: Option<String>,
    does: Does,
    is_over: bool,
}

impl Registry {
    pub fn start() -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let registry = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if registry.state().is_over {
                    return;
                }
                let registry = registry.clone();
                // Whoever asked may be gone.
                std::thread::spawn(move || drop(registry.answer(&stream)));
            }
        });
        Registry { addr, shared }
    }

    /// Where it listens, as engines and files with passwords call it.
    pub fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// The name of an image, such as `web:1`, for an engine.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.addr)
    }

    /// Has an image of this layer, which is a tar archive, and with these variables. A tag that is there moves.
    pub fn put(&self, name: &str, tag: &str, layer: &[u8], env: &[&str]) {
        let machine = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = json!({
            "architecture": machine,
            "os": "linux",
            "config": { "Env": env },
            "rootfs": { "type": "layers", "diff_ids": [digest(layer)] },
            "history": [{ "created_by": "a test" }],
        });
        let config = serde_json::to_vec(&config).unwrap();
        let blob = |kind: &str, bytes: &[u8]| {
            let (size, digest) = (bytes.len(), digest(bytes));
            json!({ "mediaType": kind, "size": size, "digest": digest })
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": blob(CONFIG, &config),
            "layers": [blob(LAYER, layer)],
        });
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let mut state = self.shared.state();
        for bytes in [&config, layer] {
            state.blobs.insert(digest(bytes), bytes.to_vec());
        }
        for reference in [tag, &digest(&manifest)] {
            let path = format!("{name}/manifests/{reference}");
            state.manifests.insert(path, manifest.clone());
        }
    }

    /// Serves only those who say this.
    pub fn asks_for(&self, user: &str, password: &str) {
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        self.shared.state().login = Some(format!("Basic {encoded}"));
    }

    pub fn does(&self, does: Does) {
        self.shared.state().does = does;
        self.shared.changed.notify_all();
    }

    /// How many requests there were in whose path this is.
    pub fn count(&self, part: &str) -> usize {
        let state = self.shared.state();
        state.requests.iter().filter(|it| it.contains(part)).count()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        // It waits for the next one who asks.
        drop(TcpStream::connect(self.addr));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Answers the one request of a connection.
    fn answer(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream);
        if lines.fill_buf()?.first() == Some(&TLS) {
            return Ok(());
        }
        let mut request = String::new();
        lines.read_line(&mut request)?;
        let mut words = request.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let login = login(&mut lines)?;
        self.state().requests.push(format!("{method} {path}"));
        let mut answer = Answer {
            stream,
            with_body: method != "HEAD",
        };
        if self.state().login.as_ref().is_some_and(|it| *it != login) {
            let more = "WWW-Authenticate: Basic realm=\"test\"\r\n";
            return answer.refusal(401, more, "UNAUTHORIZED", "authentication required");
        }
        let asked = path.strip_prefix("/v2/").unwrap_or(path).to_owned();
        let (manifest, does) = {
            let state = self.state();
            (state.manifests.get(&asked).cloned(), state.does)
        };
        if let Some(manifest) = manifest {
            return match does {
                Does::Babble => self.babble(&mut answer),
                Does::Serve | Does::Hold | Does::Lie => {
                    answer.head(200, MANIFEST, &manifest)?;
                    answer.body(&manifest)
                }
            };
        }
        let name = asked.rsplit_once("/blobs/").map(|(_, digest)| digest);
        let blob = name.and_then(|digest| self.state().blobs.get(digest).cloned());
        match blob {
            Some(blob) => self.blob(&mut answer, blob, does),
            None if asked.is_empty() => {
                answer.head(200, "application/json", b"{}")?;
                answer.body(b"{}")
            }
            None => answer.refusal(404, "", "MANIFEST_UNKNOWN", "manifest unknown"),
        }
    }

    fn blob(&self, answer: &mut Answer<'_>, mut blob: Vec<u8>, does: Does) -> std::io::Result<()> {
        answer.head(200, "application/octet-stream", &blob)?;
        let half = blob.len() / 2;
        let (first, rest) = blob.split_at_mut(half);
        if does == Does::Lie {
            rest.iter_mut().for_each(|byte| *byte ^= 1);
        }
        answer.body(first)?;
        let state = self.state();
        let held = |state: &mut State| state.does == Does::Hold && !state.is_over;
        drop(self.changed.wait_timeout_while(state, LONGEST, held));
        answer.body(rest)
    }

    fn babble(&self, answer: &mut Answer<'_>) -> std::io::Result<()> {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {MANIFEST}\r\nConnection: close\r\n\r\n");
        answer.stream.write_all(head.as_bytes())?;
        while self.state().does == Does::Babble && !self.state().is_over {
            // One by one, so that whoever keeps them all has few.
            answer.body(b" ")?;
        }
        Ok(())
    }
}

/// What a request says of who asks; nothing if it says nothing.
fn login(lines: &mut impl BufRead) -> std::io::Result<String> {
    let mut login = String::new();
    for line in lines.by_ref().take(1 << 20).lines() {
        let line = line?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                value.clone_into(&mut login);
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(login)
}

struct Answer<'a> {
    stream: &'a TcpStream,
    with_body: bool,
}

impl Answer<'_> {
    fn head(&mut self, status: u16, kind: &str, body: &[u8]) -> std::io::Result<()> {
        let digest = digest(body);
        self.say(
            status,
            kind,
            body.len(),
            &format!("Docker-Content-Digest: {digest}\r\n"),
        )
    }

    fn say(&mut self, status: u16, kind: &str, length: usize, more: &str) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}\
             Docker-Distribution-Api-Version: registry/2.0\r\nConnection: close\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes())
    }

    fn body(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self.with_body {
            true => self.stream.write_all(bytes),
            false => Ok(()),
        }
    }

    fn refusal(&mut self, status: u16, more: &str, code: &str, why: &str) -> std::io::Result<()> {
        let body = json!({ "errors": [{ "code": code, "message": why }] }).to_string();
        self.say(status, "application/json", body.len(), more)?;
        self.body(body.as_bytes())
    }
}

fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
