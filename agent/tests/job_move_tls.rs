//! Jobs that move between agents whose API speaks TLS: with what they and the command believe, and what is said where
//! one of them does not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod support;

use std::fs;
use std::path::PathBuf;

use authority::{Authority, Signed, Valid};
use rustix::process::Signal;
use serde_json::Value;
use support::{Ended, Program, World, command, free_addr, until};

/// Each allocation of it adds a line to what those before it wrote.
const DB: &str = r#"
job "db" {
  group "g" {
    ephemeral_disk {
      sticky  = true
      migrate = true
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo x >> $NOMAD_ALLOC_DIR/data/lines; echo x >> $NOMAD_TASK_DIR/lines; exec sleep 1000"]
      }
      resources {
        cpu    = 10
        memory = 20
      }
    }
  }
}
"#;

const ACL: &str =
    "acl {\n enabled = true\n}\nplugin \"raw_exec\" {\n config {\n  enabled = true\n }\n}\n";

/// An agent. It ends before its world.
struct Node {
    agent: Program,
    name: &'static str,
    addr: String,
}

impl Node {
    /// With these settings beside where it is.
    fn start(world: &World, name: &'static str, settings: &str) -> Node {
        let addr = free_addr();
        let text = format!(
            "data_dir = \"{}\"\nname = \"{name}\"\nports {{\n http = {}\n}}\n{settings}",
            world.path(name).display(),
            addr.rsplit(':').next().unwrap(),
        );
        let file = world.file(&format!("{name}.hcl"), &text);
        let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
        agent.err_line("is ready");
        Node { agent, name, addr }
    }

    fn url(&self) -> String {
        format!("https://{}", self.addr)
    }
}

/// Settings of TLS, whose files are put there: believes `ca`, and is `own`.
fn tls(world: &World, name: &str, ca: &Authority, own: &Signed, asks_clients: bool) -> String {
    let (ca, cert, key) = (
        world.file(&format!("{name}-ca.pem"), &ca.pem),
        world.file(&format!("{name}.pem"), &own.certificate),
        world.file(&format!("{name}-key.pem"), &own.key),
    );
    format!(
        "tls {{\n http = true\n verify_https_client = {asks_clients}\n ca_file = \"{}\"\n cert_file = \"{}\"\n \
         key_file = \"{}\"\n}}\n",
        ca.display(),
        cert.display(),
        key.display()
    )
}

/// Somebody who runs commands.
struct User {
    believes: PathBuf,
    more: Vec<(&'static str, String)>,
}

impl User {
    fn who_believes(believes: PathBuf) -> User {
        let more = Vec::new();
        User { believes, more }
    }

    fn and(mut self, name: &'static str, value: impl Into<String>) -> User {
        self.more.push((name, value.into()));
        self
    }

    fn run(&self, at: &str, args: &[&str]) -> Ended {
        let mut command = command(args);
        command
            .env("NOMAD_ADDR", at)
            .env("NOMAD_CACERT", &self.believes);
        for (name, value) in &self.more {
            command.env(name, value);
        }
        Program::of(&mut command).end()
    }

    /// The latest allocation of the job at a node.
    fn alloc(&self, at: &Node) -> Value {
        let allocs = self.run(&at.url(), &["job", "allocs", "-json", "db"]).ok();
        let allocs: Vec<Value> = serde_json::from_str(&allocs).unwrap();
        let latest = allocs
            .into_iter()
            .max_by_key(|it| it["CreateIndex"].as_u64());
        latest.unwrap()
    }

    /// Runs the job there, and waits until it has written.
    fn runs_db(&self, world: &World, at: &Node) -> Value {
        let file = world.file("db.hcl", DB);
        let file = file.to_str().unwrap();
        self.run(&at.url(), &["job", "run", file]).ok();
        self.has_lines(world, at, 1)
    }

