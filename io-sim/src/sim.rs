//! One agent in one world, driven one input at a time.

mod asks;
pub(crate) mod brief;
mod ends;
mod fleet;
mod replay;
mod trouble;
mod turns;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use drover_core::agent::requests::{Request, Subject};
use drover_core::agent::{Agent, Input, View};
use drover_core::claims::resources::Amounts;
use drover_core::config::{ClusterConfig, Config};
use drover_core::effect::{Effect, StoreEffect};
use drover_core::ids::{NodeId, RequestId};
use drover_core::input::ShutdownMode;
use drover_core::model::node::{DriverInfo, Node};
use drover_core::scheduler::ports::host_network_attribute;
use drover_core::stats::running::Running;
use drover_core::time::{Instant, Span};

use crate::check::{Checker, Verdict, Violation, ensure};
use crate::faults::Fault;
use crate::hash::StateHasher;
use crate::machine::listening;
use crate::network::PLUGIN_MODE;
use crate::scene::Scene;
use crate::search::{Scheduler, Search};
use crate::servers::Servers;
use crate::sim::replay::Tape;
use crate::sim::turns::Call;
use crate::trace::{Column, Trace, Way};
use crate::world::World;

pub use self::turns::Turn;

/// More steps than this at one instant are a livelock.
const STEPS_AT_ONE_INSTANT: u32 = 20_000;

/// After so many steps the agent is called back without need.
const SPURIOUS_EACH: u64 = 61;

/// After so many steps somebody looks at statistics.
const SAMPLE_INTERVAL: u64 = 10;

/// In one run of so many, what is saved is compared whole, and not by its keys alone.
const DEEP_EACH: u64 = 8;

/// A number for an effect. Hashing what is saved costs more than all else that a run does.
fn mark_of(effect: &Effect, deep: bool) -> u64 {
    match effect {
        Effect::Store(StoreEffect::Commit(id, batch)) if !deep => {
            let mut hash = StateHasher::default();
            id.hash(&mut hash);
            for (key, record) in batch.iter() {
                key.hash(&mut hash);
                record.is_some().hash(&mut hash);
            }
            hash.finish()
        }
        Effect::Store(_)
        | Effect::Driver(..)
        | Effect::Forget(..)
        | Effect::Hook(_)
        | Effect::Check(_)
        | Effect::Node(_)
        | Effect::Server(_)
        | Effect::Reply(..)
        | Effect::Notify(_)
        | Effect::Stopped => hash_of(effect),
    }
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hash = StateHasher::default();
    what.hash(&mut hash);
    hash.finish()
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// Something happened.
    Done,
    /// Nothing happens until the given end.
    Idle,
}

/// One agent in one world.
#[derive(Clone, Debug)]
pub struct Sim {
    /// Everything but the agent.
    pub world: World,
    /// What the checks remember.
    pub checker: Checker,
    /// Whether the agent said that it is done.
    pub stopped: bool,
    /// How many steps the agent made.
    pub steps: u64,
    /// The agent dies after this step.
    pub crash_at: Option<u64>,
    agent: Option<Agent>,
    config: Config,
    seed: u64,
    restart_at: Option<Instant>,
    call: Option<Call>,
    died_in_step: bool,
    /// How long no agent runs after one died by chance, at most.
    pub(crate) longest_absence: Span,
    requests: BTreeMap<RequestId, (u64, Request)>,
    last_request: u64,
    /// In which namespaces jobs were handed in last.
    namespaces: BTreeMap<String, Arc<str>>,
    tape: Tape,
    quiet: bool,
    /// After each so many steps the state is checked.
    checks_every: u64,
    steps_at_instant: (Instant, u32),
}

impl Sim {
    /// A new node with an agent that has never run before.
    pub fn new(seed: u64) -> Sim {
        Sim::with_config(seed, listening(Config::new(0, node(), "/alloc")))
    }

    /// The same, with these settings.
    pub fn with_config(seed: u64, config: Config) -> Sim {
        Sim::with_resources(seed, config, None)
    }

    /// The same, on a machine that has so much of what is counted; as much as anybody wants if none.
    pub fn with_resources(seed: u64, config: Config, has: Option<Amounts>) -> Sim {
        let mut world = World::new(seed, config.timeouts);
        world.machine.has = has;
        world.link.node_id = config.node.id;
        world.link.servers = config.cluster.as_ref().map(|_| Servers::new(seed));
        let checker = Checker::new(&config);
        let mut sim = Sim {
            world,
            checker,
            stopped: false,
            steps: 0,
            crash_at: None,
            agent: None,
            config,
            seed,
            restart_at: None,
            call: None,
            died_in_step: false,
            longest_absence: Span::secs(60),
            requests: BTreeMap::new(),
            last_request: 0,
            namespaces: BTreeMap::new(),
            tape: Tape::default(),
            quiet: false,
            checks_every: 1,
            steps_at_instant: (Instant(0), 0),
        };
        // Nothing can be wrong with an agent that knows nothing.
        let _ = sim.restart();
        sim
    }

    /// The settings of the agent.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the agent listens to the machine, or takes it as it is configured.
    pub(crate) fn listens(&self) -> bool {
        !self.config.drivers.is_empty()
    }

