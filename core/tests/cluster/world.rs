//! A small world around one agent: a store, a driver, hooks that succeed, and the servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::checks::Checks;
use crate::elsewhere::Elsewhere;
use crate::identities::{Signing, Tokens};
use crate::servers::{Reaction, Servers};
use crate::templates::Templates;
use drover_core::agent::{Agent, Input};
use drover_core::cluster::{Answer, Call, CallError, Credentials};
use drover_core::config::{ClusterConfig, Config};
use drover_core::cx::Rng;
use drover_core::effect::{
    DriverEffect, Effect, HookEffect, NodeEffect, ServerEffect, StoreEffect, request,
};
use drover_core::ids::{AllocId, LaunchId, NodeId, TaskKey};
use drover_core::input::{
    DriverFingerprint, DriverHealth, DriverInput, DriverReport, Found, HookInput, NodeInput,
    ServerInput, StoreInput,
};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::Node;
use drover_core::op::Op;
use drover_core::store::{Key, Record, Saved};
use drover_core::time::{Instant, Now, Span, Timestamp};
use drover_core::work::HookWork;

/// The driver that the node has.
pub(crate) const DRIVER: &str = "test";

/// Something that happens at its time.
#[derive(Clone, Debug)]
enum Event {
    /// The agent hears of it, if it is the life that asked.
    Input(u32, Input),
    /// A call reaches the servers.
    Call(u32, Op, Credentials, Call),
    /// A request to sign identities reaches the servers.
    Sign(u32, Signing),
    /// Whoever renders asks the servers.
    Render(u32, Op),
    /// A process ends by itself.
    Exit(LaunchId, i32),
    /// The agent starts again.
    Start,
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) task: TaskKey,
    pub(crate) exit: Option<i32>,
}

/// The world.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) agent: Option<Agent>,
    pub(crate) servers: Servers,
    pub(crate) checks: Checks,
    pub(crate) processes: BTreeMap<LaunchId, Process>,
    /// What tasks prove who they are with.
    pub(crate) tokens: Tokens,
    /// What their templates show.
    pub(crate) templates: Templates,
    disk: BTreeMap<Key, Record>,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    life: u32,
    /// The stream of the driver's reports.
    driver: Option<Op>,
    healthy: bool,
    description: String,
    pub(crate) rng: Rng,
    /// Whether nothing fails any more.
    pub(crate) calm: bool,
    /// Whether no call reaches the servers.
    pub(crate) unreachable: bool,
    /// Whether no report reaches them.
    pub(crate) reports_lost: bool,
    /// Whether no call about services reaches them.
    pub(crate) services_lost: bool,
    /// How long the answers to reports take.
    pub(crate) slow_reports: Span,
    /// How long a process takes to end.
    pub(crate) slow_exit: Span,
    /// Whether servers have no service of a task any more when it is asked to end.
    pub(crate) orderly: bool,
    /// What other nodes have.
    pub(crate) elsewhere: Elsewhere,
}

