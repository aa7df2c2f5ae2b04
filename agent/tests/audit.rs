//! What Drover made on a host: whose it is, and that nothing is removed but what is nobody's.
//! Several agents with real tasks run side by side, as they may.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Agent, Program, World, exchange, free_addr};

/// A launch, or an allocation, that no agent ever made.
const NOBODY: &str = "5ee0e0aa-4ba1-4c5e-9d1c-4a1b5a0f7c11";

/// What makes this machine's audits prove everything.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root sees whose the things of a host are");
    }
    root
}

/// An agent with one task that runs.
struct Node {
    agent: Agent,
    data: PathBuf,
    alloc: String,
    /// The shim and the task.
    pids: Vec<String>,
    launch: String,
}

fn node(world: &World, name: &str) -> Node {
    let data = world.path(name);
    let agent = Agent::start(&data, &free_addr());
    let task = json!({
        "Name": "main",
        "Driver": "raw_exec",
        "Config": { "command": "/bin/sleep", "args": ["1000"] },
    });
    let groups = json!([{ "Name": "g", "Count": 1, "Tasks": [task] }]);
    let job = json!({ "Job": { "ID": name, "Datacenters": ["dc1"], "TaskGroups": groups } });
    let (status, body) = agent.put("/v1/jobs", &job).unwrap();
    assert_eq!(status, 200, "{body}");
    let alloc = agent.wait_for("/v1/allocations", |all| {
        let first = all.get(0)?;
        let runs = first["ClientStatus"] == "running";
        runs.then(|| first["ID"].as_str().unwrap().to_owned())
    });
    let all = audit(&agent.addr);
    let own = |thing: &&Value| thing["AllocID"] == *alloc && thing["Kind"] == "process";
    let found: Vec<&Value> = all.iter().filter(own).collect();
    assert!(found.len() >= 2, "a shim and a task: {all:#?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Node {
        pids: found.iter().map(|thing| text(&thing["Name"])).collect(),
        launch: text(&found[0]["LaunchID"]),
        agent,
        data,
        alloc,
    }
}

fn audit(addr: &str) -> Vec<Value> {
    let (status, body) = support::request(addr, "GET", "/v1/agent/audit", None).unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// `system audit` with these words; the exit code and the list.
fn command(addr: &str, words: &[&str]) -> (i32, Vec<Value>) {
    let address = format!("http://{addr}");
    let mut args = vec!["system", "audit", "-json", "-address", &address];
    args.extend(words);
    let ended = Program::run(args);
    let list = serde_json::from_str(&ended.out);
    (ended.code, list.unwrap_or_else(|_| panic!("{ended:?}")))
}

#[track_caller]
fn find<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = all
        .iter()
        .find(|thing| thing["Kind"] == kind && thing["Name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {all:#?}"))
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
    !stat.is_empty() && !rest.trim_start().starts_with('Z')
}

/// The directories of a control group of ours that are there.
fn groups(name: &str) -> Vec<PathBuf> {
    let trees = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
    let trees = trees.filter_map(Result::ok).map(|tree| tree.path());
    let trees = trees.chain([PathBuf::from("/sys/fs/cgroup")]);
    let own = trees.map(|tree| tree.join("drover").join(name));
    own.filter(|dir| dir.is_dir()).collect()
}

