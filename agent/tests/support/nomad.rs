//! A real server of Nomad, where there is a program `nomad` on the PATH.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::{Lone, TIMEOUT, exchange, free_addr};

/// A server of its own, which ends with the test.
pub(crate) struct Nomad {
    child: Child,
    program: PathBuf,
    dir: tempfile::TempDir,
    pub(crate) rpc: String,
    pub(crate) http: String,
    /// With which it is asked; empty for none.
    pub(crate) token: String,
}

impl Drop for Nomad {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Nomad {
    pub(crate) fn start() -> Option<Nomad> {
        Nomad::start_with(|_| String::new())
    }

    /// With more settings, that are made for its folder.
    pub(crate) fn start_with(more: impl Fn(&Path) -> String) -> Option<Nomad> {
        let nomad = Nomad::begin(&program()?, &free_addr(), &[], more);
        nomad.wait("/v1/status/leader", leader);
        Some(nomad)
    }

    /// Starts a server that speaks at this address with the others that it is one of.
    fn begin(
        program: &Path,
        serf: &str,
        others: &[String],
        more: impl Fn(&Path) -> String,
    ) -> Nomad {
        let dir = tempfile::tempdir().unwrap();
        let [http, rpc] = [free_addr(), free_addr()];
        let port = |addr: &str| addr.rsplit(':').next().unwrap().to_owned();
        let settings = format!(
            "name = \"server-{}\"\ndata_dir = \"{}/data\"\nbind_addr = \"127.0.0.1\"\ndisable_update_check = true\nenable_debug = true\nports {{\n http = {}\n \
             rpc = {}\n serf = {}\n}}\nadvertise {{\n http = \"{http}\"\n rpc = \"{rpc}\"\n serf = \"{serf}\"\n}}\n\
             server {{\n enabled = true\n bootstrap_expect = {}\n heartbeat_grace = \"2s\"\n server_join {{\n \
             retry_join = {others:?}\n retry_interval = \"1s\"\n }}\n}}\n",
            port(serf),
            dir.path().display(),
            port(&http),
            port(&rpc),
            port(serf),
            others.len() + 1,
        );
        let settings = settings + &more(dir.path());
        fs::write(dir.path().join("server.hcl"), settings).unwrap();
        Nomad {
            child: run(program, &dir.path().join("server.hcl")),
            program: program.to_owned(),
            dir,
            rpc,
            http,
            token: String::new(),
        }
    }

    /// Ends it as a crash would.
    pub(crate) fn kill_9(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Starts it again.
    pub(crate) fn start_again(&mut self) {
        self.child = run(&self.program, &self.dir.path().join("server.hcl"));
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let (status, text) = self.request(method, path, body).ok()?;
        (status == 200).then(|| serde_json::from_str(&text).ok())?
    }

    /// The status and the body of any answer.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nX-Nomad-Token: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.http,
            self.token,
            body.len()
        );
        exchange(&self.http, request.as_bytes())
    }

    pub(crate) fn wait<T>(&self, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        self.wait_asking("GET", path, found)
    }

    /// The first answer that is none of an error.
    pub(crate) fn wait_for_answer(&self, method: &str, path: &str) -> Value {
        self.wait_asking(method, path, |answer| Some(answer.clone()))
    }

    fn wait_asking<T>(&self, method: &str, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.ask(method, path, "");
            if let Some(found) = seen.as_ref().and_then(&found) {
                return found;
            }
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{path}: {seen:?}\n{}", log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Runs a program in an allocation by its command line, as the holder of this token. Its code, and what is printed.
    pub(crate) fn exec(&self, token: &str, alloc: &str, words: &[&str]) -> (i32, String) {
        let ended = Command::new(&self.program)
            .args(["alloc", "exec", "-i=false", "-t=false", alloc])
            .args(words)
            .env("NOMAD_ADDR", format!("http://{}", self.http))
            .env("NOMAD_TOKEN", token)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&ended.stdout) + &text(&ended.stderr);
        (ended.status.code().unwrap_or(-1), printed)
    }

    pub(crate) fn submit(&self, job: &Value) {
        let body = json!({ "Job": job }).to_string();
        assert!(self.ask("PUT", "/v1/jobs", &body).is_some());
    }

