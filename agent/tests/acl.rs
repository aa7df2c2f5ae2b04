//! Access control of the whole program: who is let in, as people see it on the command line, and where secrets
//! are not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use support::{Ended, Program, World, command, files_with, free_addr, until};

/// Tokens are needed, and tasks are raw_exec's.
const CONFIG: &str =
    "acl {\n enabled = true\n}\nplugin \"raw_exec\" {\n config {\n enabled = true\n}\n}\n";

/// A secret that somebody chose.
const CHOSEN: &str = "2b778dd9-f5f1-4f29-b4b4-9a5fa948757a";

fn job(name: &str, namespace: &str) -> String {
    format!(
        "job \"{name}\" {{\n namespace = \"{namespace}\"\n group \"g\" {{\n task \"t\" {{\n driver = \"raw_exec\"\n \
         config {{\n command = \"/bin/sleep\"\n args = [\"1000\"]\n }}\n }}\n }}\n}}\n"
    )
}

struct Setup {
    world: World,
    addr: String,
    agent: Program,
}

/// Somebody's token.
struct Token {
    accessor: String,
    secret: String,
}

fn start(world: &World, addr: &str) -> Program {
    let config = world.file("agent.hcl", CONFIG);
    let data = world.data();
    let args = ["agent", "-log-level=debug", "-http", addr].map(PathBuf::from);
    let args = args
        .into_iter()
        .chain(["-data-dir".into(), data, "-config".into(), config]);
    let agent = Program::start(args);
    agent.err_line("is ready");
    agent
}

impl Setup {
    fn new() -> Setup {
        let (world, addr) = (World::new(), free_addr());
        let agent = start(&world, &addr);
        Setup { world, addr, agent }
    }

    /// A command of whoever has this token, or none.
    fn run_as(&self, secret: Option<&str>, args: &[&str]) -> Ended {
        let mut command = command(args);
        command.env("DROVER_ADDR", format!("http://{}", self.addr));
        if let Some(secret) = secret {
            command.env("NOMAD_TOKEN", secret);
        }
        Program::of(&mut command).end()
    }

    fn socket(&self) -> String {
        format!("unix://{}", self.world.data().join("api.sock").display())
    }

    /// A command by the agent's socket, without a token.
    fn run_by_socket(&self, args: &[&str]) -> Ended {
        Program::of(command(args).env("NOMAD_ADDR", self.socket())).end()
    }

    fn file(&self, name: &str, text: &str) -> String {
        self.world.file(name, text).display().to_string()
    }

    fn make(&self, secret: Option<&str>, args: &[&str]) -> Token {
        let made = self.run_as(secret, &[args, &["-json"]].concat()).ok();
        token(&made)
    }

    /// Another agent goes on where this one ended. What this one logged.
    fn restart(&mut self) -> String {
        self.agent.signal(Signal::TERM);
        let next = Program::start(["version"]);
        let ended = std::mem::replace(&mut self.agent, next).end();
        self.agent = start(&self.world, &self.addr);
        ended.err
    }
}

fn token(json: &str) -> Token {
    let made: Value = serde_json::from_str(json).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Token {
        accessor: text("AccessorID"),
        secret: text("SecretID"),
    }
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in: {text}");
}

#[test]
fn request_without_valid_token_is_denied() {
    let setup = Setup::new();
    let file = setup.file("web.hcl", &job("web", "default"));
    for args in [
        &["job", "status"][..],
        &["job", "run", "-detach", &file],
        &["exec", "-job", "web", "/bin/true"],
        &["var", "list"],
        &["node", "status"],
        &["acl", "token", "list"],
    ] {
        let refused = setup.run_as(None, args).failed();
        has(&refused, "403 (Permission denied)");
        has(&refused, "set NOMAD_TOKEN");
        let refused = setup.run_as(Some(CHOSEN), args).failed();
        has(&refused, "403 (ACL token not found)");
        assert!(!refused.contains(CHOSEN), "{refused}");
    }
    let root = setup.make(None, &["acl", "bootstrap"]);
    let refused = setup.run_as(None, &["acl", "bootstrap"]).failed();
    has(&refused, "ACL bootstrap already done");
    has(&refused, "unix://");
    setup
        .run_as(Some(&root.secret), &["job", "run", "-detach", &file])
        .ok();
    let listed = setup.run_as(Some(&root.secret), &["job", "status"]).ok();
    has(&listed, "web");
}

