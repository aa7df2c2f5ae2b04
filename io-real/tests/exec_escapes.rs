//! The program of escapes as a task of `exec`, in every way: as a task, as one that starts anew in its directory, beside
//! one for an operator and for a check, also after the agent died. Canaries outside see whether it got anywhere.
//! Without root, or without control groups, this test says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use common::driver::{World, with};
use common::isolation::{as_root, beside, run_beside, script};
use drover_core::effect::TaskConfig;
use drover_core::input::Found;
use drover_core::model::value::Value;
use tempfile::TempDir;

/// What a hostile task must not reach: a process, files, a socket, another allocation, the host's settings.
struct Canaries {
    process: Child,
    /// The groups that the process is in.
    groups: String,
    dir: TempDir,
    socket: UnixListener,
    settings: Vec<String>,
}

/// Each is of use to somebody who can change it.
const SETTINGS: [&str; 4] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/net/ipv4/ip_forward",
];

const FILES: [(&str, u32); 3] = [("everybodys", 0o666), ("roots", 0o600), ("program", 0o777)];

impl Canaries {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o777);
        for (name, mode) in FILES {
            fs::write(dir.path().join(name), name).unwrap();
            set_mode(&dir.path().join(name), mode);
        }
        let at = dir.path().join("socket");
        let socket = UnixListener::bind(&at).unwrap();
        set_mode(&at, 0o777);
        socket.set_nonblocking(true).unwrap();
        let process = Command::new("sleep").arg("1000").spawn().unwrap();
        Self {
            groups: groups_of(&process),
            process,
            dir,
            socket,
            settings: settings(),
        }
    }

    /// As the program of escapes is told of them.
    fn targets(&self) -> Vec<String> {
        let names = FILES.iter().map(|(name, _)| *name).chain(["", "socket"]);
        let path = |name| self.dir.path().join(name).to_str().unwrap().to_owned();
        let process = self.process.id().to_string();
        names.map(path).chain([process]).collect()
    }

    fn assert_untouched(&mut self, by: &str) {
        let alive = self.process.try_wait().unwrap().is_none();
        assert!(alive, "{by}: a process outside was killed");
        assert_eq!(groups_of(&self.process), self.groups, "{by}");
        for (name, mode) in FILES {
            let path = self.dir.path().join(name);
            assert_eq!(fs::read_to_string(&path).unwrap(), name, "{by}");
            let now = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(now & 0o7777, mode, "{by}: {name}");
        }
        let entries = fs::read_dir(self.dir.path()).unwrap().count();
        assert_eq!(entries, FILES.len() + 1, "{by}");
        assert!(self.socket.accept().is_err(), "{by}: somebody called");
        assert_eq!(settings(), self.settings, "{by}");
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn groups_of(process: &Child) -> String {
    fs::read_to_string(format!("/proc/{}/cgroup", process.id())).unwrap()
}

fn settings() -> Vec<String> {
    let read = |path: &&str| fs::read_to_string(path).unwrap_or_default();
    SETTINGS.iter().map(read).collect()
}

/// The program of escapes, in the directory of the task.
fn bring_escapes(world: &World) {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let program = world.task_dir().join("local/escapes");
    fs::copy(built.join("examples/escapes"), program).unwrap();
}

/// Who attacks, and with what rights.
fn attackers() -> [(&'static str, TaskConfig); 2] {
    [("root", as_root(script(""))), ("nobody", script(""))]
}

fn assert_nothing_got(output: &str, who: &str) {
    println!("{who}:\n{output}");
    let got: Vec<&str> = output
        .lines()
        .filter(|line| line.contains(": GOT "))
        .collect();
    assert!(got.is_empty(), "{who}: {got:#?}");
    assert!(output.ends_with("done\n"), "{who}: {output}");
    assert!(output.lines().count() > 50, "{who}: {output}");
}

/// By the doors of operators, and of checks and of scripts that tell of changes.
fn attack_beside(world: &mut World, canaries: &mut Canaries, targets: &[String], when: &str) {
    let args: Vec<&str> = targets.iter().map(String::as_str).collect();
    for (who, config) in attackers() {
        let way = format!("{who}, beside a task, {when}");
        let output = beside(world, "/local/escapes", &args, config.clone());
        assert_nothing_got(&output, &way);
        canaries.assert_untouched(&way);
        let way = format!("{who}, by a script, {when}");
        let output = format!("/local/said-{}", config.user);
        let run = format!("/local/escapes {} > {output} 2>&1", targets.join(" "));
        run_beside(world, run, config);
        let output = world.task_dir().join(output.trim_start_matches('/'));
        assert_nothing_got(&fs::read_to_string(output).unwrap(), &way);
        canaries.assert_untouched(&way);
    }
}

#[test]
fn hostile_task_gets_nothing() {
    let Some(mut world) = World::isolated("escapes") else {
        return;
    };
    bring_escapes(&world);
    let mut canaries = Canaries::new();
    let secret = secret_of_another(&world);
    let mut targets = canaries.targets();
    for path in [world.data.path(), &secret] {
        targets.push(path.to_str().unwrap().to_owned());
    }
    let args = Value::List(targets.iter().map(|it| Value::from(it.as_str())).collect());
    // Twice: what starts anew finds the directory as it left it.
    for (launch, time) in [(10, "first"), (20, "second")] {
        for (number, (who, config)) in attackers().into_iter().enumerate() {
            let who = format!("{who}, as a task, {time} time");
            let launch = launch + number as u128;
            let config = with(config, "command", Value::from("/local/escapes"));
            let _ = fs::remove_file(world.log_dir().join("web.stdout.0"));
            let exit = world.run(launch, with(config, "args", args.clone()));
            assert_eq!(exit.code, Some(0), "{who}");
            assert_nothing_got(&world.stdout(), &who);
            canaries.assert_untouched(&who);
            world.destroy(launch).unwrap();
            world.assert_gone(launch);
        }
    }
    world.start(1, as_root(script("exec sleep 1000"))).unwrap();
    attack_beside(&mut world, &mut canaries, &targets, "while its agent lives");
    world.begin();
    assert!(matches!(world.recover(1), Found::Running));
    attack_beside(&mut world, &mut canaries, &targets, "after its agent died");
    assert_eq!(world.end(1).signal, 9);
    assert_eq!(fs::read_to_string(secret).unwrap(), "of another");
}

/// A secret of another allocation, that everybody could change who came there.
fn secret_of_another(world: &World) -> PathBuf {
    let dir = world.data.alloc_root().join("another/web/secrets");
    let token = dir.join("token");
    fs::create_dir_all(&dir).unwrap();
    fs::write(&token, "of another").unwrap();
    set_mode(&token, 0o666);
    token
}
