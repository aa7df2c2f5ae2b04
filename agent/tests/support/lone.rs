//! One agent in a world of its own, and the program that asks it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Agent, Ended, Program, World, command, free_addr};

/// An agent that runs alone.
pub struct Lone {
    // It ends first: it would start again what ends with the world.
    pub(crate) agent: Agent,
    pub world: World,
    /// The file with its configuration, if it has one.
    config: Option<PathBuf>,
}

impl Lone {
    pub fn new() -> Lone {
        let world = World::new();
        let agent = Agent::start(&world.data(), &free_addr());
        Lone {
            world,
            agent,
            config: None,
        }
    }

    /// With this configuration.
    pub fn configured(config: &str) -> Lone {
        Lone::with_programs(config, None)
    }

    /// The same, for which programs of this directory are there, too.
    pub fn with_programs(config: &str, programs: Option<&Path>) -> Lone {
        let world = World::new();
        let file = world.file("agent.hcl", config);
        let options = ["-config", file.to_str().unwrap()];
        let agent = Agent::start_with_programs(&world.data(), &free_addr(), &options, programs);
        Lone {
            world,
            agent,
            config: Some(file),
        }
    }

    pub fn start(&self, args: &[&str]) -> Program {
        let addr = format!("http://{}", self.agent.addr);
        Program::of(command(args).env("DROVER_ADDR", addr))
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ended {
        self.start(args).end()
    }

    /// What a command prints, as JSON.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.run(args).ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"))
    }

    /// Its node, when it found out whether it can isolate tasks; none, and a line that says why, if it cannot.
    pub fn isolating_node(&self) -> Option<Value> {
        let node = self.agent.wait_for("/v1/nodes?resources=true", |nodes| {
            let node = nodes.get(0)?;
            (!node["Drivers"]["exec"].is_null()).then(|| node.clone())
        });
        let driver = &node["Drivers"]["exec"];
        if driver["Healthy"] != true {
            eprintln!("skipped: {driver}");
            return None;
        }
        Some(node)
    }

    /// Purges a job that is over, and waits until nothing is left of what ran.
    pub fn purge(&self, job: &str) {
        let purged = self.agent.delete(&format!("/v1/job/{job}?purge=true"));
        assert_eq!(purged.map(|(status, _)| status), Some(200));
        self.agent.wait_for("/v1/allocations", |allocs| {
            allocs.as_array().unwrap().is_empty().then_some(())
        });
        self.agent.wait_for("/v1/agent/audit", |audit| {
            let mut all = audit.as_array().unwrap().iter();
            let is_left = |it: &Value| it["DataDir"] == "" && it["Owner"] != "agent";
            (!all.any(is_left)).then_some(())
        });
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let data = self.world.data();
        assert!(!mounts.contains(data.to_str().unwrap()), "{mounts}");
    }

    /// The agent dies, and another one goes on.
    pub fn next_agent(self) -> Lone {
        self.next_agent_after(|| ())
    }

    /// The same, and something happens while there is none.
    pub fn next_agent_after(mut self, meanwhile: impl FnOnce()) -> Lone {
        let addr = self.agent.addr.clone();
        self.agent.kill_9();
        meanwhile();
        let config = self.config.as_ref().and_then(|file| file.to_str());
        let options: Vec<&str> = config
            .into_iter()
            .flat_map(|file| ["-config", file])
            .collect();
        self.agent = Agent::start_with(&self.world.data(), &addr, &options);
        self
    }
}
