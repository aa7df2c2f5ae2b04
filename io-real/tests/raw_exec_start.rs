//! The driver `raw_exec`: what a task is given, and what is said where it cannot start.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::driver::{World, command, sh, with};
use common::is_root;
use drover_core::model::task::LogConfig;
use drover_core::model::value::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn put(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn limit_of_reading_that_cannot_be_set_fails_the_start() {
    let mut world = World::new("io");
    let io = [("read_bps".to_owned(), Value::Int(1 << 20))].into();
    let failure = world.refused(1, with(sh("true"), "io", Value::Map(io)));
    assert!(failure.message.contains("cannot be limited"), "{failure:?}");
    let none = with(sh("true"), "io", Value::Map([].into()));
    assert_eq!(world.run(2, none).code, Some(0));
}

const SCRIPT: &str = "#!/bin/sh\necho ran\n";

#[test]
fn task_env_is_exact_except_denied() {
    let mut world = World::new("env");
    let mut config = command("/usr/bin/env", &[]);
    config.env = [
        ("A", "1"),
        ("AWS_KEY", "secret"),
        ("AWS_ID", "x"),
        ("B", "two = 2\n"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let denied = Value::List(vec![text("AWS_*")]);
    world.run(1, with(config, "denied_envvars", denied));
    assert_eq!(world.stdout(), "A=1\nB=two = 2\n\n");
}

#[test]
fn other_user_gets_own_groups_only() {
    if !is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let mut world = World::new("user");
    let mut config = sh("id -u; id -g; grep Groups /proc/self/status; touch tmp/mine");
    config.user = "nobody".to_owned();
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.stdout(), "65534\n65534\nGroups:\t65534 \n");
    let mut foreign = sh("true");
    foreign.user = "no-such-user".to_owned();
    let failure = world.refused(2, foreign);
    assert!(
        failure.message.contains("no-such-user"),
        "{}",
        failure.message
    );
}

#[test]
fn agent_user_may_be_named() {
    let mut world = World::new("self");
    let mut config = sh("id -u");
    let me = rustix::process::geteuid().as_raw();
    config.user = me.to_string();
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.stdout(), format!("{me}\n"));
}

#[test]
fn oom_kill_is_reported() {
    let mut world = World::new("oom");
    if world.groups.is_none() {
        return;
    }
    let mut config = command("tail", &["-n", "1", "/dev/zero"]);
    config.memory_limit = 16 << 20;
    let exit = world.run(1, config);
    assert_eq!(
        (exit.code, exit.signal, exit.oom_killed),
        (Some(137), 9, true)
    );
    let message = exit.message.unwrap();
    let expected = "out of memory: the limit is 16 MiB, ";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn task_starts_in_work_dir() {
    let mut world = World::new("where");
    world.run(1, sh("pwd"));
    world.run(2, with(sh("pwd"), "work_dir", text("/proc")));
    let own = fs::canonicalize(world.task_dir()).unwrap();
    assert_eq!(world.stdout(), format!("{}\n/proc\n", own.display()));
    let failure = world.refused(3, with(sh("pwd"), "work_dir", text("/nowhere")));
    for part in ["WorkDir", "/nowhere", "No such file"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

#[test]
fn tasks_keep_the_limit_of_open_files() {
    let mut world = World::new("files");
    drover_io_real::open_files::raise().unwrap();
    world.run(1, sh("ulimit -Sn"));
    assert_eq!(world.stdout(), "1024\n");
}

#[test]
fn failed_start_has_reason() {
    let mut world = World::new("why");
    put(&world.task_dir().join("broken"), "no program\n", 0o755);
    put(
        &world.task_dir().join("lost"),
        "#!/no/such/interpreter\n",
        0o755,
    );
    fs::create_dir(world.task_dir().join("dir")).unwrap();
    let cases = [
        ("no-such-program", "there is no program \"no-such-program\""),
        (
            "/no/such/program",
            "there is no program \"/no/such/program\"",
        ),
        ("lost", "interpreter is missing"),
        ("broken", "Exec format error"),
        ("dir", "Permission denied"),
        ("/etc/passwd", "Permission denied"),
    ];
    for (launch, (program, expected)) in (1..).zip(cases) {
        let failure = world.refused(launch, command(program, &[]));
        assert!(
            failure.message.contains(expected),
            "{program}: {}",
            failure.message
        );
        assert!(!failure.recoverable);
        assert_eq!(world.destroy(launch), Ok(None));
        world.assert_gone(launch);
    }
}

#[test]
fn invalid_config_is_refused_by_name() {
    let mut world = World::new("config");
    let mut missing = sh("true");
    missing.config.remove("command");
    let cases = [
        (missing, "command"),
        (with(sh("true"), "comand", text("x")), "comand"),
        (with(sh("true"), "work_dir", text("relative")), "work_dir"),
        (command("a\0b", &[]), "control characters"),
        (sh("a\0b"), "NUL"),
    ];
    for (launch, (config, expected)) in (1..).zip(cases) {
        let failure = world.refused(launch, config);
        assert!(failure.message.contains(expected), "{}", failure.message);
        assert!(!failure.recoverable);
        // Nothing was begun.
        assert_eq!(world.destroy(launch), Ok(None));
        world.assert_no_group(launch);
    }
}

#[test]
fn fetched_program_is_made_executable() {
    let mut world = World::new("bits");
    let local = world.task_dir().join("local/tool");
    put(&local, SCRIPT, 0o644);
    put(&world.task_dir().join("other"), SCRIPT, 0o640);
    assert_eq!(world.run(1, command("tool", &[])).code, Some(0));
    assert_eq!(world.run(2, command("./other", &[])).code, Some(0));
    assert_eq!(
        (mode(&local), mode(&world.task_dir().join("other"))),
        (0o755, 0o751)
    );
    assert_eq!(world.stdout(), "ran\nran\n");
    // By a link that stays inside.
    put(&world.task_dir().join("real"), SCRIPT, 0o600);
    symlink("/real", world.task_dir().join("link")).unwrap();
    assert_eq!(world.run(3, command("link", &[])).code, Some(0));
    assert_eq!(mode(&world.task_dir().join("real")), 0o711);
}

#[test]
fn foreign_file_is_not_made_executable() {
    let mut world = World::new("bits-not");
    let outside = world.dir.path().join("outside");
    put(&outside, SCRIPT, 0o644);
    symlink(&outside, world.task_dir().join("leading-out")).unwrap();
    fs::hard_link(&outside, world.task_dir().join("hard")).unwrap();
    world.fifo("fifo");
    put(&world.task_dir().join("suid"), SCRIPT, 0o644 | 0o4000);
    for (launch, name) in (1..).zip(["leading-out", "fifo", "suid"]) {
        world.refused(launch, command(name, &[]));
    }
    assert_eq!(mode(&outside), 0o644);
    assert_eq!(mode(&world.task_dir().join("suid")), 0o4644);
    assert_eq!(mode(&world.task_dir().join("fifo")), 0o666);
    if is_root() {
        let own = world.task_dir().join("own");
        put(&own, SCRIPT, 0o644);
        chown(&own, Some(1234), None).unwrap();
        for (launch, name) in (10..).zip(["hard", "own"]) {
            let mut config = command(name, &[]);
            config.user = "nobody".to_owned();
            let failure = world.refused(launch, config);
            assert!(
                failure.message.contains("Permission denied"),
                "{}",
                failure.message
            );
        }
        assert_eq!((mode(&outside), mode(&own)), (0o644, 0o644));
    }
}

#[test]
fn disabled_logs_leave_no_files() {
    let mut world = World::new("disabled");
    let mut config = sh("readlink /proc/self/fd/1 >&2; echo lost; exit 6");
    config.logs = LogConfig {
        disabled: true,
        ..LogConfig::default()
    };
    assert_eq!(world.run(1, config).code, Some(6));
    assert!(fs::read_dir(world.log_dir()).unwrap().next().is_none());
}