    fn is_deep(&self) -> bool {
        self.seed.is_multiple_of(DEEP_EACH)
    }

    /// The seed of everything.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// From now on, the next one is picked by this.
    pub fn search(&mut self, search: Search) {
        self.world.scene.scheduler = Scheduler::new(search, &mut self.world.scene.choices);
    }

    /// The agent, while it lives, to ask it things.
    pub fn view(&self) -> Option<View<'_>> {
        self.agent.as_ref().map(Agent::view)
    }

    /// The agent, while it lives.
    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// The agent dies, between two effects or wherever it is.
    pub fn crash(&mut self) {
        if self.agent.take().is_none() {
            return;
        }
        self.call = None;
        self.world
            .scene
            .note(|| (Column::Agent, "the agent is dead".to_owned()));
        self.world.agent_died();
        self.checker.agent_died();
        // Whoever asked for a lasting change and got no answer asks again, in the same order.
        let lost: Vec<Request> = (self.requests.iter())
            .filter(|(request, _)| self.checker.reply(**request).is_none())
            .filter(|(_, (life, _))| *life < self.world.scene.life)
            .map(|(_, (_, asked))| asked.clone())
            .filter(|asked| !matches!(asked.get().subject(), Subject::Alloc(_)))
            .collect();
        self.world.scene.inbox.clear();
        self.requests
            .retain(|request, _| self.checker.reply(*request).is_some());
        for asked in lost {
            self.ask(asked);
        }
    }

    /// The machine starts again, and the agent with it.
    pub fn reboot(&mut self) {
        self.crash();
        self.world
            .scene
            .note(|| (Column::Agent, "the machine starts again".to_owned()));
        self.world.rebooted();
        self.world.scene.inbox.clock_set_back(self.world.scene.at);
        self.restart_at = self.restart_at.map(|_| self.world.scene.at);
        self.steps_at_instant = (Instant(0), 0);
    }

    /// A new agent goes on with what the disk holds.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn restart(&mut self) -> Verdict {
        self.crash();
        self.restart_at = None;
        self.stopped = false;
        self.world.scene.clock_was_set = false;
        let mut hash = StateHasher::default();
        hash.write_u64(self.seed);
        hash.write_u64(self.world.scene.life);
        self.config.seed = hash.finish();
        let (saved, now) = (self.world.read_disk(), self.world.now());
        self.world
            .scene
            .note(|| (Column::Agent, "a new agent starts".to_owned()));
        if !self.quiet {
            self.tape = Tape::new(self.config.clone(), saved.clone(), now);
        }
        self.checker.host_volumes = self.config.node.host_volumes.clone();
        self.agent = Some(Agent::restore(self.config.clone(), saved, now));
        self.after_input()
    }

    /// A new agent starts from a snapshot of the state, in another data directory.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn restore_snapshot(&mut self) -> Verdict {
        self.crash();
        self.world.brought_along();
        self.restart()
    }

    /// One step; nothing happens after `until`.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn step(&mut self, until: Instant) -> Result<Stepped, Violation> {
        loop {
            if let Some(turn) = self.next_turn() {
                self.take(turn)?;
                return Ok(Stepped::Done);
            }
            match self.next_at().filter(|at| *at <= until) {
                Some(at) => self.world.scene.advance(at),
                None => {
                    self.world.scene.advance(until);
                    return Ok(Stepped::Idle);
                }
            }
        }
    }

    /// Nothing of the past is kept that only serves to look back.
    pub(crate) fn quiet(&mut self) {
        self.quiet = true;
        self.tape = Tape::default();
        self.world.scene.trace = Trace::default();
    }

    /// Takes this turn.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn take(&mut self, turn: Turn) -> Verdict {
        self.limit_steps_at_one_instant()?;
        match turn {
            Turn::World(at, number) => {
                self.world.act((at, number));
                self.broken()
            }
            Turn::Servers => {
                self.world.servers_go_on();
                Ok(())
            }
            Turn::Restart => self.restart(),
            Turn::Timer => self.deliver(None),
            Turn::Input(source) => match self.world.scene.inbox.pop(source) {
                Some(input) => self.deliver(Some(input)),
                None => Ok(()),
            },
        }
    }

    /// The number of steps at one instant is bounded.
    fn limit_steps_at_one_instant(&mut self) -> Verdict {
        let (at, count) = self.steps_at_instant;
        let count = if at == self.world.scene.at {
            count + 1
        } else {
            0
        };
        self.steps_at_instant = (self.world.scene.at, count);
        ensure(count < STEPS_AT_ONE_INSTANT, "no_livelock", || {
            format!("{count} steps")
        })
    }

    fn deliver(&mut self, input: Option<Input>) -> Verdict {
        let now = self.world.now();
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        self.steps += 1;
        self.call = None;
        self.world.scene.clock_was_set &= input.is_some();
        self.checker.input(&self.world, agent, input.as_ref());
        let Scene {
            trace,
            names,
            elapsed,
            ..
        } = &mut self.world.scene;
        trace.write(*elapsed, Way::In, || {
            brief::input(names, agent, input.as_ref())
        });
        trace.record(hash_of(&input));
        self.tape.record(now, input.clone());
        self.checker.leaving |= input == Some(Input::Shutdown(ShutdownMode::KeepTasks));
        self.checker.ends_tasks |= input == Some(Input::Shutdown(ShutdownMode::StopTasks));
        match input {
            Some(input) => agent.handle(now, input),
            None => agent.handle_timeout(now),
        }
        self.after_input()
    }

    /// Carries out what the agent asks for, checks everything, and lets trouble come.
    fn after_input(&mut self) -> Verdict {
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        let verdict = self.drain(&mut agent);
        let verdict = verdict.and_then(|()| self.check(&agent));
        self.agent = Some(agent);
        self.world.scene.trace.end_step(self.world.scene.at);
        verdict?;
        self.trouble();
        Ok(())
    }

    fn drain(&mut self, agent: &mut Agent) -> Verdict {
        let mut first = true;
        while let Some(effect) = agent.poll_effect() {
            let hash = mark_of(&effect, self.is_deep());
            self.tape.effect(hash);
            if self.died_in_step {
                continue;
            }
            if !first && self.world.scene.fires(Fault::CrashInStep, "agent") {
                self.died_in_step = true;
                continue;
            }
            first = false;
            self.checker.effect(&self.world, agent, &effect)?;
            let Scene {
                trace,
                names,
                elapsed,
                ..
            } = &mut self.world.scene;
            trace.record(hash);
            names.learn(agent, &effect);
            if trace.is_kept()
                && let Some(line) = brief::effect(names, &effect)
            {
                trace.write(*elapsed, Way::Out, || line);
            }
            self.stopped |= effect == Effect::Stopped;
            self.world.carry_out(effect);
        }
        self.broken()
    }

    fn broken(&mut self) -> Verdict {
        self.world.scene.broken.take().map_or(Ok(()), Err)
    }

    fn check(&mut self, agent: &Agent) -> Verdict {
        if self.died_in_step {
            // What the agent thinks that it did, it did not.
            return Ok(());
        }
        self.checker.after_step(&self.world, agent);
        if !self.steps.is_multiple_of(self.checks_every) {
            return Ok(());
        }
        self.checker.state(&self.world, agent)?;
        if self.steps.is_multiple_of(SPURIOUS_EACH) {
            self.spurious_timeout_changes_nothing(agent)?;
        }
        let samples = !self.quiet && self.world.sampler.may_sample(self.world.elapsed());
        if samples && self.steps.is_multiple_of(SAMPLE_INTERVAL) {
            let allocs = agent.view().allocs();
            self.world
                .sample_statistics(allocs.flat_map(Running::of).collect());
            self.checker.statistics(&self.world, agent)?;
        }
        Ok(())
    }

    /// `handle_timeout` changes nothing when nothing is due.
    fn spurious_timeout_changes_nothing(&self, agent: &Agent) -> Verdict {
        let now = self.world.now();
        if agent.poll_timeout().is_some_and(|(at, _)| at <= now.at) {
            return Ok(());
        }
        let mut other = agent.clone();
        other.handle_timeout(now);
        let quiet = other.poll_effect().is_none() && other == *agent;
        ensure(quiet, "spurious_timeout_changes_nothing", || {
            "the state differs".to_owned()
        })
    }
}

