//! Addresses, directories and disks that an agent cannot use: it says so, and touches nothing.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::support::{Agent, Program, World, free_addr, has, shims};
use super::{Kept, is_running, run_job, shell_job, task};

#[test]
fn agent_that_cannot_start_reports_reason() {
    let kept = Kept::new();
    let job = kept.world.file(
        "job.hcl",
        &task("driver = \"raw_exec\"\nconfig {\n  command = \"/bin/true\"\n}"),
    );
    let start = |data: &Path, http: &str| {
        let data = data.to_str().unwrap();
        let args = ["-data-dir", data, "-http", http];
        let up = [&["up", job.to_str().unwrap()], &args[..]].concat();
        let agent = [&["agent"], &args[..]].concat();
        let (up, agent) = (Program::run(up).failed(), Program::run(agent).failed());
        assert!(agent.ends_with(&up), "{agent} and {up}");
        up
    };
    let (any, other) = ("127.0.0.1:0", kept.world.path("other"));
    let err = start(&kept.data, any);
    has(
        &err,
        &[
            "another agent uses the directory ",
            "; stop it, or choose another with -data-dir",
        ],
    );
    let file = kept.world.file("file", "");
    has(
        &start(&file, any),
        &[
            "cannot use the directory ",
            "file: ",
            "choose another with -data-dir",
        ],
    );
    has(
        &start(&file.join("below"), any),
        &["cannot use the directory ", "choose another with -data-dir"],
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    has(
        &start(&other, &taken),
        &[
            "cannot listen on ",
            &taken,
            "in use",
            "choose another address with -http",
        ],
    );
    for nonsense in ["here", "127.0.0.1", "127.0.0.1:99999", "203.0.113.9:80"] {
        has(
            &start(&other, nonsense),
            &["cannot listen on ", nonsense, "-http ADDR:PORT"],
        );
    }
    assert!(
        !other.exists(),
        "nothing is made by an agent that does not start"
    );
    let mut args = vec!["-data-dir", other.to_str().unwrap(), "-http", any];
    args.insert(0, "up");
    let up = |file: &str| Program::run([&args[..], &[file]].concat());
    has(
        &up("/nowhere/job.hcl").failed(),
        &["cannot open /nowhere/job.hcl: No such file"],
    );
    has(&up("/").failed(), &["cannot read /: Is a directory"]);
    kept.no_job_but_the_kept();

    let foreign = kept.world.file(
        "qemu.hcl",
        &task("driver = \"qemu\"\nconfig {\n  image = \"x\"\n}"),
    );
    let out = up(foreign.to_str().unwrap()).with(2);
    has(
        &out,
        &[
            "Placement failed for group \"g\": driver \"qemu\" of task \"t\" is not there",
            "==> Job \"x\" cannot be placed on this node",
        ],
    );
    let out = kept
        .drover(&["job", "run", foreign.to_str().unwrap()])
        .with(2);
    has(&out, &["qemu"]);
    kept.goes_on();
}

#[test]
fn damaged_store_is_reported_and_unchanged() {
    let world = World::new();
    let data = world.data();
    let kept = Kept::within(world, data.clone());
    let Kept {
        agent,
        shims: before,
        world,
        ..
    } = kept;
    agent.kill_9();
    let state = data.join("state");
    let (db, whole) = (
        state.join("records/db"),
        fs::read(state.join("records/db")).unwrap(),
    );
    let start = || {
        let args = [
            "agent",
            "-http",
            "127.0.0.1:0",
            "-data-dir",
            data.to_str().unwrap(),
        ];
        Program::run(args).failed()
    };
    let noise: Vec<u8> = (0..whole.len())
        .map(|n| u8::try_from(n * 7 % 251).unwrap())
        .collect();
    for bad in [&noise[..], &[]] {
        fs::write(&db, bad).unwrap();
        let err = start();
        has(
            &err,
            &[
                "is damaged and cannot be read: ",
                "Nothing was changed. ",
                "To go on without it: mv ",
                "-accept-state-loss",
            ],
        );
        assert_eq!(fs::read(&db).unwrap(), bad, "it was changed");
        assert_eq!(shims(&data), before, "tasks were touched");
    }
    // Put back, everything is found again.
    fs::write(&db, &whole).unwrap();
    let agent = Agent::start(&data, &free_addr());
    agent.wait_for("/v1/job/keeper/allocations", is_running);
    assert_eq!(shims(&data), before);
    agent.kill_9();
    // As the message says: without the state, its tasks are left running.
    fs::rename(&state, data.join("state.damaged")).unwrap();
    let err = start();
    has(&err, &["is not there", "-accept-state-loss"]);
    let agent = Agent::start_with(&data, &free_addr(), &["-accept-state-loss"]);
    run_job(&agent, "fresh", "sleep 1000");
    let now = shims(&data);
    assert!(before.iter().all(|shim| now.contains(shim)), "{now:?}");
    drop(agent);
    drop(world);
}

/// A small disk. Gone when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Disk> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=24m", "drover-test"])
            .arg(at);
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        mounted.then(|| Disk(at.to_owned()))
    }

    /// Leaves no room on it.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("fill");
        let mut file = fs::File::create(&path).unwrap();
        for size in [1 << 20, 4096, 1] {
            let block = vec![b'x'; size];
            while std::io::Write::write_all(&mut file, &block).is_ok() {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is still open on it goes with its last user.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn agent_survives_full_disk() {
    let world = World::new();
    let data = world.data();
    let Some(disk) = Disk::mount(&data) else {
        eprintln!("skipped: no disk can be mounted here");
        return;
    };
    let kept = Kept::within(world, data);
    let fill = disk.fill();
    // Everything that can be read is there, and what ran runs on.
    kept.goes_on();
    let mut job = shell_job("later", "echo at last; sleep 1000");
    // More than the store has room for in its file.
    job["Job"]["Meta"] = json!({ "weight": "x".repeat(1_000_000) });
    let answer = std::thread::scope(|scope| {
        let sent = scope.spawn(|| kept.agent.put("/v1/jobs", &job));
        for _ in 0..50 {
            kept.goes_on();
        }
        fs::remove_file(&fill).unwrap();
        sent.join().unwrap()
    });
    // It may have been told that it cannot be, or have waited until it could.
    let (status, body) = answer.unwrap();
    assert!(matches!(status, 200 | 500), "{status} {body}");
    run_job(&kept.agent, "later", "echo another version; sleep 1000");
    kept.goes_on();

    // The same for an agent that starts on a full disk.
    let Kept {
        agent,
        shims: before,
        data,
        world,
    } = kept;
    agent.kill_9();
    let fill = disk.fill();
    let args = [
        "agent",
        "-http",
        "127.0.0.1:0",
        "-data-dir",
        data.to_str().unwrap(),
    ];
    has(&Program::run(args).failed(), &["cannot ", "No space left"]);
    assert_eq!(shims(&data).len(), 2, "tasks go on");
    fs::remove_file(fill).unwrap();
    let agent = Agent::start(&data, &free_addr());
    agent.wait_for("/v1/job/keeper/allocations", is_running);
    assert!(before.iter().all(|shim| shims(&data).contains(shim)));
    drop((agent, world, disk));
}
