//! An agent whose API speaks TLS: what commands are answered, and how certificates are exchanged while it runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
mod support;

use std::env;
use std::process::Command;

use authority::{Authority, Signed};
use rustix::process::Signal;
use support::{Ended, Program, World, command, free_addr, request};

const JOB: &str = r#"
job "talker" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo heard' USR1; echo begun; while true; do sleep 1000 & wait $!; kill $!; done"]
      }
    }
  }
}
"#;

struct Setup {
    world: World,
    addr: String,
    agent: Program,
}

/// Writes an authority and what it signed: for the agent, and for whoever asks it.
fn put_files(world: &World, ca: &Authority) {
    let put = |name: &str, signed: &Signed| {
        world.file(&format!("{name}.pem"), &signed.certificate);
        world.file(&format!("{name}-key.pem"), &signed.key);
    };
    world.file("ca.pem", &ca.pem);
    put("agent", &ca.member("client.global"));
    put("user", &ca.member("cli.global"));
}

impl Setup {
    /// An agent that wants certificates.
    fn new(ca: &Authority) -> Setup {
        let world = World::new();
        put_files(&world, ca);
        let addr = free_addr();
        let at = |name: &str| world.path(name).display().to_string();
        let text = format!(
            "data_dir = \"{}\"\nports {{\n http = {}\n}}\ntls {{\n http = true\n verify_https_client = true\n \
             ca_file = \"{}\"\n cert_file = \"{}\"\n key_file = \"{}\"\n}}\n",
            world.data().display(),
            addr.rsplit(':').next().unwrap(),
            at("ca.pem"),
            at("agent.pem"),
            at("agent-key.pem"),
        );
        let file = world.file("agent.hcl", &text);
        let agent = Program::start(["agent", "-config", file.to_str().unwrap()]);
        let line = agent.err_line("is ready");
        assert!(line.contains(&format!("https://{addr}")), "{line}");
        Setup { world, addr, agent }
    }

    fn path(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    /// A command with these options, and the address.
    fn bare(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("DROVER_ADDR", format!("https://{}", self.addr));
        command
    }

    /// A command of somebody who has what it needs.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command
            .env("NOMAD_CACERT", self.path("ca.pem"))
            .env("DROVER_CLIENT_CERT", self.path("user.pem"))
            .env("DROVER_CLIENT_KEY", self.path("user-key.pem"));
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Program::of(&mut self.command(args)).end()
    }

    fn run_bare(&self, args: &[&str]) -> Ended {
        Program::of(&mut self.bare(args)).end()
    }
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "{text}");
}

#[test]
fn commands_ask_over_tls_and_say_what_is_wrong() {
    let (ca, other) = (Authority::new(), Authority::new());
    let setup = Setup::new(&ca);
    let foreign = setup.world.file("other.pem", &other.pem);
    let foreign = foreign.to_str().unwrap();
    let (trusted, cert, key) = (
        setup.path("ca.pem"),
        setup.path("user.pem"),
        setup.path("user-key.pem"),
    );
    has(&setup.run(&["node", "status"]).ok(), "ready");
    let own = ["-client-cert", &cert, "-client-key", &key];
    let with = |more: &[&str]| {
        let args = [&["node", "status"], more].concat();
        setup.run_bare(&args)
    };
    let named = [&own[..], &["-ca-cert", &trusted]].concat();
    has(&with(&named).ok(), "ready");
    has(
        &with(&[&named[..], &["-tls-server-name", "client.global.nomad"]].concat()).ok(),
        "ready",
    );
    has(
        &with(&[&named[..], &["-tls-server-name", "server.global.nomad"]].concat()).failed(),
        "server.global.nomad is wanted",
    );
    has(
        &with(&["-ca-cert", &trusted]).failed(),
        "it wants a certificate",
    );
    let wrong = [&own[..], &["-ca-cert", foreign]].concat();
    has(&with(&wrong).failed(), "signed by no authority");
    has(
        &with(&[&own[..], &["-ca-cert", foreign, "-tls-skip-verify"]].concat()).ok(),
        "ready",
    );
    has(&with(&own[..2]).failed(), "belong together");
    has(
        &with(&["-ca-cert", &setup.path("missing.pem")]).failed(),
        "missing.pem: No such file",
    );
    let (status, body) = request(&setup.addr, "GET", "/v1/jobs", None).unwrap();
    assert_eq!(status, 400);
    has(&body, "speaks https");
}