fn kill_9(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Every process, group and so on of a node, with the owner and the directory that it is said to
/// have.
#[track_caller]
fn all_of(node: &Node, all: &[Value], owner: &str, data: Option<&Path>) {
    let data = data.map(path).unwrap_or_default();
    let group = find(all, "cgroup", &node.launch);
    let processes = node.pids.iter().map(|pid| find(all, "process", pid));
    for thing in processes.chain([group]) {
        assert_eq!(thing["Owner"], owner, "{thing}");
        assert_eq!(thing["DataDir"], *data, "{thing}");
    }
}

#[test]
fn only_orphans_are_removed() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let (own, other, dead) = (
        node(&world, "own"),
        node(&world, "other"),
        node(&world, "dead"),
    );
    let robbed = node(&world, "robbed");
    // This one comes back one day.
    let (asleep, addr) = (node(&world, "asleep"), own.agent.addr.clone());
    let Node { agent, .. } = asleep;
    agent.kill_9();
    let asleep = Node {
        agent: Agent::start(&world.path("helper"), &free_addr()),
        ..asleep
    };
    // This one lives on without its directory, and that one is gone with it.
    world.wipe(&robbed.data);
    let Node { agent, .. } = dead;
    agent.kill_9();
    world.wipe(&dead.data);
    let dead = (dead.pids, dead.launch, dead.data);

    let (code, before) = command(&addr, &[]);
    assert_eq!(code, 2, "something is leaked");
    all_of(&own, &before, "task", None);
    for node in [&other, &asleep, &robbed] {
        all_of(node, &before, "another agent", Some(&node.data));
    }
    for pid in &dead.0 {
        let thing = find(&before, "process", pid);
        assert_eq!(thing["Owner"], "leaked", "{thing}");
        assert_eq!(thing["DataDir"], *path(&dead.2), "{thing}");
        assert!(lives(pid), "a look removes nothing");
    }
    let socket = path(&own.data.join(format!("run/{}.s", own.launch)));
    assert_eq!(find(&before, "socket", &socket)["Task"], "main");
    let dir = path(&own.data.join("alloc").join(&own.alloc));
    assert_eq!(find(&before, "directory", &dir)["AllocID"], *own.alloc);
    let me = own.agent.pid().to_string();
    assert_eq!(find(&before, "process", &me)["Owner"], "agent");

    let (_, fixed) = command(&addr, &["-fix"]);
    for pid in &dead.0 {
        let done = &find(&fixed, "process", pid)["Done"];
        assert_ne!(done, "", "{pid}");
        assert!(!lives(pid), "{pid} is left");
    }
    assert_eq!(find(&fixed, "cgroup", &dead.1)["Done"], "removed");
    assert_eq!(groups(&dead.1), Vec::<PathBuf>::new());
    for node in [&own, &other, &asleep, &robbed] {
        for pid in &node.pids {
            assert!(
                lives(pid),
                "{pid} of {} was not leaked",
                node.data.display()
            );
        }
        assert!(!groups(&node.launch).is_empty());
    }
}

/// Launches begin and end all the time: each is somebody's for as long as anything of it is there.
#[test]
fn short_lived_things_are_never_reported_leaked() {
    let world = World::new();
    let agent = Agent::start(&world.data(), &free_addr());
    let task = json!({
        "Name": "main",
        "Driver": "raw_exec",
        "Config": { "command": "/bin/true" },
    });
    let restart = json!({
        "Attempts": 1_000_000, "Interval": 3_600_000_000_000_u64, "Delay": 0, "Mode": "delay",
        "RenderTemplates": false,
    });
    let group = json!({ "Name": "g", "Count": 4, "RestartPolicy": restart, "Tasks": [task] });
    let job = json!({ "Job": { "ID": "busy", "Datacenters": ["dc1"], "TaskGroups": [group] } });
    let (status, body) = agent.put("/v1/jobs", &job).unwrap();
    assert_eq!(status, 200, "{body}");
    let restarts = |all: &Value| {
        let states = all.as_array().into_iter().flatten();
        let states = states.map(|alloc| &alloc["TaskStates"]["main"]["Restarts"]);
        states.filter_map(Value::as_u64).sum::<u64>()
    };
    while restarts(&agent.get("/v1/allocations")) < 200 {
        for thing in audit(&agent.addr) {
            let ours = thing["DataDir"] == "";
            assert!(!ours || thing["Owner"] != "leaked", "{thing}");
        }
    }
}