#[test]
fn policy_limits_a_token_to_its_namespace() {
    let setup = Setup::new();
    let root = setup.make(None, &["acl", "bootstrap"]);
    let as_root = |args: &[&str]| setup.run_as(Some(&root.secret), args);
    as_root(&["namespace", "apply", "team"]).ok();
    let rules = |more: &str| format!("namespace \"team\" {{\n policy = \"write\"\n{more}}}\n");
    let policy = setup.file("team.hcl", &rules(""));
    as_root(&["acl", "policy", "apply", "team", &policy]).ok();
    let bad = setup.file("bad.hcl", &rules(" capabilities = [\"red-job\"]\n"));
    let refused = as_root(&["acl", "policy", "apply", "team", &bad]).failed();
    has(&refused, "bad.hcl: ");
    has(&refused, "red-job");
    let create = ["acl", "token", "create", "-name=anna", "-policy=team"];
    let anna = setup.make(Some(&root.secret), &create);
    let as_anna = |args: &[&str]| setup.run_as(Some(&anna.secret), args);

    let ours = setup.file("ours.hcl", &job("ours", "team"));
    let theirs = setup.file("theirs.hcl", &job("theirs", "default"));
    as_anna(&["job", "run", "-detach", &ours]).ok();
    has(
        &as_anna(&["job", "run", "-detach", &theirs]).failed(),
        "Permission denied",
    );
    as_root(&["job", "run", "-detach", &theirs]).ok();
    let listed = as_anna(&["job", "status", "-namespace=*"]).ok();
    has(&listed, "ours");
    assert!(!listed.contains("theirs"), "{listed}");
    has(
        &as_anna(&["job", "status", "theirs"]).failed(),
        "Permission denied",
    );
    has(
        &as_anna(&["acl", "policy", "apply", "team", &policy]).failed(),
        "Permission denied",
    );
    let shown = as_anna(&["acl", "token", "self"]).ok();
    has(&shown, "Name         = anna");
    assert!(!shown.contains(&anna.secret), "{shown}");

    // A task that sees the host needs more than its namespace.
    until(|| {
        let allocs = as_root(&["job", "allocs", "-json", "-namespace=team", "ours"]).ok();
        let allocs: Value = serde_json::from_str(&allocs).unwrap();
        (allocs[0]["ClientStatus"] == "running").then_some(())
    });
    let exec = ["exec", "-namespace=team", "-job", "ours", "/bin/echo", "in"];
    has(&as_anna(&exec).failed(), "Permission denied");
    let more = setup.file(
        "more.hcl",
        &rules(" capabilities = [\"alloc-node-exec\"]\n"),
    );
    as_root(&["acl", "policy", "apply", "team", &more]).ok();
    has(&as_anna(&exec).ok(), "in");

    as_root(&["acl", "token", "delete", &anna.accessor]).ok();
    has(
        &as_anna(&["job", "status", "-namespace=team"]).failed(),
        "ACL token not found",
    );
}