fn driver_info(healthy: bool) -> DriverInfo {
    DriverInfo {
        detected: true,
        healthy,
        description: String::new(),
    }
}

/// The same node as the client of a cluster.
pub fn client_of_cluster(mut config: Config) -> Config {
    if config.node.id == NodeId::default() {
        config.node.id = NodeId(1);
    }
    config.cluster = Some(ClusterConfig {
        version: "2.0.5".into(),
        // Scenarios look at jobs of both kinds side by side, which are there where servers are named later.
        only_jobs_of_servers: false,
    });
    config
}

/// The network of the host that simulated nodes have besides the usual one.
pub const PRIVATE_NETWORK: &str = "private";

/// The node of simulated worlds: two names of the mock driver, few ports, and few addresses. Of its private network
/// half of the ports are kept for others.
pub fn node() -> Node {
    let drivers = ["mock_driver", "mock"].map(|name| (name.to_owned(), driver_info(true)));
    let address = (
        host_network_attribute(PRIVATE_NETWORK),
        "10.1.0.1".to_owned(),
    );
    Node {
        attributes: [address].into(),
        reserved_ports: [(PRIVATE_NETWORK.to_owned(), vec![(20_000, 20_004)])].into(),
        name: "sim".to_owned(),
        datacenter: "dc1".to_owned(),
        region: "global".to_owned(),
        pool: "default".to_owned(),
        drivers: drivers.into_iter().collect(),
        dynamic_ports: (20_000, 20_009),
        address: "127.0.0.1".to_owned(),
        network_modes: ["bridge", "none", PLUGIN_MODE].map(str::to_owned).into(),
        // Few, so that somebody has the one that is tried first.
        bridge_subnet: "172.26.64.0/27".parse().unwrap_or_default(),
        ..Node::default()
    }
}
