//! An agent of a user without rights: it works in its own directory, and says what it lacks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use support::{Program, World};

/// Nobody's number on most systems.
const NOBODY: u32 = 65534;

const JOB: &str = r#"
job "own" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo closing; exit 0' INT; echo I am $(id -u); sleep 1000 & wait; kill $!"]
      }
    }
  }
}
"#;

/// A world in which that user may look around, and the program where the user may execute it.
fn world() -> (World, PathBuf) {
    let world = World::new();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(world.path("."), open.clone()).unwrap();
    let program = world.path("drover");
    fs::copy(env!("CARGO_BIN_EXE_drover"), &program).unwrap();
    fs::set_permissions(&program, open).unwrap();
    let home = world.path("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    (world, program)
}

#[test]
fn up_works_without_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else, and all other tests are this one");
        return;
    }
    let (world, program) = world();
    let job = world.file("job.hcl", JOB);
    let home = world.path("home");
    let up = || {
        let mut command = Command::new(&program);
        command.args(["up", "-http", "127.0.0.1:0"]).arg(&job);
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        command.env_remove("XDG_STATE_HOME").env("HOME", &home);
        Program::of(&mut command)
    };
    // Its own directory is below its home.
    let data = home.join(".local/state/drover");
    let remark = "no cgroups are available (not root?): tasks run without limits";
    let first = up();
    first.line(&format!(", data in {}", data.display()));
    first.line(&format!("t        | I am {NOBODY}"));
    assert_eq!(world.launches(), Vec::<String>::new(), "no control groups");
    assert_eq!(support::shims(&data).len(), 1);
    first.interrupt();
    let ended = first.end();
    let remarks = ended.out.matches(remark).count() + ended.err.matches(remark).count();
    assert_eq!(remarks, 1, "{ended:?}");
    let out = ended.ok();
    assert!(out.contains("t        | closing"), "{out}");
    assert!(out.ends_with("==> Job \"own\" is stopped"), "{out}");
    assert_eq!(support::shims(&data), Vec::<String>::new());

    // Once more, after a crash.
    let second = up();
    second.line("t        | I am ");
    let shims = support::shims(&data);
    second.kill_9();
    let third = up();
    third.line("==> Allocation ");
    assert_eq!(support::shims(&data), shims);
    third.interrupt();
    third.end().ok();
    assert_eq!(support::shims(&data), Vec::<String>::new());
}