    /// The job's allocation there, once both of its files have so many lines.
    #[track_caller]
    fn has_lines(&self, world: &World, at: &Node, lines: usize) -> Value {
        let alloc = self.alloc(at);
        let dir = world.path(at.name).join("alloc");
        let dir = dir.join(alloc["ID"].as_str().unwrap());
        for file in ["alloc/data/lines", "t/local/lines"] {
            let expected = "x\n".repeat(lines);
            // The task runs before it has added its own line.
            until(|| {
                let text = fs::read_to_string(dir.join(file)).ok()?;
                (text == expected).then_some(())
            });
        }
        alloc
    }
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in: {text}");
}

#[test]
fn job_moves_there_and_back_over_tls() {
    let world = World::new();
    let ca = Authority::new();
    let node = |name| {
        let own = ca.sign(&["127.0.0.1"]);
        Node::start(&world, name, &tls(&world, name, &ca, &own, false))
    };
    let (one, two) = (node("one"), node("two"));
    let user = User::who_believes(world.path("one-ca.pem"));
    user.runs_db(&world, &one);
    let moved = user.run(&one.url(), &["job", "move", "-to", &two.url(), "db"]);
    has(&moved.ok(), &format!("{} takes over", two.url()));
    let there = user.has_lines(&world, &two, 2);
    let events = there["TaskStates"]["t"]["Events"].to_string();
    has(&events, "Migrated the disk of allocation");
    has(&events, &format!("at {}", one.url()));
    user.run(&two.url(), &["job", "move", "-to", &one.url(), "db"])
        .ok();
    user.has_lines(&world, &one, 3);
    assert_eq!(user.alloc(&two)["ClientStatus"], "complete");
}

/// As certificates of Nomad's own program are: for a role, and not for an address. Both agents want those of clients,
/// and tokens besides.
#[test]
fn job_moves_between_agents_that_know_each_other_by_role_and_want_certificates() {
    let world = World::new();
    let ca = Authority::new();
    let node = |name| {
        let own = ca.sign(&["client.global.nomad"]);
        let settings = tls(&world, name, &ca, &own, true);
        Node::start(&world, name, &format!("{settings}{ACL}"))
    };
    let (one, two) = (node("one"), node("two"));
    let own = ca.member("cli.global");
    let (cert, key) = (
        world.file("user.pem", &own.certificate),
        world.file("user-key.pem", &own.key),
    );
    let user = || {
        User::who_believes(world.path("one-ca.pem"))
            .and("NOMAD_CLIENT_CERT", cert.to_str().unwrap())
            .and("NOMAD_CLIENT_KEY", key.to_str().unwrap())
            .and("NOMAD_TLS_SERVER_NAME", "client.global.nomad")
    };
    let token = |node: &Node, number: u32| {
        let token = format!("{number:08}-1111-4222-8333-a2b3c4d5e6f7");
        let file = world.file("token", &token);
        let bootstrap = ["acl", "bootstrap", file.to_str().unwrap()];
        user().run(&node.url(), &bootstrap).ok();
        token
    };
    let (at_one, at_two) = (token(&one, 1), token(&two, 2));
    let (of_one, of_two) = (
        user()
            .and("NOMAD_TOKEN", &at_one)
            .and("DROVER_TO_TOKEN", &at_two),
        user()
            .and("NOMAD_TOKEN", &at_two)
            .and("DROVER_TO_TOKEN", &at_one),
    );
    of_one.runs_db(&world, &one);
    of_one
        .run(&one.url(), &["job", "move", "-to", &two.url(), "db"])
        .ok();
    of_two.has_lines(&world, &two, 2);
    of_two
        .run(&two.url(), &["job", "move", "-to", &one.url(), "db"])
        .ok();
    of_one.has_lines(&world, &one, 3);
}

/// Whoever does not believe the other one says so before anything is handed over, and the job runs on where it was.
#[test]
fn job_move_between_agents_that_do_not_know_each_other_is_refused_with_reason() {
    let world = World::new();
    let (ca, other) = (Authority::new(), Authority::new());
    let tls = |name: &str, ca: &Authority| tls(&world, name, ca, &ca.sign(&["127.0.0.1"]), false);
    let one = Node::start(&world, "one", &tls("one", &ca));
    let two = Node::start(&world, "two", &tls("two", &other));
    let bare = Node::start(&world, "bare", "");
    let both = world.file("both.pem", &format!("{}{}", ca.pem, other.pem));
    let user = User::who_believes(both);
    let before = user.runs_db(&world, &one);
    let moving = |user: &User, more: &[&str]| {
        let args = [&["job", "move", "db", "-to"], more].concat();
        let err = user.run(&one.url(), &args).failed();
        let now = user.alloc(&one);
        assert_eq!(
            (&now["ID"], &now["ClientStatus"]),
            (&before["ID"], &"running".into())
        );
        err
    };

    // The other node does not know this one.
    let err = moving(&user, &[&two.url()]);
    has(&err, "cannot run the job, which keeps running here");
    has(
        &err,
        &format!("{}: its certificate is signed by no authority", one.url()),
    );
    has(&err, "check the file of authorities");
    // Nor this command the other node.
    let half = User::who_believes(world.path("one-ca.pem"));
    let err = moving(&half, &[&two.url()]);
    has(&err, &format!("no TLS with the agent at {}", two.url()));
    // Each scheme has ports of its own.
    let err = moving(&user, &[&format!("http://{}", two.addr)]);
    has(&err, "speaks https here, and not http");
    let err = moving(&user, &[&format!("https://{}", bare.addr)]);
    has(&err, "does not speak TLS there");
    let from = format!("http://{}", one.addr);
    let err = moving(&user, &[&two.url(), "-from-address", &from]);
    has(&err, &format!("{from}: it answered 400"));
    has(&err, "speaks https here, and not http");
    let from = format!("https://{}", bare.addr);
    let err = moving(&user, &[&two.url(), "-from-address", &from]);
    has(&err, "does not speak TLS there");
    // Somebody else's address.
    let err = moving(&user, &[&two.url(), "-from-address", &two.url()]);
    has(&err, "it does not know allocation");
    // Who believes nobody.
    let err = moving(&user, &[&format!("http://{}", bare.addr)]);
    has(&err, "no certificate authority to know it by");

    let jobs = user.run(&two.url(), &["job", "status"]).ok();
    has(&jobs, "No running jobs");
}

/// What a certificate says counts, also for whoever has a command that takes any.
#[test]
fn job_move_from_a_node_whose_certificate_is_not_its_own_is_refused() {
    let world = World::new();
    let ca = Authority::new();
    let own = ca.sign(&["127.0.0.1"]);
    let one = Node::start(&world, "one", &tls(&world, "one", &ca, &own, false));
    let two = Node::start(&world, "two", &tls(&world, "two", &ca, &own, false));
    let user = User::who_believes(world.path("one-ca.pem")).and("NOMAD_SKIP_VERIFY", "1");
    let before = user.runs_db(&world, &one);
    let refused = || {
        let args = ["job", "move", "-to", &two.url(), "db"];
        user.run(&one.url(), &args).failed()
    };
    let becomes = |own: &Signed| {
        world.file("one.pem", &own.certificate);
        world.file("one-key.pem", &own.key);
        one.agent.signal(Signal::HUP);
    };
    becomes(&ca.sign(&["server.global.nomad", "10.0.0.9"]));
    one.agent.err_line("certificates were read anew");
    let err = refused();
    has(&err, "server.global.nomad, 10.0.0.9");
    has(&err, "127.0.0.1 or client.global.nomad is wanted");
    becomes(&ca.sign_for(&["127.0.0.1"], Valid::Once));
    let err = until(|| Some(refused()).filter(|err| err.contains("has expired")));
    has(&err, "which keeps running here");
    assert_eq!(user.alloc(&one)["ID"], before["ID"]);
}