/// One of `of`.
pub(crate) fn dice(rng: &mut Rng, of: u64) -> u64 {
    rng.next_u64() % of.max(1)
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut world = World {
            now: Instant(0) + Span::secs(1000),
            agent: None,
            servers: Servers::new(seed),
            checks: Checks::default(),
            processes: BTreeMap::new(),
            tokens: Tokens::new(seed),
            templates: Templates::new(seed),
            disk: BTreeMap::new(),
            events: BTreeMap::new(),
            count: 0,
            life: 0,
            driver: None,
            healthy: true,
            description: String::new(),
            rng: Rng::new(seed ^ 0x5eed),
            calm: false,
            unreachable: false,
            reports_lost: false,
            services_lost: false,
            slow_reports: Span::ZERO,
            slow_exit: Span::ZERO,
            orderly: false,
            elsewhere: Elsewhere::default(),
        };
        world.start();
        world
    }

    pub(crate) fn at(&self) -> Now {
        let wall = Timestamp(0) + (self.now - Instant(0));
        Now { at: self.now, wall }
    }

    fn start(&mut self) {
        let node = Node {
            id: NodeId(7),
            name: "n1".to_owned(),
            datacenter: "dc1".to_owned(),
            ..Node::default()
        };
        let mut config = Config::new(self.rng.next_u64(), node, "/alloc");
        config.drivers = vec![DRIVER.into()];
        config.cluster = Some(ClusterConfig {
            version: "2.0.5".into(),
            only_jobs_of_servers: false,
        });
        let records = self.disk.iter().map(|(k, v)| (k.clone(), v.clone()));
        let saved = Saved::from_records(records);
        self.life += 1;
        self.agent = Some(Agent::restore(config, saved, self.at()));
        self.checks.agent_started();
        self.tokens.agent_is_absent(self.now);
        self.drain();
    }

    /// The agent dies; what it asked for may go on, and its answers are nobody's.
    pub(crate) fn crash(&mut self, back: Span) {
        if self.agent.take().is_some() {
            self.driver = None;
            self.templates.agent_died();
            self.hasten_calls();
            self.checks.agent_died(self.now);
            self.later(back, Event::Start);
        }
    }

    /// What a dead agent had sent arrives now or never: its connection ends with it. Else it would come after what the
    /// next agent says.
    fn hasten_calls(&mut self) {
        let is_call = |event: &Event| matches!(event, Event::Call(..));
        let under_way = self.events.extract_if(.., |_, event| is_call(event));
        for event in under_way.map(|(_, event)| event).collect::<Vec<_>>() {
            if dice(&mut self.rng, 2) == 0 {
                self.later(Span::ZERO, event);
            }
        }
    }

    /// The driver works from now on, or does not.
    pub(crate) fn set_health(&mut self, healthy: bool) {
        self.healthy = healthy;
        if let Some(op) = self.driver {
            let input = self.report(op);
            self.input(Span::ZERO, input);
        }
    }

    /// The driver says something else of itself.
    pub(crate) fn describe_driver(&mut self, description: &str) {
        description.clone_into(&mut self.description);
        self.set_health(self.healthy);
    }

    fn report(&self, op: Op) -> Input {
        let health = match self.healthy {
            true => DriverHealth::Healthy,
            false => DriverHealth::Unhealthy,
        };
        let report = DriverReport::Fingerprint(DriverFingerprint {
            health,
            description: self.description.clone(),
            ..DriverFingerprint::default()
        });
        let driver = DRIVER.to_owned();
        Input::Node(NodeInput::Driver { op, driver, report })
    }

    fn later(&mut self, after: Span, event: Event) {
        self.count += 1;
        self.events.insert((self.now + after, self.count), event);
    }

    pub(crate) fn render_later(&mut self, after: Span, op: Op) {
        self.later(after, Event::Render(self.life, op));
    }

    pub(crate) fn sign_later(&mut self, after: Span, signing: Signing) {
        self.later(after, Event::Sign(self.life, signing));
    }

    pub(crate) fn input(&mut self, after: Span, input: Input) {
        self.later(after, Event::Input(self.life, input));
    }

    /// The processes that are alive.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|it| it.exit.is_none())
    }

    /// What runs of an allocation ends by itself.
    pub(crate) fn exit_of(&mut self, id: AllocId) {
        let of_it = |(_, it): &(&LaunchId, &Process)| it.task.alloc == id;
        let found = self.processes.iter().find(of_it).map(|(launch, _)| *launch);
        if let Some(launch) = found {
            let code = i32::try_from(dice(&mut self.rng, 2)).unwrap_or(0);
            self.exit(launch, code);
        }
    }

    /// A process ends by itself.
    pub(crate) fn exit(&mut self, launch: LaunchId, code: i32) {
        self.later(Span::ZERO, Event::Exit(launch, code));
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        let mut idle = (self.now, 0);
        loop {
            let event = self.events.keys().next().map(|(at, _)| *at);
            let due = self.agent.as_ref().and_then(Agent::poll_timeout);
            let timeout = due.as_ref().map(|(at, _)| *at);
            let servers = self.servers.deadline();
            let all = [event, timeout, servers].into_iter().flatten();
            let Some(next) = all.min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            idle = (self.now, if idle.0 == self.now { idle.1 + 1 } else { 0 });
            assert!(idle.1 < 100_000, "time stands still: {due:?}");
            if event == Some(next) {
                self.next_event();
            } else if servers == Some(next) {
                let reactions = self.servers.time_passes(self.now);
                reactions.into_iter().for_each(|it| self.react(it));
            } else if let Some(agent) = &mut self.agent {
                let wall = Timestamp(0) + (self.now - Instant(0));
                agent.handle_timeout(Now { at: self.now, wall });
            }
            self.drain();
        }
        self.now = end;
    }

    fn next_event(&mut self) {
        let Some((_, event)) = self.events.pop_first() else {
            return;
        };
        match event {
            Event::Input(life, input) if life == self.life => {
                let now = self.at();
                if let Some(agent) = &mut self.agent {
                    self.checks.input(now.at, agent, &input);
                    agent.handle(now, input);
                }
            }
            Event::Input(..) => {}
            Event::Call(life, op, credentials, call) => {
                let calm = self.calm;
                let whose = (life, op);
                let reactions = self.servers.call(self.now, calm, whose, &credentials, call);
                reactions.into_iter().for_each(|it| self.react(it));
            }
            Event::Sign(life, signing) if life == self.life => self.sign(&signing),
            Event::Render(life, op) if life == self.life => self.render(op),
            Event::Sign(..) | Event::Render(..) => {}
            Event::Exit(launch, code) => {
                let Some(process) = self.processes.get_mut(&launch) else {
                    return;
                };
                if process.exit.is_none() {
                    process.exit = Some(code);
                    let (task, result) = (process.task.clone(), ExitResult::code(code));
                    let input = DriverInput::Exited { launch, result };
                    self.input(Span::ZERO, Input::Driver(task, input));
                }
            }
            Event::Start => self.start(),
        }
    }

    fn react(&mut self, reaction: Reaction) {
        let Reaction {
            life,
            after,
            op,
            result,
        } = reaction;
        let is_report = matches!(result, Ok(Answer::ReportsKept));
        let more = if is_report {
            self.slow_reports
        } else {
            Span::ZERO
        };
        let input = Input::Server(ServerInput::Answered { op, result });
        self.later(Span(after.0 + more.0), Event::Input(life, input));
    }

    fn drain(&mut self) {
        let mut effects = Vec::new();
        if let Some(agent) = &mut self.agent {
            effects.extend(core::iter::from_fn(|| agent.poll_effect()));
        }
        for effect in effects {
            self.carry_out(effect);
        }
        if let Some(agent) = &self.agent {
            self.checks.step(self.now, agent);
        }
        self.check_tokens();
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                for (key, record) in batch.iter() {
                    match record {
                        Some(record) => drop(self.disk.insert(key.clone(), record.clone())),
                        None => drop(self.disk.remove(key)),
                    }
                }
                let after = Span::millis(i64::try_from(dice(&mut self.rng, 3)).unwrap_or(0));
                self.input(after, Input::Store(StoreInput::Saved(id)));
            }
            Effect::Server(ServerEffect::Servers(servers)) => {
                self.checks.servers_handed_on(servers);
            }
            Effect::Server(ServerEffect::Cancel { op }) => self.checks.cancelled(op),
            Effect::Server(ServerEffect::Call {
                op,
                credentials,
                call,
            }) => self.call(op, credentials, call),
            Effect::Node(NodeEffect::WatchDriver { op, .. }) => {
                self.driver = Some(op);
                let report = self.report(op);
                self.input(Span::millis(5), report);
            }
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task: Some(task),
                work: HookWork::IssueIdentities(work),
            }) => self.ask_to_sign(op, TaskKey { alloc, task }, work),
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task: Some(task),
                work: HookWork::RenderTemplates(work),
            }) => self.begin_rendering(op, TaskKey { alloc, task }, &work),
            Effect::Hook(HookEffect::Cancel { op }) => {
                if !self.end_rendering(op) {
                    self.cancel_hook(op);
                }
            }
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => {
                let result = self.elsewhere.answer(work);
                let input = HookInput {
                    op,
                    alloc,
                    task,
                    result,
                };
                self.input(Span::millis(1), Input::Hook(input));
            }
            Effect::Driver(_, task, effect) => self.drive(task, effect),
            Effect::Forget(_, launch) => drop(self.processes.remove(&launch)),
            Effect::Check(_)
            | Effect::Node(_)
            | Effect::Reply(..)
            | Effect::Notify(_)
            | Effect::Stopped => {}
        }
    }

    fn drive(&mut self, task: TaskKey, effect: DriverEffect) {
        let input = match effect {
            DriverEffect::Start(request::Start { op, launch, .. }) => {
                let sent = self.servers.sent.contains(&task.alloc);
                let view = self.agent.as_ref().map(Agent::view);
                let alloc = view.and_then(|view| view.alloc(task.alloc));
                if let Some(alloc) = alloc {
                    let others = self.processes.values().filter(|it| it.exit.is_none());
                    self.checks.started(alloc.record(), sent, others);
                    if let Some(runner) = alloc.task(&task.task) {
                        let wrong = self.tokens.started(self.now, runner);
                        self.checks.wrong.extend(wrong);
                    }
                }
                let process = Process {
                    task: task.clone(),
                    exit: None,
                };
                self.templates.looks(&task, launch);
                self.processes.insert(launch, process);
                let network = None;
                DriverInput::Started {
                    op,
                    launch,
                    network,
                }
            }
            DriverEffect::Recover(request::Recover { op, launch, .. }) => {
                let found = match self.processes.get(&launch).map(|it| it.exit) {
                    None => Found::NeverStarted,
                    Some(None) => Found::Running,
                    Some(Some(code)) => Found::Exited(ExitResult::code(code)),
                };
                DriverInput::Recovered {
                    op,
                    launch,
                    found,
                    network: None,
                }
            }
            DriverEffect::Stop(request::Stop { op, launch, .. }) => {
                if self.orderly {
                    let services = self.servers.services.values();
                    self.checks.asked_to_end(&task, services);
                }
                let mut after = self.slow_exit;
                if !self.calm {
                    after = [0, 300, 3000].map(Span::millis)[self.pick(3)];
                }
                self.later(after, Event::Exit(launch, 0));
                let result = Ok(());
                DriverInput::Stopped { op, launch, result }
            }
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                if let Some(process) = self.processes.get_mut(&launch) {
                    process.exit.get_or_insert(9);
                }
                let result = Ok(None);
                let input = DriverInput::Destroyed { op, launch, result };
                return self.input(Span::millis(1), Input::Driver(task, input));
            }
            DriverEffect::Signal(request::Signal { op, launch, .. }) => {
                self.templates.looks(&task, launch);
                self.templates.signals += 1;
                let result = Ok(());
                DriverInput::Signaled { op, launch, result }
            }
            DriverEffect::Exec(_) | DriverEffect::Health(_) | DriverEffect::OpenSession(_) => {
                return;
            }
        };
        self.input(Span::millis(1), Input::Driver(task, input));
    }

    /// The call is on its way, or is lost.
    fn call(&mut self, op: Op, credentials: Credentials, call: Call) {
        let calm = self.calm;
        self.checks.call(self.now, calm, op, &call);
        let lost = self.unreachable
            || self.reports_lost && matches!(call, Call::ReportAllocs(_))
            || self.services_lost
                && matches!(call, Call::RegisterServices(_) | Call::RemoveServices(_))
            || !self.calm && dice(&mut self.rng, 100) < self.servers.trouble.lost;
        if lost {
            // Half of them are never heard of again.
            if dice(&mut self.rng, 2) == 0 {
                let result = Err(CallError::too_late());
                let input = Input::Server(ServerInput::Answered { op, result });
                self.input(Span::millis(3), input);
            }
            return;
        }
        let after = match self.calm {
            true => Span::millis(1),
            false => [0, 1, 300, 2000].map(Span::millis)[self.pick(4)],
        };
        self.later(after, Event::Call(self.life, op, credentials, call));
    }

    fn pick(&mut self, of: u64) -> usize {
        usize::try_from(dice(&mut self.rng, of)).unwrap_or(0)
    }

    /// Servers of which everybody knows; for tests of one story.
    pub(crate) fn quiet() -> World {
        let mut world = World::new(1);
        world.calm = true;
        world
    }

    pub(crate) fn names() -> Vec<Arc<str>> {
        ["s1:4647", "s2:4647", "s3:4647"].map(Arc::from).into()
    }
}
