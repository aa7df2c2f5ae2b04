//! The loop that owns the core: takes one input at a time, and turns each effect into work.
//!
//! It decides nothing. Work that blocks is done elsewhere, and its end is an input.
//!
//! There are two queues: an unbounded one of answers, and a bounded one of requests by people and
//! programs ([`crate::agent_handle`]). tokio's channels keep the order of each sender, and the core is
//! promised no other order. After 64 answers the loop takes a request, so that neither queue
//! starves. (One queue for each source exists in the simulator only.)
//!
//! **Known limits.** Questions of the API are answered on this thread, so a listing of very many
//! allocations delays inputs. One stuck disk stops new starts and stops for the whole node, because
//! they wait for the store. A commit has no deadline: one that is never answered, not even with an
//! error, keeps the agent from ending in order; a second signal ends it then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::{Agent, Input};
use drover_core::cluster::{CallError, CallErrorKind};
use drover_core::config::Config;
use drover_core::effect::{Effect, NodeEffect, Reply, ServerEffect, StoreEffect};
use drover_core::ids::{RequestId, TaskKey};
use drover_core::input::{NodeInput, ServerInput, StoreInput};
use drover_core::op::Failure;
use drover_core::store::Saved;
use drover_core::time::Now;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::agent_handle::{Message, RequestInbox, Work};
use crate::checks::Checks;
use crate::clock;
use crate::cluster::CallServers;
use crate::device::DeviceStream;
use crate::driver::{Driver, DriverStream, Inbox};
use crate::fingerprint::Prober;
use crate::hooks::Hooks;
use crate::journal;
use crate::memory::GivesBack;
use crate::plugins::{DevicePlugins, Plugins};
use crate::recorder::Recorder;
use crate::store::Store;
use crate::volumes::VolumeDirs;
use crate::wall_clock::WallClock;
use crate::zones;

/// The longest sleep. The boot clock goes on while the machine sleeps and timers do not, so the
/// loop looks at it again now and then, besides when it is told ([`crate::wall_clock`]).
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// How many inputs are taken between two looks at the agent handle, so that a flood of one does not
/// starve the other.
const AT_ONCE: usize = 64;

/// What the loop needs of the world.
pub struct Dependencies {
    /// What the core is told once.
    pub config: Config,
    /// What it remembers.
    pub saved: Saved,
    /// Where it remembers.
    pub store: Store,
    /// Who starts tasks.
    pub drivers: Vec<Arc<dyn Driver>>,
    /// Who finds out what the machine is.
    pub prober: Prober,
    /// Where volumes are made.
    pub volumes: VolumeDirs,
    /// What runs beside the agent and serves it.
    pub plugins: Plugins,
    /// Who has devices.
    pub devices: DevicePlugins,
    /// Who does the work of hooks.
    pub hooks: Hooks,
    /// Who reaches the servers of the cluster, if there is one.
    pub servers: Option<Box<dyn CallServers>>,
    /// Where answers arrive.
    pub answers: mpsc::UnboundedReceiver<Input>,
    /// The way of answers, for the store.
    pub inbox: Inbox,
    /// Where people's requests arrive.
    pub request_inbox: RequestInbox,
    /// Who notes what the core is told.
    pub recorder: Recorder,
}

/// The loop.
pub struct Node {
    agent: Agent,
    store: Store,
    drivers: BTreeMap<String, Arc<dyn Driver>>,
    prober: Prober,
    volumes: VolumeDirs,
    plugins: Plugins,
    devices: DevicePlugins,
    hooks: Hooks,
    servers: Option<Box<dyn CallServers>>,
    checks: Checks,
    answers: mpsc::UnboundedReceiver<Input>,
    inbox: Inbox,
    request_inbox: RequestInbox,
    recorder: Recorder,
    requests: BTreeMap<RequestId, oneshot::Sender<Reply>>,
    last_request: u64,
    memory: GivesBack,
}

enum Next {
    Answer(Input),
    Message(Message),
    Timeout,
    /// There was nothing to do for a while.
    Rest,
}

impl Node {
    /// Restores the core. What ran is looked for as soon as [`Node::run`] is polled.
    pub fn new(mut dependencies: Dependencies) -> Node {
        let node = &mut dependencies.config.node;
        for driver in &dependencies.drivers {
            let info = driver.fingerprint();
            if info.detected {
                node.attributes
                    .insert(format!("driver.{}", driver.name()), "1".to_owned());
            }
            node.drivers.insert(driver.name().to_owned(), info);
        }
        let drivers = dependencies.drivers.iter();
        dependencies.config.drivers = drivers.map(|driver| driver.name().into()).collect();
        dependencies.config.device_plugins = dependencies.devices.names().map(Into::into).collect();
        let now = clock::now();
        dependencies
            .recorder
            .begin(&dependencies.config, &dependencies.saved, now);
        let agent = Agent::restore(dependencies.config, dependencies.saved, now);
        Node {
            agent,
            store: dependencies.store,
            drivers: dependencies
                .drivers
                .into_iter()
                .map(|driver| (driver.name().to_owned(), driver))
                .collect(),
            prober: dependencies.prober,
            volumes: dependencies.volumes,
            plugins: dependencies.plugins,
            devices: dependencies.devices,
            hooks: dependencies.hooks,
            servers: dependencies.servers,
            checks: Checks::new(dependencies.inbox.clone()),
            answers: dependencies.answers,
            inbox: dependencies.inbox,
            request_inbox: dependencies.request_inbox,
            recorder: dependencies.recorder,
            requests: BTreeMap::new(),
            last_request: 0,
            memory: GivesBack::new(),
        }
    }

