//! One agent in one world, driven one input at a time.

mod asks;
mod brief;
mod ends;
mod replay;

use std::collections::BTreeMap;
use std::hash::Hasher;

use drover_core::agent::{Agent, View};
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::input::{Input, RequestId, ShutdownMode};
use drover_core::model::node::{DriverInfo, Node};
use drover_core::time::{Instant, Span};

use crate::check::{Checker, Verdict, Violation, ensure};
use crate::choice::Fnv;
use crate::faults::Fault;
use crate::inbox::Source;
use crate::sim::replay::Tape;
use crate::world::World;

/// More steps than this at one instant are a livelock.
const STEPS_AT_ONE_INSTANT: u32 = 20_000;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// Something happened.
    Done,
    /// Nothing happens until the given end.
    Idle,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Input(Source),
    Timer,
    World,
    Restart,
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
    requests: BTreeMap<RequestId, (u64, Input)>,
    last_request: u64,
    tape: Tape,
    crowded: (Instant, u32),
}

impl Sim {
    /// A new node with an agent that has never run before.
    pub fn new(seed: u64) -> Sim {
        Sim::with_config(seed, Config::new(0, node(), "/alloc"))
    }

    /// The same, with these settings.
    pub fn with_config(seed: u64, config: Config) -> Sim {
        let world = World::new(seed, config.patience);
        let checker = Checker::new(config.keep_terminal);
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
            requests: BTreeMap::new(),
            last_request: 0,
            tape: Tape::default(),
            crowded: (Instant(0), 0),
        };
        // Nothing can be wrong with an agent that knows nothing.
        let _ = sim.restart();
        sim
    }

    /// The seed of everything.
    pub fn seed(&self) -> u64 {
        self.seed
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
        self.world.note("crash");
        self.world.agent_died();
        self.checker.agent_died();
        // Whoever asked for a lasting change and got no answer asks again, in the same order.
        let lost: Vec<Input> = (self.requests.iter())
            .filter(|(request, _)| self.checker.reply(**request).is_none())
            .filter(|(_, (life, _))| *life < self.world.life)
            .map(|(_, (_, input))| input.clone())
            .collect();
        self.world.inbox = Default::default();
        self.requests
            .retain(|request, _| self.checker.reply(*request).is_some());
        for input in lost {
            if let Input::Local(_, input) = input {
                self.ask(input);
            }
        }
    }

    /// The machine starts again, and the agent with it.
    pub fn reboot(&mut self) {
        self.crash();
        self.world.note("reboot");
        self.world.rebooted();
        self.restart_at = self.restart_at.map(|_| self.world.at);
        self.crowded = (Instant(0), 0);
    }

    /// A new agent goes on with what the disk holds.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn restart(&mut self) -> Verdict {
        self.crash();
        self.restart_at = None;
        self.stopped = false;
        let mut hash = Fnv::default();
        hash.write_u64(self.seed);
        hash.write_u64(self.world.life);
        self.config.seed = hash.finish();
        let (saved, now) = (self.world.disk.saved(), self.world.now());
        self.world.note("restore");
        self.tape = Tape::new(self.config.clone(), saved.clone(), now);
        self.agent = Some(Agent::restore(self.config.clone(), saved, now));
        self.after_input()
    }

    /// One step; nothing happens after `until`.
    ///
    /// # Errors
    /// What is violated by it.
    pub fn step(&mut self, until: Instant) -> Result<Stepped, Violation> {
        loop {
            let turns = self.turns();
            if !turns.is_empty() {
                let at = self.world.choices.below(turns.len(), "order", "");
                if let Some(turn) = turns.get(at) {
                    self.take(*turn)?;
                }
                return Ok(Stepped::Done);
            }
            match self.next_at().filter(|at| *at <= until) {
                Some(at) => self.world.at = at.max(self.world.at),
                None => {
                    self.world.at = until.max(self.world.at);
                    return Ok(Stepped::Idle);
                }
            }
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let now = self.world.at;
        let mut turns = Vec::new();
        if let Some(agent) = &self.agent {
            turns.extend(self.world.inbox.ready(now).into_iter().map(Turn::Input));
            if agent.poll_timeout().is_some_and(|(at, _)| at <= now) {
                turns.push(Turn::Timer);
            }
        }
        if self
            .world
            .later
            .first_key_value()
            .is_some_and(|((at, _), _)| *at <= now)
        {
            turns.push(Turn::World);
        }
        if self.restart_at.is_some_and(|at| at <= now) {
            turns.push(Turn::Restart);
        }
        turns
    }

    fn next_at(&self) -> Option<Instant> {
        let agent = self.agent.as_ref();
        let inbox = agent.and_then(|_| self.world.inbox.next_at());
        let timer = agent.and_then(|agent| Some(agent.poll_timeout()?.0));
        let later = self.world.later.keys().next().map(|(at, _)| *at);
        [inbox, timer, later, self.restart_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn take(&mut self, turn: Turn) -> Verdict {
        self.not_too_crowded()?;
        match turn {
            Turn::World => {
                self.world.act();
                self.broken()
            }
            Turn::Restart => self.restart(),
            Turn::Timer => self.deliver(None),
            Turn::Input(source) => match self.world.inbox.pop(source) {
                Some(input) => self.deliver(Some(input)),
                None => Ok(()),
            },
        }
    }

    /// At one instant only so much happens.
    fn not_too_crowded(&mut self) -> Verdict {
        let (at, count) = self.crowded;
        let count = if at == self.world.at { count + 1 } else { 0 };
        self.crowded = (self.world.at, count);
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
        self.checker.input(&self.world, agent, input.as_ref());
        let text = brief::input(agent, input.as_ref());
        self.world.trace.line(now, &text);
        self.tape.record(now, input.clone());
        self.checker.leaving |= input == Some(Input::Shutdown(ShutdownMode::KeepTasks));
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
        verdict?;
        self.trouble();
        Ok(())
    }

    fn drain(&mut self, agent: &mut Agent) -> Verdict {
        while let Some(effect) = agent.poll_effect() {
            self.tape.effect(&effect);
            let now = self.world.now();
            if let Some(text) = brief::effect(&effect) {
                self.world.trace.line(now, &text);
            }
            self.checker.effect(&self.world, agent, &effect)?;
            self.stopped |= effect == Effect::Stopped;
            self.world.carry_out(effect);
        }
        self.broken()
    }

    fn broken(&mut self) -> Verdict {
        self.world.broken.take().map_or(Ok(()), Err)
    }

    fn check(&mut self, agent: &Agent) -> Verdict {
        self.checker.state(&self.world, agent)?;
        if self.steps.is_multiple_of(8) {
            self.a_spurious_timeout_changes_nothing(agent)?;
        }
        Ok(())
    }

    /// Calling the agent back when nothing is due changes nothing.
    fn a_spurious_timeout_changes_nothing(&self, agent: &Agent) -> Verdict {
        let now = self.world.now();
        if agent.poll_timeout().is_some_and(|(at, _)| at <= now.at) {
            return Ok(());
        }
        let mut other = agent.clone();
        other.handle_timeout(now);
        let quiet = other.poll_effect().is_none() && other == *agent;
        ensure(quiet, "a_spurious_timeout_changes_nothing", || {
            "the state differs".to_owned()
        })
    }

    fn trouble(&mut self) {
        let planned = self.crash_at.is_some_and(|at| self.steps >= at);
        if planned {
            self.crash_at = None;
        }
        let reboots = self.world.strikes(Fault::Reboot, "machine");
        if planned || reboots || self.world.strikes(Fault::Crash, "agent") {
            let grid = [Span::ZERO, Span::millis(1), Span::secs(1), Span::secs(60)];
            let at = self.world.choices.below(grid.len(), "restart", "");
            let pause = grid.get(at).copied().unwrap_or(Span::ZERO);
            self.crash();
            self.restart_at = Some(self.world.at + pause);
            if reboots {
                self.reboot();
            }
        } else if self.world.strikes(Fault::WallJump, "clock") {
            let grid = [
                Span::secs(-3600),
                Span::secs(3600),
                Span::secs(-1),
                Span::secs(20_000),
            ];
            let at = self.world.choices.below(grid.len(), "wall", "");
            self.world
                .jump_wall(grid.get(at).copied().unwrap_or(Span::ZERO));
        }
    }
}

fn driver_info(healthy: bool) -> DriverInfo {
    DriverInfo {
        detected: true,
        healthy,
        description: String::new(),
    }
}

/// The node of simulated worlds: two names of the mock driver, and few ports.
pub fn node() -> Node {
    let drivers = ["mock_driver", "mock"].map(|name| (name.to_owned(), driver_info(true)));
    Node {
        name: "sim".to_owned(),
        datacenter: "dc1".to_owned(),
        region: "global".to_owned(),
        pool: "default".to_owned(),
        drivers: drivers.into_iter().collect(),
        dynamic_ports: (20_000, 20_009),
        address: "127.0.0.1".to_owned(),
        ..Node::default()
    }
}
