//! Tokens of tasks as a user has them: in a file and in a variable, made anew in time, checked with the
//! published key, and in nobody else's hands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;
use support::{Agent, Program, TIMEOUT, World, command, files_with, free_addr};

/// A task that shows its own token to us, and runs on.
fn job(identity: &str) -> String {
    format!(
        r#"
job "who" {{
  group "g" {{
    task "tell" {{
      driver = "raw_exec"
      kill_timeout = "100ms"
      config {{
        command = "/bin/sh"
        args    = ["-c", "trap 'echo hup >> \"$OUT\"' HUP; echo \"start $NOMAD_TOKEN\" >> \"$OUT\"; while :; do sleep 0.05; done"]
      }}
      {identity}
    }}
  }}
}}
"#
    )
}

struct Setup {
    agent: Agent,
    world: World,
}

impl Setup {
    fn new(identity: &str) -> Setup {
        let world = World::new();
        let setup = Setup {
            agent: Agent::start(&world.data(), &free_addr()),
            world,
        };
        let out = setup.world.path("out");
        let env = format!("env {{ OUT = {:?} }}\n{identity}", out.to_string_lossy());
        let file = setup.world.file("who.hcl", &job(&env));
        setup.run(&["job", "run", "-detach", &file.to_string_lossy()]);
        setup.until(|setup| !setup.tokens().is_empty());
        setup
    }

    fn run(&self, args: &[&str]) -> String {
        let addr = format!("http://{}", self.agent.addr);
        Program::of(command(args).env("DROVER_ADDR", addr))
            .end()
            .ok()
    }

    /// What the task wrote, line by line.
    fn tokens(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.path("out")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn alloc(&self) -> Value {
        let allocs = self.agent.get("/v1/job/who/allocations");
        let id = allocs[0]["ID"].as_str().unwrap().to_owned();
        self.agent.get(&format!("/v1/allocation/{id}"))
    }

    fn file(&self, path: &str) -> PathBuf {
        let alloc = self.alloc()["ID"].as_str().unwrap().to_owned();
        self.world
            .data()
            .join("alloc")
            .join(alloc)
            .join("tell")
            .join(path)
    }

    #[track_caller]
    fn until(&self, holds: impl Fn(&Setup) -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(
                Instant::now() < until,
                "it never was so: {:?}",
                self.tokens()
            );
            std::thread::yield_now();
        }
    }
}

fn claims(token: &str) -> Value {
    let tokens = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(tokens).unwrap()).unwrap()
}

#[test]
fn task_token_is_private() {
    let setup = Setup::new("identity {\n env = true\n file = true\n }");
    let tokens = setup.tokens();
    let token = tokens[0].strip_prefix("start ").unwrap();
    let claimed = claims(token);
    let alloc = setup.alloc();
    assert_eq!(claimed["sub"], "global:default:who:g:tell:default");
    assert_eq!(claimed["nomad_allocation_id"], alloc["ID"]);
    let file = setup.file("secrets/nomad_token");
    assert_eq!(fs::read_to_string(&file).unwrap(), token);
    // The published key has the name that the token says.
    let header = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap());
    let header: Value = serde_json::from_slice(&header.unwrap()).unwrap();
    let keys = setup.agent.get("/.well-known/jwks.json");
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    // What the agent says and writes has no token: its signature is nowhere else.
    let signature = token.rsplit('.').next().unwrap();
    for path in [
        "/v1/job/who",
        &format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap()),
    ] {
        assert!(
            !setup.agent.get(path).to_string().contains(signature),
            "{path}"
        );
    }
    let data = setup.world.data();
    let held = files_with(&data, signature);
    assert_eq!(held, [file]);
}

#[test]
fn renewed_token_restarts_task() {
    let setup =
        Setup::new("identity {\n env = true\n ttl = \"2s\"\n change_mode = \"restart\"\n }");
    setup.until(|setup| setup.tokens().len() > 1);
    let tokens = setup.tokens();
    assert_ne!(tokens[0], tokens[1], "a start has a token of its own");
    let claimed = claims(tokens[1].strip_prefix("start ").unwrap());
    let [until, from] = ["exp", "iat"].map(|name| claimed[name].as_i64().unwrap());
    assert_eq!(until - from, 2);
}

#[test]
fn renewed_token_signals_task_after_agent_kill() {
    let identity = "identity {\n name = \"db\"\n file = true\n filepath = \"local/db.jwt\"\n \
                    ttl = \"4s\"\n change_mode = \"signal\"\n change_signal = \"SIGHUP\"\n }";
    let mut setup = Setup::new(identity);
    let file = setup.file("local/db.jwt");
    let first = fs::read_to_string(&file).unwrap();
    let (data, addr) = (setup.world.data(), setup.agent.addr.clone());
    let agent = core::mem::replace(
        &mut setup.agent,
        Agent::start(&setup.world.path("other"), &free_addr()),
    );
    agent.kill_9();
    setup.agent = Agent::start(&data, &addr);
    setup.until(|setup| setup.tokens().iter().any(|line| line == "hup"));
    let second = fs::read_to_string(&file).unwrap();
    assert_ne!(first, second);
    let starts = setup
        .tokens()
        .iter()
        .filter(|line| line.starts_with("start"))
        .count();
    assert_eq!(starts, 1, "it ran on");
    assert!(claims(&second)["sub"].as_str().unwrap().ends_with(":db"));
}