    /// Runs until the core says that it is done.
    pub async fn run(mut self) {
        let wall_clock = WallClock::new();
        let mut stopped = self.drain();
        while !stopped {
            let more = !self.answers.is_empty();
            self.recorder.hand_over(&self.agent, more);
            let next = self.next(&wall_clock).await;
            stopped = self.take(next);
            for _ in 0..AT_ONCE {
                let Ok(input) = self.answers.try_recv() else {
                    break;
                };
                stopped |= self.take(Next::Answer(input));
            }
            self.request_inbox.waits(self.answers.len());
        }
    }

    async fn next(&mut self, wall_clock: &WallClock) -> Next {
        let (timeout, rest) = (self.sleep_until(), self.memory.due_at_rest());
        let (until, then) = match rest {
            Some(rest) if rest < timeout => (rest, Next::Rest),
            _ => (timeout, Next::Timeout),
        };
        tokio::select! {
            Some(input) = self.answers.recv() => Next::Answer(input),
            Some(message) = self.request_inbox.messages.recv() => Next::Message(message),
            () = wall_clock.set() => Next::Timeout,
            () = sleep_until(until) => then,
        }
    }

    fn sleep_until(&self) -> Instant {
        let wait = match self.agent.poll_timeout() {
            None => LONGEST_SLEEP,
            Some((at, _)) => {
                let left = at - clock::now().at;
                Duration::from_nanos(u64::try_from(left.0).unwrap_or(0)).min(LONGEST_SLEEP)
            }
        };
        Instant::now() + wait
    }

    /// Hands one thing to the core. Returns whether the core is done.
    fn take(&mut self, next: Next) -> bool {
        let began = Instant::now();
        let work = match &next {
            Next::Message(Message::Ask(_)) => Work::Question,
            Next::Message(Message::Request(..) | Message::Shutdown(_))
            | Next::Answer(_)
            | Next::Timeout => Work::Step,
            Next::Rest => {
                self.memory.work(began);
                return false;
            }
        };
        self.hand_in(next);
        let done = self.drain();
        self.memory.step(began);
        self.request_inbox.worked(work, began.elapsed());
        done
    }

    fn hand_in(&mut self, next: Next) {
        let now = clock::now();
        match next {
            Next::Answer(input) => self.handle(now, input),
            Next::Timeout => {
                self.recorder.step(now, None);
                self.agent.handle_timeout(now);
            }
            Next::Message(Message::Ask(question)) => question(self.agent.view()),
            Next::Message(Message::Request(what, answer)) => {
                let request = self.request(answer);
                self.handle(now, Input::Request(request, what));
            }
            Next::Message(Message::Shutdown(mode)) => self.handle(now, Input::Shutdown(mode)),
            Next::Rest => {}
        }
    }

    fn handle(&mut self, now: Now, input: Input) {
        self.recorder.step(now, Some(&input));
        self.agent.handle(now, input);
    }

    fn request(&mut self, answer: oneshot::Sender<Reply>) -> RequestId {
        self.last_request += 1;
        let request = RequestId(self.last_request);
        self.requests.insert(request, answer);
        request
    }