#[test]
fn tokens_outlive_the_agent_and_secrets_are_written_nowhere() {
    let mut setup = Setup::new();
    let chosen = setup.file("chosen", CHOSEN);
    let root = setup.make(None, &["acl", "bootstrap", &chosen]);
    assert_eq!(root.secret, CHOSEN);
    let create = ["acl", "token", "create", "-policy=deploy"];
    let deployer = setup.make(Some(CHOSEN), &create);
    let file = setup.file("web.hcl", &job("web", "default"));
    setup
        .run_as(Some(&deployer.secret), &["job", "run", "-detach", &file])
        .ok();
    let first_log = setup.restart();
    let listed = setup
        .run_as(Some(&deployer.secret), &["job", "status"])
        .ok();
    has(&listed, "web");
    let refused = setup.run_as(None, &["acl", "bootstrap"]).failed();
    has(&refused, "already done");
    let listed = setup
        .run_as(Some(CHOSEN), &["acl", "token", "list", "-json"])
        .ok();
    let bundle = setup.world.path("bundle");
    let bundle_arg = format!("-output={}", bundle.display());
    let debug = ["operator", "debug", "-duration=0s", &bundle_arg];
    setup.run_as(Some(CHOSEN), &debug).ok();
    let second_log = setup.restart();
    let recorded = recordings(&setup.world);

    for secret in [CHOSEN, &deployer.secret] {
        // It may be kept without its dashes, or as the bytes that it means.
        let plain = secret.replace('-', "");
        let bytes = (0..plain.len()).step_by(2).map(|at| {
            let digits = &plain[at..at + 2];
            u8::from_str_radix(digits, 16).unwrap()
        });
        let bytes: Vec<u8> = bytes.collect();
        for dir in [setup.world.data(), bundle.clone()] {
            for form in [secret.as_bytes(), plain.as_bytes(), &bytes] {
                assert_eq!(files_with(&dir, form), <Vec<PathBuf>>::new());
            }
        }
        let outputs = [&first_log, &second_log, &listed];
        let mut outputs = outputs.into_iter().chain(&recorded);
        assert!(!outputs.any(|text| text.contains(secret) || text.contains(&plain)));
    }
    has(&first_log, "is ready");
}

/// What the files of the flight recorder say.
fn recordings(world: &World) -> Vec<String> {
    let files = fs::read_dir(world.data().join("recording")).unwrap();
    let files = files.map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let texts: Vec<String> = files
        .map(|bytes| String::from_utf8(drover_recorder::file::read(&bytes).0).unwrap())
        .collect();
    assert!(texts.iter().any(|text| !text.is_empty()));
    texts
}

#[test]
fn agent_beyond_loopback_starts_only_when_access_is_decided() {
    let world = World::new();
    let agent = |name: &str, config: &str| {
        let config = world.file(&format!("{name}.hcl"), config);
        let data = world.path(name);
        let args = ["agent", "-http=0.0.0.0:0", "-data-dir"].map(PathBuf::from);
        Program::start(args.into_iter().chain([data, "-config".into(), config]))
    };
    let refused = agent("undecided", "").end().failed();
    for way_out in ["acl", "verify_https_client", "enabled = false"] {
        has(&refused, way_out);
    }
    for (name, config) in [
        ("closed", "acl {\n enabled = true\n}\n"),
        ("open", "acl {\n enabled = false\n}\n"),
    ] {
        let agent = agent(name, config);
        agent.err_line("is ready");
        agent.interrupt();
        agent.end();
    }
    let loopback = agent_on_loopback(&world);
    loopback.err_line("is ready");
    loopback.interrupt();
    loopback.end();
}

/// One for which nothing is decided.
fn agent_on_loopback(world: &World) -> Program {
    let data = world.data();
    let args = ["agent", "-http=127.0.0.1:0", "-data-dir"].map(PathBuf::from);
    Program::start(args.into_iter().chain([data]))
}

#[test]
fn socket_lets_the_agents_user_in_without_a_token() {
    let setup = Setup::new();
    let path = setup.world.data().join("api.sock");
    let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    setup.make(None, &["acl", "bootstrap"]);
    // Its token is lost.
    let create = ["acl", "token", "create", "-type=management", "-json"];
    let again = token(&setup.run_by_socket(&create).ok());
    setup
        .run_as(Some(&again.secret), &["acl", "token", "list"])
        .ok();
    let file = setup.file("web.hcl", &job("web", "default"));
    setup.run_by_socket(&["job", "run", "-detach", &file]).ok();
    until(|| {
        let allocs = setup.run_by_socket(&["job", "allocs", "-json", "web"]).ok();
        let allocs: Value = serde_json::from_str(&allocs).unwrap();
        (allocs[0]["ClientStatus"] == "running").then_some(())
    });
    // A session as well as requests.
    let exec = ["exec", "-job", "web", "/bin/echo", "in"];
    has(&setup.run_by_socket(&exec).ok(), "in");
}
