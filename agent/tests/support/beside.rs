//! Three servers of Nomad with two nodes: an agent, and beside it Nomad's own client.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};

use crate::support::nomad::{Cluster, job, program, run_in};
use crate::support::{Ended, Lone, Program, TIMEOUT, World, free_addr};

/// The names of the two nodes.
pub(crate) const OURS: &str = "ours";
pub(crate) const THEIRS: &str = "theirs";
pub(crate) const BOTH: [&str; 2] = [OURS, THEIRS];

const RAW_EXEC: &str = "plugin \"raw_exec\" {\n config {\n enabled = true\n }\n}\n";

/// Nomad's own client. With it all ends that it started.
struct Theirs {
    child: Child,
    world: World,
    /// The control groups that were there before.
    groups: BTreeSet<PathBuf>,
}

impl Theirs {
    fn start(program: &Path, servers: &[&str]) -> Theirs {
        let world = World::new();
        let http = free_addr();
        let settings = format!(
            "name = \"{THEIRS}\"\ndata_dir = \"{}\"\nbind_addr = \"127.0.0.1\"\ndisable_update_check = true\nports {{\n \
             http = {}\n}}\nadvertise {{\n http = \"{http}\"\n rpc = \"127.0.0.1\"\n serf = \"127.0.0.1\"\n}}\n\
             client {{\n enabled = true\n servers = {servers:?}\n}}\n{RAW_EXEC}",
            world.data().display(),
            http.rsplit(':').next().unwrap(),
        );
        let file = world.file("client.hcl", &settings);
        fs::create_dir(world.data()).unwrap();
        Theirs {
            groups: groups(),
            // Some of its processes have its folder nowhere but there.
            child: run_in(program, &file, &world.data()),
            world,
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        // Its tasks go on without it, and what watches them: they bear the name of its folder.
        let folder = self.world.data();
        let folder = folder.to_str().unwrap();
        for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let path = process.path();
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            let works_in = fs::read_link(path.join("cwd")).unwrap_or_default();
            let is_its =
                String::from_utf8_lossy(&line).contains(folder) || works_in.starts_with(folder);
            let pid = process.file_name().to_string_lossy().parse().ok();
            if let Some(pid) = pid.and_then(Pid::from_raw).filter(|_| is_its) {
                // Gone already, where it ends by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        self.remove_groups();
    }
}

impl Theirs {
    /// Removes the control groups that it made, once nothing is in them.
    fn remove_groups(&self) {
        let until = Instant::now() + LINGER;
        loop {
            let now = groups();
            let made: Vec<&PathBuf> = now.difference(&self.groups).collect();
            // Those below others first.
            for group in made.iter().rev() {
                // What was killed may be in it for a moment.
                let _ = fs::remove_dir(group);
            }
            if made.is_empty() || Instant::now() > until {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// How long what was killed may take to be gone.
const LINGER: Duration = Duration::from_secs(5);

/// The control groups of Nomad's nodes on this machine, in all hierarchies.
fn groups() -> BTreeSet<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut found = BTreeSet::new();
    for hierarchy in folders(root).into_iter().chain([root.to_owned()]) {
        let mut open = vec![hierarchy.join("nomad"), hierarchy.join("nomad.slice")];
        while let Some(group) = open.pop().filter(|_| found.len() < MOST_GROUPS) {
            if group.is_dir() {
                open.extend(folders(&group));
                found.insert(group);
            }
        }
    }
    found
}

/// The most of them that are looked at.
const MOST_GROUPS: usize = 100_000;

fn folders(at: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(at).into_iter().flatten();
    let entries = entries.filter_map(Result::ok);
    let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    folders.map(|it| it.path()).collect()
}

/// The cluster. Nodes end before the servers.
pub(crate) struct Beside {
    _ours: Lone,
    _theirs: Theirs,
    pub(crate) cluster: Cluster,
    program: PathBuf,
}

impl Beside {
    pub(crate) fn start() -> Option<Beside> {
        let program = program()?;
        if !geteuid().is_root() {
            eprintln!("skipped: Nomad's client needs root");
            return None;
        }
        let cluster = Cluster::start()?;
        let servers: Vec<&str> = cluster.servers.iter().map(|it| it.rpc.as_str()).collect();
        let theirs = Theirs::start(&program, &servers);
        let ours = Lone::configured(&format!(
            "name = \"{OURS}\"\nclient {{\n servers = {servers:?}\n}}\n{RAW_EXEC}"
        ));
        let beside = Beside {
            _ours: ours,
            _theirs: theirs,
            cluster,
            program,
        };
        for name in BOTH {
            beside.node(name);
        }
        Some(beside)
    }

    /// The id of the node with this name, once it is ready.
    pub(crate) fn node(&self, name: &str) -> String {
        self.cluster.wait("/v1/nodes", |nodes| {
            let mut nodes = nodes.as_array()?.iter();
            let node = nodes.find(|it| it["Name"] == name && it["Status"] == "ready")?;
            Some(node["ID"].as_str()?.to_owned())
        })
    }

    /// A command of the program `nomad`, which asks the servers.
    pub(crate) fn command(&self, words: &[&str]) -> Program {
        let mut command = Command::new(&self.program);
        let command = command
            .args(words)
            .env(
                "NOMAD_ADDR",
                format!("http://{}", self.cluster.servers[0].http),
            )
            .env("NOMAD_CLI_SHOW_HINTS", "0")
            .stdin(Stdio::null());
        Program::of(command)
    }

    /// The same, to its end.
    pub(crate) fn nomad(&self, words: &[&str]) -> Ended {
        self.command(words).end()
    }

    pub(crate) fn put(&self, path: &str, body: &Value) {
        let until = Instant::now() + TIMEOUT;
        loop {
            let asked = self.cluster.servers[0].request("PUT", path, &body.to_string());
            match asked.unwrap() {
                (200, _) => return,
                // Nobody leads for a moment.
                (500.., _) if Instant::now() < until => sleep(Duration::from_millis(20)),
                refused => panic!("PUT {path}: {refused:?}"),
            }
        }
    }

    pub(crate) fn submit(&self, job: &Value) {
        self.put("/v1/jobs", &json!({ "Job": job }));
    }

    /// All allocations of a job, whole, once they are so.
    pub(crate) fn allocs<T>(&self, job: &str, are_so: impl Fn(&[Value]) -> Option<T>) -> T {
        let path = format!("/v1/job/{job}/allocations");
        self.cluster.wait(&path, |all| are_so(all.as_array()?))
    }

    /// The allocation of a job on this node, once its status is this one.
    pub(crate) fn alloc(&self, job: &str, node: &str, status: &str) -> Value {
        self.allocs(job, |all| {
            let fits = |it: &&Value| it["NodeName"] == node && it["ClientStatus"] == status;
            all.iter().find(fits).cloned()
        })
    }

    /// Stops a job, and waits until all that it ran is over.
    pub(crate) fn stop(&self, job: &str) {
        let path = format!("/v1/job/{job}");
        assert!(self.cluster.ask("DELETE", &path, "").is_some());
        self.allocs(job, |all| {
            let is_over =
                |it: &Value| !matches!(it["ClientStatus"].as_str(), Some("pending" | "running"));
            all.iter().all(is_over).then_some(())
        });
    }
}

/// A job that has to be on this node.
pub(crate) fn pinned(name: &str, kind: &str, script: &str, node: &str) -> Value {
    let mut job = job(name, kind, script);
    pin(&mut job, node);
    job
}

pub(crate) fn pin(job: &mut Value, node: &str) {
    let attribute = "${node.unique.name}";
    job["Constraints"] = json!([{ "LTarget": attribute, "RTarget": node, "Operand": "=" }]);
}

/// A job that is on each node.
pub(crate) fn everywhere(name: &str) -> Value {
    let mut job = job(name, "system", "exec sleep 1000");
    job["TaskGroups"][0]["ReschedulePolicy"] = Value::Null;
    job
}

/// What events of its task an allocation has, in their order, and when they were.
pub(crate) fn events(alloc: &Value) -> Vec<(String, i64)> {
    let events = alloc["TaskStates"]["t"]["Events"].as_array();
    let events = events.into_iter().flatten();
    events
        .map(|it| {
            (
                it["Type"].as_str().unwrap().to_owned(),
                it["Time"].as_i64().unwrap(),
            )
        })
        .collect()
}