#[test]
fn certificates_are_exchanged_at_hangup_and_connections_stay() {
    let (old, new) = (Authority::new(), Authority::new());
    let setup = Setup::new(&old);
    let file = setup.world.file("talker.hcl", JOB);
    setup.run(&["job", "run", file.to_str().unwrap()]).ok();
    // A session as well as requests.
    let exec = ["exec", "-job", "talker", "/bin/echo", "inside"];
    has(&setup.run(&exec).ok(), "inside");
    let logs = Program::of(&mut setup.command(&["logs", "-f", "-job", "talker"]));
    logs.line("begun");

    // Nobody gets half of it.
    setup.world.file("agent-key.pem", "broken");
    setup.agent.signal(Signal::HUP);
    has(
        &setup.agent.err_line("nothing was read anew"),
        "agent-key.pem",
    );
    has(&setup.run(&["node", "status"]).ok(), "ready");

    // Nor is the API opened to those who have no certificate: that was decided at the start.
    let file = setup.path("agent.hcl");
    let wants = std::fs::read_to_string(&file).unwrap();
    let open = wants.replace("verify_https_client = true", "verify_https_client = false");
    setup.world.file("agent.hcl", &open);
    setup.agent.signal(Signal::HUP);
    let refused = "verify_https_client is switched on or off by a restart alone";
    setup.agent.err_line(refused);
    setup.world.file("agent.hcl", &wants);

    let before = setup.world.file("old-ca.pem", &old.pem);
    put_files(&setup.world, &new);
    setup.agent.signal(Signal::HUP);
    setup.agent.err_line("certificates were read anew");
    has(&setup.run(&["node", "status"]).ok(), "ready");
    let options = ["-ca-cert", before.to_str().unwrap()];
    let refused = setup.run(&[&["node", "status"], &options[..]].concat());
    has(&refused.failed(), "signed by no authority");
    // What was open goes on.
    let alloc = setup.run(&["job", "allocs", "-json", "talker"]).ok();
    let alloc: serde_json::Value = serde_json::from_str(&alloc).unwrap();
    let id = alloc[0]["ID"].as_str().unwrap();
    setup.run(&["alloc", "signal", "-s", "USR1", id]).ok();
    logs.line("heard");

    setup.agent.interrupt();
    let Setup { agent, .. } = setup;
    assert_eq!(agent.end().code, 0);
}

#[test]
fn agent_without_usable_files_does_not_start_and_shows_no_key() {
    let world = World::new();
    let (ca, other) = (Authority::new(), Authority::new());
    put_files(&world, &ca);
    let foreign = other.member("client.global");
    let key = world.file("agent-key.pem", &foreign.key);
    let text = format!(
        "data_dir = \"{}\"\ntls {{\n http = true\n cert_file = \"{}\"\n key_file = \"{}\"\n}}\n",
        world.data().display(),
        world.path("agent.pem").display(),
        key.display()
    );
    let file = world.file("agent.hcl", &text);
    let args = [
        "agent",
        "-config",
        file.to_str().unwrap(),
        "-http",
        "127.0.0.1:0",
    ];
    let err = Program::run(args).failed();
    has(&err, "agent-key.pem: it is not the key of the certificate");
    let secret = foreign.key.lines().nth(1).unwrap();
    assert!(!err.contains(secret));
    assert!(!world.data().exists(), "nothing was begun");
}

/// Where there is no program `nomad`, this says so and passes.
#[test]
fn program_of_nomad_asks_over_tls() {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut programs = env::split_paths(&path).map(|dir| dir.join("nomad"));
    let Some(program) = programs.find(|program| program.is_file()) else {
        eprintln!("skipped: there is no program nomad");
        return;
    };
    let setup = Setup::new(&Authority::new());
    let nomad = |args: &[&str]| {
        let mut command = Command::new(&program);
        command
            .env_clear()
            .env("HOME", setup.path("home"))
            .env("NOMAD_ADDR", format!("https://{}", setup.addr))
            .env("NOMAD_CACERT", setup.path("ca.pem"))
            .env("NOMAD_CLIENT_CERT", setup.path("user.pem"))
            .env("NOMAD_CLIENT_KEY", setup.path("user-key.pem"))
            .args(args);
        Program::of(&mut command).end()
    };
    has(&nomad(&["node", "status"]).ok(), "ready");
    let file = setup.world.file("talker.hcl", JOB);
    nomad(&["job", "run", file.to_str().unwrap()]).ok();
    // Both of them ask the node itself, by the name that its certificate has.
    has(&nomad(&["alloc", "logs", "-job", "talker"]).ok(), "begun");
    let exec = [
        "alloc",
        "exec",
        "-i=false",
        "-t=false",
        "-job",
        "talker",
        "/bin/echo",
        "inside",
    ];
    has(&nomad(&exec).ok(), "inside");
}
