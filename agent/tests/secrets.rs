//! Secrets in memory, with the whole program: what was put there is there again when the task starts
//! after the machine did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Program, TIMEOUT, World, free_addr, request};

fn job(file: &Path) -> String {
    format!(
        r#"
job "keeper" {{
  group "g" {{
    restart {{
      attempts = 100
      interval = "1h"
      delay    = "1ms"
      mode     = "delay"
    }}
    task "main" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sh"
        args    = ["-c", "cat $NOMAD_SECRETS_DIR/key $NOMAD_SECRETS_DIR/page; exec sleep 1000"]
      }}
      artifact {{
        source      = "file://{}"
        destination = "secrets/key"
        mode        = "file"
      }}
      template {{
        data        = "rendered\n"
        destination = "secrets/page"
      }}
    }}
  }}
}}
"#,
        file.display()
    )
}

fn agent(world: &World, addr: &str) -> Program {
    let config = world.file(
        "agent.hcl",
        "client {\n artifact {\n disable_filesystem_isolation = true\n }\n}\n",
    );
    let data = world.data();
    let args = ["agent", "-http", addr, "-data-dir"].map(Path::new);
    let args = args
        .into_iter()
        .chain([data.as_path(), Path::new("-config"), &config]);
    let program = Program::start(args);
    let until = Instant::now() + TIMEOUT;
    while !matches!(request(addr, "GET", "/v1/agent/health", None), Ok((200, _))) {
        assert!(Instant::now() < until, "the agent does not answer");
        std::thread::yield_now();
    }
    program
}

/// The directory of the only task, once there is one.
fn task_dir(world: &World) -> Option<PathBuf> {
    let allocs = fs::read_dir(world.data().join("alloc")).ok()?;
    let mut dirs = allocs
        .filter_map(Result::ok)
        .map(|it| it.path().join("main"));
    dirs.find(|dir| dir.is_dir())
}

fn is_mounted(dir: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = format!(" {} ", dir.display());
    table.lines().filter(|line| line.contains(&path)).count() == 1
}

/// What the task wrote so far, when it has written this often.
fn written(world: &World, times: usize) {
    let until = Instant::now() + TIMEOUT;
    loop {
        let text = task_dir(world)
            .and_then(|dir| fs::read_to_string(dir.join("../alloc/logs/main.stdout.0")).ok())
            .unwrap_or_default();
        if text == "s3cret\nrendered\n".repeat(times) {
            return;
        }
        assert!(Instant::now() < until, "it wrote {text:?}");
        std::thread::yield_now();
    }
}

#[test]
fn agent_dumps_no_core() {
    let limit = |pid: u32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let mut lines = limits.lines();
        let line = lines.find_map(|line| line.strip_prefix("Max core file size"));
        let mut words = line.unwrap().split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap())
    };
    let of_agent = || {
        let world = World::new();
        limit(agent(&world, &free_addr()).pid())
    };
    let text = |soft: &str, hard: &str| (soft.to_owned(), hard.to_owned());
    // One byte: with none, the kernel would still start a program that takes dumps.
    let (_, hard) = limit(std::process::id());
    if hard != "0" {
        assert_eq!(of_agent(), text("1", &hard));
    }
    let before = getrlimit(Resource::Core);
    let at_most = |most| {
        let (current, maximum) = (Some(0), Some(most));
        setrlimit(Resource::Core, Rlimit { current, maximum })
    };
    at_most(0).unwrap();
    // Not every root may raise it.
    let may_raise = at_most(1).is_ok();
    at_most(0).unwrap();
    let expected = match may_raise {
        true => text("1", "1"),
        false => text("0", "0"),
    };
    assert_eq!(of_agent(), expected);
    // Others of this process begin as before, where that can be.
    let _ = setrlimit(Resource::Core, before);
}

#[test]
fn in_memory_secrets_are_restored_after_reboot() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root mounts");
        return;
    }
    let world = World::new();
    let open = Command::new("chmod")
        .arg("755")
        .arg(world.path("."))
        .status();
    assert!(open.unwrap().success());
    let file = world.file("key", "s3cret\n");
    let job = world.file("job.hcl", &job(&file));
    let addr = free_addr();
    let first = agent(&world, &addr);
    let address = format!("http://{addr}");
    let job = job.to_str().unwrap();
    Program::run(["run", "-detach", "-address", &address, job]).ok();
    written(&world, 1);
    let secrets = task_dir(&world).unwrap().join("secrets");
    assert!(is_mounted(&secrets));

    // As if the machine had gone down: nothing that ran is there, nor what was in memory.
    first.kill_9();
    world.end_tasks();
    unmount(&secrets, UnmountFlags::DETACH).unwrap();
    assert!(!secrets.join("key").exists());
    let second = agent(&world, &addr);
    written(&world, 2);
    assert!(is_mounted(&secrets), "one layer");

    // A restart of the task alone finds everything as it was.
    fs::write(secrets.join("own"), "kept").unwrap();
    fs::write(&file, "another\n").unwrap();
    Program::run(["job", "restart", "-yes", "-address", &address, "keeper"]).ok();
    written(&world, 3);
    assert_eq!(fs::read_to_string(secrets.join("own")).unwrap(), "kept");

    Program::run(["stop", "-purge", "-detach", "-address", &address, "keeper"]).ok();
    let until = Instant::now() + TIMEOUT;
    while task_dir(&world).is_some() {
        assert!(Instant::now() < until, "it is not garbage-collected");
        std::thread::yield_now();
    }
    assert!(!is_mounted(&secrets));
    drop(second);
}