    /// The allocation of a job, once its status at the server is this one.
    pub(crate) fn alloc(&self, job: &str, status: &str) -> Value {
        self.wait(&format!("/v1/job/{job}/allocations"), |all| {
            let all = all.as_array()?;
            all.iter().find(|it| it["ClientStatus"] == status).cloned()
        })
    }

    pub(crate) fn node(&self, status: &str) -> Value {
        self.wait("/v1/nodes", |nodes| {
            let node = nodes.get(0)?;
            (node["Status"] == status).then(|| node.clone())
        })
    }
}

/// The program, if there is one.
pub(crate) fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut programs = env::split_paths(&path).map(|dir| dir.join("nomad"));
    let program = programs.find(|program| program.is_file());
    if program.is_none() {
        eprintln!("skipped: there is no program nomad");
    }
    program
}

/// The leader's address, if there is one.
fn leader(answer: &Value) -> Option<String> {
    let leader = answer.as_str().filter(|it| !it.is_empty());
    leader.map(str::to_owned)
}

/// Servers that are one cluster.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<Nomad>,
}

impl Cluster {
    /// Three servers.
    pub(crate) fn start() -> Option<Cluster> {
        let program = program()?;
        let serf: Vec<String> = (0..3).map(|_| free_addr()).collect();
        let server = |own: &String| {
            let others = serf.iter().filter(|it| *it != own).cloned();
            let others: Vec<String> = others.collect();
            Nomad::begin(&program, own, &others, |_| String::new())
        };
        let cluster = Cluster {
            servers: serf.iter().map(server).collect(),
        };
        cluster.wait("/v1/status/leader", leader);
        Some(cluster)
    }

    /// The first answer of a server that has one.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let mut servers = self.servers.iter();
        servers.find_map(|server| server.ask(method, path, body))
    }

    pub(crate) fn wait<T>(&self, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.ask("GET", path, "");
            if let Some(found) = seen.as_ref().and_then(&found) {
                return found;
            }
            assert!(Instant::now() < until, "{path}: {seen:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// The one that leads, once one does.
    pub(crate) fn leader(&mut self) -> &mut Nomad {
        let until = Instant::now() + TIMEOUT;
        loop {
            // It knows best: others may still name the one before.
            let leads = |server: &Nomad| {
                let answer = server.ask("GET", "/v1/status/leader", "");
                answer.as_ref().and_then(leader).as_ref() == Some(&server.rpc)
            };
            if let Some(at) = self.servers.iter().position(leads) {
                return &mut self.servers[at];
            }
            assert!(Instant::now() < until, "nobody leads");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Starts an agent of Nomad with this file, beside which it has its home and its log.
pub(crate) fn run(program: &Path, file: &Path) -> Child {
    run_in(program, file, Path::new("."))
}

/// The same, and it works in this folder.
pub(crate) fn run_in(program: &Path, file: &Path, folder: &Path) -> Child {
    let log = || {
        let mut log = File::options();
        log.create(true).append(true);
        log.open(file.with_file_name("log")).unwrap()
    };
    Command::new(program)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", file.parent().unwrap())
        .args(["agent", "-config"])
        .arg(file)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log())
        .stderr(log())
        .spawn()
        .unwrap()
}

/// An agent that is a node of this server.
pub(crate) fn node_of(nomad: &Nomad) -> Lone {
    node_at(&nomad.rpc)
}

/// An agent that is a node of the server with this address.
pub(crate) fn node_at(server: &str) -> Lone {
    Lone::configured(&settings_at(server))
}

/// The settings of such an agent.
pub(crate) fn settings_at(server: &str) -> String {
    format!("name = \"here\"\nclient {{\n servers = [\"{server}\"]\n}}\n")
}

pub(crate) fn job(name: &str, kind: &str, script: &str) -> Value {
    json!({
        "ID": name,
        "Name": name,
        "Type": kind,
        "Datacenters": ["dc1"],
        "TaskGroups": [{
            "Name": "g",
            "Count": 1,
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t",
                "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "Resources": { "CPU": 20, "MemoryMB": 20 },
            }],
        }],
    })
}
