//! What a task gets of its agent: variables of an allow list and nothing else, and secrets that only
//! its own user reads.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use support::{Program, TIMEOUT, World, command, free_addr, request};

const JOB: &str = r#"
job "shows" {
  group "g" {
    task "plain" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "env > $NOMAD_TASK_DIR/env; echo \"$1\" > $NOMAD_TASK_DIR/argument; echo > $NOMAD_TASK_DIR/done; exec sleep 1000",
                   "sh", "${env["TZ"]}"]
      }
      env {
        COPY = "${env["DROVER_TOKEN"]} ${MY_SETTING} ${TZ}"
      }
      identity {
        file = true
      }
      template {
        data        = "<{{ env \"AWS_SECRET_ACCESS_KEY\" }}><{{ env \"TZ\" }}>"
        destination = "local/template"
      }
    }
    task "other" {
      driver = "raw_exec"
      user   = "nobody"
      config {
        command = "/bin/sh"
        args    = ["-c", "cat $NOMAD_SECRETS_DIR/nomad_token ../plain/secrets/nomad_token > $NOMAD_TASK_DIR/read 2> $NOMAD_TASK_DIR/refused; echo > $NOMAD_TASK_DIR/done; exec sleep 1000"]
      }
      identity {
        file = true
      }
    }
  }
}
"#;

/// Variables of the agent, of which the tasks may have those with the value `yes`.
const GIVEN: &[(&str, &str)] = &[
    ("AWS_SECRET_ACCESS_KEY", "no"),
    ("DROVER_TOKEN", "no"),
    ("NOMAD_TOKEN", "no"),
    ("NOTIFY_SOCKET", "no"),
    ("MY_SETTING", "no"),
    ("TZ", "yes"),
    ("LC_TIME", "yes"),
    ("USER", "yes"),
];

struct Shown {
    world: World,
    agent: Program,
}

impl Shown {
    /// An agent with [`GIVEN`] and this configuration, whose job has written what it saw.
    fn new(config: &str) -> Shown {
        let world = World::new();
        // Tasks of other users look below it.
        fs::set_permissions(world.path("."), fs::Permissions::from_mode(0o755)).unwrap();
        let config = world.file("agent.hcl", config);
        let job = world.file("job.hcl", JOB);
        let (addr, data) = (free_addr(), world.data());
        let mut command: Command = command(["agent", "-http", &addr, "-data-dir"].map(Path::new));
        command.arg(&data).arg("-config").arg(&config);
        let agent = Program::of(command.envs(GIVEN.iter().copied()));
        let shown = Shown { world, agent };
        shown.until("the agent does not answer", |_| {
            matches!(
                request(&addr, "GET", "/v1/agent/health", None),
                Ok((200, _))
            )
        });
        let address = format!("http://{addr}");
        let job = job.to_str().unwrap();
        Program::run(["run", "-detach", "-address", &address, job]).ok();
        shown.until("the tasks write nothing", |shown| {
            let done = |task| shown.file(task, "local/done").is_some_and(|it| it.exists());
            done("plain") && done("other")
        });
        shown
    }

    #[track_caller]
    fn until(&self, otherwise: &str, holds: impl Fn(&Shown) -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < until, "{otherwise}");
            std::thread::yield_now();
        }
    }

    fn file(&self, task: &str, path: &str) -> Option<PathBuf> {
        let allocs = fs::read_dir(self.world.data().join("alloc")).ok()?;
        let mut dirs = allocs.filter_map(Result::ok).map(|it| it.path().join(task));
        Some(dirs.find(|dir| dir.is_dir())?.join(path))
    }

    fn read(&self, task: &str, path: &str) -> String {
        fs::read_to_string(self.file(task, path).unwrap()).unwrap()
    }

    /// The variables of the task `plain`, without those that every task has.
    fn env(&self) -> BTreeMap<String, String> {
        let text = self.read("plain", "local/env");
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = |name: &str| name.starts_with("NOMAD_") && name != "NOMAD_TOKEN";
        // The shell's own.
        let own = |name: &str| own(name) || ["PWD", "OLDPWD", "SHLVL", "_"].contains(&name);
        pairs.filter(|(name, _)| !own(name)).collect()
    }

    /// Owner and permissions.
    fn rights(&self, task: &str, path: &str) -> (u32, u32) {
        let meta = fs::metadata(self.file(task, path).unwrap()).unwrap();
        (meta.uid(), meta.permissions().mode() & 0o777)
    }

    fn end(self) {
        self.agent.kill_9();
        self.world.end_tasks();
    }
}

#[test]
fn task_env_has_only_listed_agent_variables() {
    let shown = Shown::new("");
    let env = shown.env();
    for (name, value) in GIVEN {
        let given = env.get(*name).map(String::as_str);
        assert_eq!(given, (*value == "yes").then_some("yes"), "{name}");
    }
    assert!(env.contains_key("PATH"));
    assert_eq!(env["COPY"], "${env[\"DROVER_TOKEN\"]} ${MY_SETTING} yes");
    assert_eq!(shown.read("plain", "local/argument"), "yes\n");
    assert_eq!(shown.read("plain", "local/template"), "<><yes>");
    shown.end();
}

#[test]
fn operator_changes_list_of_env_variables() {
    let options = r#"
        client {
          options = {
            "env.allowlist" = "MY_*, NOMAD_TOKEN,*"
            "env.denylist"  = "LC_*,USER"
          }
        }
    "#;
    let shown = Shown::new(options);
    let env = shown.env();
    let given = |name: &str| env.get(name).map(String::as_str);
    assert_eq!(given("MY_SETTING"), Some("no"));
    assert_eq!(given("NOTIFY_SOCKET"), Some("no"), "by the star");
    assert_eq!(given("NOMAD_TOKEN"), Some("no"), "its name is written out");
    assert_eq!(given("AWS_SECRET_ACCESS_KEY"), None, "a star is not enough");
    assert_eq!(given("DROVER_TOKEN"), None, "a star is not enough");
    assert_eq!(given("USER"), None);
    assert_eq!(given("LC_TIME"), None);
    assert_eq!(given("TZ"), Some("yes"));
    shown.end();
}

#[test]
fn secrets_are_readable_by_own_task_only() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root starts tasks as others");
        return;
    }
    let nobody = 65534;
    let shown = Shown::new("");
    assert_eq!(shown.rights("plain", "secrets"), (0, 0o700));
    assert_eq!(shown.rights("plain", "secrets/nomad_token"), (0, 0o600));
    assert_eq!(shown.rights("other", "secrets"), (nobody, 0o700));
    let token = shown.rights("other", "secrets/nomad_token");
    assert_eq!(token, (nobody, 0o600));
    let own = shown.read("other", "secrets/nomad_token");
    assert_eq!(shown.read("other", "local/read"), own);
    let refused = shown.read("other", "local/refused");
    assert!(refused.contains("Permission denied"), "{refused}");
    shown.end();
}