    fn drain(&mut self) -> bool {
        let mut stopped = false;
        while let Some(effect) = self.agent.poll_effect() {
            stopped |= matches!(effect, Effect::Stopped);
            self.recorder.effect(&effect);
            self.carry_out(effect);
        }
        stopped
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Driver(name, task, mut effect) => {
                // It was noted already, and what comes now is noted nowhere.
                self.hooks.complete(&task, &mut effect);
                match self.driver(&name) {
                    Some(driver) => driver.carry_out(task, effect),
                    None => self.no_driver(&name, &task, &effect),
                }
            }
            Effect::Forget(name, launch) => {
                if let Some(driver) = self.driver(&name) {
                    driver.forget(launch);
                }
            }
            Effect::Hook(effect) => {
                journal::hook(self.agent.view(), &effect);
                self.hooks.carry_out(effect);
            }
            Effect::Check(effect) => self.checks.carry_out(effect),
            Effect::Node(effect) => self.query_machine(&effect),
            Effect::Server(effect) => self.call_servers(effect),
            Effect::Store(StoreEffect::Commit(id, batch)) => {
                self.request_inbox.committed(self.agent.view(), &batch);
                let inbox = self.inbox.clone();
                self.store.commit(id, batch, move |id, result| {
                    inbox.deliver(Input::Store(match result {
                        Ok(()) => StoreInput::Saved(id),
                        Err(why) => {
                            tracing::error!(%why, "cannot save; it is tried again");
                            StoreInput::Failed(id, why)
                        }
                    }));
                });
            }
            Effect::Reply(request, reply) => {
                if let Some(answer) = self.requests.remove(&request) {
                    // Who asked may have gone away meanwhile.
                    let _ = answer.send(reply);
                }
            }
            Effect::Notify(notification) => {
                journal::log_notification(self.agent.view(), &notification);
                self.request_inbox.notify(notification);
            }
            Effect::Stopped => {}
        }
    }

    /// The driver of this name: one of this program, or a plugin.
    fn driver(&self, name: &str) -> Option<Arc<dyn Driver>> {
        let own = self.drivers.get(name).cloned();
        own.or_else(|| Some(Arc::new(self.plugins.driver(name)?)))
    }

    fn call_servers(&self, effect: ServerEffect) {
        if let Some(servers) = &self.servers {
            return servers.carry_out(effect, &self.inbox);
        }
        if let ServerEffect::Call { op, .. } = effect {
            let error = CallError {
                kind: CallErrorKind::NoServers,
                message: "this agent reaches no servers".to_owned(),
            };
            let result = Err(error);
            let answer = ServerInput::Answered { op, result };
            self.inbox.deliver(Input::Server(answer));
        }
    }

    /// Begins what is asked about the machine.
    fn query_machine(&self, effect: &NodeEffect) {
        let inbox = self.inbox.clone();
        match effect {
            NodeEffect::Probe { op, probe } => {
                let (op, probe, prober) = (*op, probe.to_string(), self.prober.clone());
                let plugins = self.plugins.clone();
                tokio::spawn(async move {
                    let result = match plugins.probe(&probe).await {
                        Some(found) => found,
                        None => prober.ask(&probe).await,
                    };
                    inbox.deliver(Input::Node(NodeInput::Probed { op, probe, result }));
                });
            }
            NodeEffect::LookUpTimeZone { op, zone, around } => {
                let (op, zone, around) = (*op, zone.to_string(), *around);
                // The system's database may be read.
                tokio::task::spawn_blocking(move || {
                    let result = zones::around(&zone, around).map_err(Failure::recoverable);
                    inbox.deliver(Input::Node(NodeInput::TimeZone { op, zone, result }));
                });
            }
            NodeEffect::LookUpImage { op, query } => {
                let (op, query) = (*op, query.clone());
                let driver = self.driver(&query.driver);
                tokio::spawn(async move {
                    let result = match driver {
                        Some(driver) => driver.look_up_image(query).await,
                        None => Err(Failure::fatal(format!(
                            "this agent has no driver {:?}",
                            query.driver
                        ))),
                    };
                    inbox.deliver(Input::Node(NodeInput::Image { op, result }));
                });
            }
            NodeEffect::Volume { op, volume, work } => {
                let (op, volume, work) = (*op, *volume, work.clone());
                let volumes = self.volumes.clone();
                tokio::spawn(async move {
                    let result = volumes.carry_out(volume, work).await;
                    let result = result.map_err(|error| Failure::recoverable(error.to_string()));
                    inbox.deliver(Input::Node(NodeInput::Volume { op, volume, result }));
                });
            }
            NodeEffect::MeasureDiskUsage { op } => self.hooks.measure_disk_usage(*op),
            NodeEffect::MeasureDirs { op, allocs } => {
                self.hooks.measure_dirs(*op, allocs.clone());
            }
            NodeEffect::WatchDriver { op, driver: name } => {
                let report = DriverStream::new(*op, name, inbox);
                match self.drivers.get(&**name) {
                    Some(driver) => driver.watch(report),
                    None => self.plugins.watch_driver(name, report),
                }
            }
            NodeEffect::WatchDevices { op, plugin: name } => {
                let report = DeviceStream::new(*op, name, inbox);
                match self.devices.get(name) {
                    Some(plugin) => plugin.watch(report),
                    None => report.disabled("this agent has no such plugin"),
                }
            }
        }
    }

    /// Answers for a driver that this program does not have, so that nobody waits for it.
    fn no_driver(&self, name: &str, task: &TaskKey, effect: &drover_core::effect::DriverEffect) {
        let failure = Failure::fatal(format!("this agent has no driver {name:?}"));
        let answer = effect.get().without_driver(failure);
        self.inbox.send(task, answer);
    }
}