#[test]
fn empty_cgroup_is_attributed_by_creator() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let (own, dead) = (node(&world, "own"), node(&world, "dead"));
    let Node { agent, .. } = dead;
    agent.kill_9();
    // The shim first: it would clean up.
    let shims: Vec<String> = support::shims(&dead.data);
    shims.iter().for_each(|pid| kill_9(pid));
    let tasks = dead.pids.iter().filter(|pid| !shims.contains(pid));
    tasks.for_each(|pid| kill_9(pid));
    let tree = groups(&own.launch)[0].parent().unwrap().to_owned();
    let strange = Strange(tree.join(uuid(&world)));
    fs::create_dir(&strange.0).unwrap();
    let strangers = strange.0.file_name().unwrap().to_str().unwrap();

    let asleep = audit(&own.agent.addr);
    let group = find(&asleep, "cgroup", &dead.launch);
    assert_eq!(group["Owner"], "another agent", "it has its state");
    world.wipe(&dead.data);
    let (_, fixed) = command(&own.agent.addr, &["-fix"]);
    assert_eq!(find(&fixed, "cgroup", &dead.launch)["Done"], "removed");
    assert_eq!(groups(&dead.launch), Vec::<PathBuf>::new());
    assert_eq!(find(&fixed, "cgroup", strangers)["Owner"], "unknown");
    assert!(strange.0.is_dir(), "nobody knows whose it is");
    assert!(!groups(&own.launch).is_empty());
}

/// A group that no agent made; removed when dropped.
struct Strange(PathBuf);

impl Drop for Strange {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A launch of this test alone.
fn uuid(world: &World) -> String {
    let path = path(&world.path(""));
    let number = path.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    format!(
        "{:08x}-0000-4000-8000-{:012x}",
        number >> 32,
        number & 0xffff_ffff
    )
}

#[test]
fn unknown_files_in_data_dir_are_removed() {
    let world = World::new();
    let own = node(&world, "own");
    let lost = own.data.join("alloc").join(NOBODY);
    fs::create_dir_all(lost.join("main/local")).unwrap();
    let socket = own.data.join(format!("run/{NOBODY}.s"));
    drop(UnixListener::bind(&socket).unwrap());
    let kept = own.data.join("alloc/lost+found");
    fs::create_dir(&kept).unwrap();
    let _mounted = Mounted::tmpfs(&lost.join("main/local"));

    let (code, fixed) = command(&own.agent.addr, &["-fix"]);
    assert_eq!(code, 0, "{fixed:#?}");
    assert_eq!(find(&fixed, "directory", &path(&lost))["Done"], "removed");
    assert_eq!(find(&fixed, "socket", &path(&socket))["Done"], "removed");
    if rustix::process::geteuid().is_root() {
        let mount = path(&lost.join("main/local"));
        assert_eq!(find(&fixed, "mount", &mount)["Done"], "unmounted");
    }
    assert!(!lost.exists() && !socket.exists());
    assert!(kept.exists(), "it does not bear our mark");
    assert!(own.pids.iter().all(|pid| lives(pid)));
    assert!(own.data.join("alloc").join(&own.alloc).exists());
}

/// A mount of a test, taken away when dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// Nothing happens unless the test may mount.
    fn tmpfs(at: &Path) -> Mounted {
        if rustix::process::geteuid().is_root() {
            let flags = rustix::mount::MountFlags::empty();
            rustix::mount::mount("tmpfs", at, "tmpfs", flags, None).unwrap();
        }
        Mounted(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Gone already, unless the test failed.
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn audit_needs_running_agent_and_root() {
    let world = World::new();
    let agent = Agent::start(&world.data(), &free_addr());
    let lost = world.data().join("alloc").join(NOBODY);
    fs::create_dir(&lost).unwrap();
    let request = format!(
        "PUT /v1/agent/audit HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.example\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n",
        agent.addr
    );
    let (status, _) = exchange(&agent.addr, request.as_bytes()).unwrap();
    assert_eq!(status, 403);
    assert!(lost.exists());
    let addr = agent.addr.clone();
    agent.kill_9();
    let address = format!("http://{addr}");
    let failed = Program::run(["system", "audit", "-address", &address]).failed();
    assert!(failed.contains("owners apart"), "{failed}");
    assert!(failed.contains("no agent answers"), "{failed}");
}
