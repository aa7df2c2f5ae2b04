//! An engine that all tasks of one driver share. It owns their containers, outlives the agent, and can die beneath
//! them: then nothing can be started, ended or seen until it is back, while the containers live on or end at once.
//!
//! Modelled is what the agent's own driver of containers passes on. Whoever looks for a container waits for its engine,
//! whatever else is asked fails meanwhile, and what ended is told when it is back. What the engine says of itself is
//! believed, so an engine that lies or forgets is heard as it speaks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::config::Config;
use drover_core::effect::DriverEffect;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverFingerprint, DriverHealth, DriverInput};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::DriverInfo;
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::driver::by_signal;
use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::trace::Column;
use crate::world::World;

/// The driver whose tasks are the engine's.
pub const DRIVER: &str = "docker";

/// What an engine that is away says.
const SILENT: &str = "the engine does not answer";

/// An engine, and what it owns.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// Whose container each is, by the name of its launch.
    containers: BTreeMap<LaunchId, Arc<str>>,
    away: bool,
    /// Whether the agent that lives has met it.
    was_met: bool,
    /// Who looks for a container while it is away.
    waiting: Vec<(Op, LaunchId)>,
    /// What ended while it was away, and is to be told.
    untold: BTreeMap<LaunchId, ExitResult>,
    /// What it told the agent that lives.
    told: BTreeMap<LaunchId, ExitResult>,
}

/// These settings, of a node that has an engine.
pub fn with_engine(mut config: Config) -> Config {
    let info = DriverInfo {
        detected: true,
        healthy: true,
        description: String::new(),
    };
    config.node.drivers.insert(DRIVER.to_owned(), info);
    config.drivers.push(DRIVER.into());
    config
}

/// What a container does: its arguments are options of the mock driver, such as `run_for=5s`.
fn options(config: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let args = match config.get("args") {
        Some(Value::List(args)) => args.as_slice(),
        _ => &[],
    };
    let words = args.iter().filter_map(Value::as_str);
    let pairs = words.filter_map(|word| word.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect()
}

impl Engine {
    /// Whether it is dead.
    pub fn is_away(&self) -> bool {
        self.away
    }

    /// Whether a launch is a container of it.
    pub(crate) fn owns(&self, launch: LaunchId) -> bool {
        self.containers.contains_key(&launch)
    }

    /// Whether a launch is a container of it, of which nothing can be known at present.
    pub(crate) fn hides(&self, launch: LaunchId) -> bool {
        self.away && self.owns(launch)
    }

    /// Why a start fails while it is away.
    pub(crate) fn refusal(&self, launch: LaunchId) -> Option<Failure> {
        self.hides(launch).then(|| Failure::recoverable(SILENT))
    }

    /// The options of a launch's task.
    pub(crate) fn options<'a>(
        &self,
        launch: LaunchId,
        config: &'a BTreeMap<String, Value>,
    ) -> Cow<'a, BTreeMap<String, Value>> {
        match self.owns(launch) {
            true => Cow::Owned(options(config)),
            false => Cow::Borrowed(config),
        }
    }

    /// What its driver says of itself.
    pub(crate) fn fingerprint(&mut self) -> DriverFingerprint {
        let is_missed = self.was_met || !self.waiting.is_empty();
        self.was_met |= !self.away;
        let (health, description) = match (self.away, is_missed) {
            (false, _) => (DriverHealth::Healthy, ""),
            (true, true) => (DriverHealth::Unhealthy, SILENT),
            (true, false) => (DriverHealth::Undetected, SILENT),
        };
        DriverFingerprint {
            health,
            description: description.to_owned(),
            attributes: BTreeMap::new(),
        }
    }

    /// Nobody waits for it or heard of it any more.
    pub(crate) fn agent_died(&mut self) {
        self.waiting.clear();
        self.untold.clear();
        self.told.clear();
        self.was_met = false;
    }

    /// It begins with its machine.
    pub(crate) fn rebooted(&mut self) {
        self.away = false;
    }
}

impl World {
    /// What is asked of an engine: of a start it gets a container. Returns whether it is away, so that this fails; who
    /// starts or looks for something is seen to elsewhere.
    pub(crate) fn engine_refuses(&mut self, key: &TaskKey, effect: &DriverEffect) -> bool {
        let (op, launch) = (effect.op(), effect.launch());
        if matches!(effect, DriverEffect::Start(_)) {
            let name = Arc::clone(
                &self
                    .processes
                    .record(&mut self.scene.names, key, launch)
                    .name,
            );
            self.scene.slow.0.insert(Arc::clone(&name));
            self.engine.containers.insert(launch, name);
        }
        let Some(failure) = self.engine.refusal(launch) else {
            return false;
        };
        let (output, timeout) = (String::new(), self.scene.timeouts.signal);
        let life = self.scene.life;
        let input = match effect {
            DriverEffect::Start(_) | DriverEffect::Recover(_) => return false,
            DriverEffect::Stop(_) => {
                let result = Err(failure);
                DriverInput::Stopped { op, launch, result }
            }
            DriverEffect::Signal(_) => {
                let result = Err(failure);
                DriverInput::Signaled { op, launch, result }
            }
            DriverEffect::Health(_) | DriverEffect::Exec(_) => DriverInput::Executed {
                op,
                launch,
                result: Err(failure),
                output,
            },
            DriverEffect::OpenSession(_) => {
                let result = Err(failure);
                DriverInput::SessionOpened { op, launch, result }
            }
            DriverEffect::Destroy(_) => {
                let result = Err(failure);
                DriverInput::Destroyed { op, launch, result }
            }
        };
        self.answer_driver(life, op, launch, timeout, input);
        true
    }

    /// Who looks for a container of an engine that is away waits for it. Returns whether that is so.
    pub(crate) fn waits_for_engine(&mut self, life: u64, op: Op, launch: LaunchId) -> bool {
        let waits = self.engine.hides(launch);
        if waits && life == self.scene.life {
            self.engine.waiting.push((op, launch));
        }
        waits
    }

    /// The engine dies. Its containers live on, or all of them end with it.
    pub fn engine_dies(&mut self, containers_live_on: bool) {
        if self.engine.away {
            return;
        }
        self.engine.away = true;
        self.scene
            .note(|| (Column::named("engine"), "the engine is dead".to_owned()));
        self.machine
            .report_again(&mut self.scene, &mut self.engine, DRIVER);
        if containers_live_on {
            return;
        }
        let own = self
            .processes
            .living
            .iter()
            .filter(|it| self.engine.owns(**it));
        for launch in own.copied().collect::<Vec<_>>() {
            self.end(launch, by_signal(9));
        }
    }

    /// All that the engine answers comes late, for so long from now.
    pub fn engine_is_slow_for(&mut self, span: Span) {
        self.scene.slow.1 = Span(self.scene.elapsed.0 + span.0);
    }

    /// The engine is there again: whoever waited for it hears, and what ended meanwhile is told.
    pub fn engine_returns(&mut self) {
        if !self.engine.away {
            return;
        }
        self.engine.away = false;
        self.scene
            .note(|| (Column::named("engine"), "the engine is back".to_owned()));
        self.machine
            .report_again(&mut self.scene, &mut self.engine, DRIVER);
        for (op, launch) in core::mem::take(&mut self.engine.waiting) {
            let name = self.scene.names.known_launch(launch);
            let delay = self.scene.latency(&name, self.scene.timeouts.recover);
            self.scene
                .after(delay, &name, Later::Recover { op, launch });
        }
        let heard: Vec<_> = self.engine.told.clone().into_iter().collect();
        for (launch, result) in core::mem::take(&mut self.engine.untold) {
            self.tell_end(launch, result);
        }
        for (launch, result) in heard {
            let name = self.scene.names.known_launch(launch);
            if self.scene.fires(Fault::EngineRepeats, &name) {
                self.tell_end(launch, result);
            }
        }
    }

    /// The agent is told of the end of a container, as soon as there is an engine that can tell.
    pub(crate) fn tell_end(&mut self, launch: LaunchId, result: ExitResult) {
        if self.engine.hides(launch) {
            self.engine.untold.insert(launch, result);
            return;
        }
        let Some(process) = self.processes.get(launch) else {
            return;
        };
        let (name, key) = (Arc::clone(&process.name), process.key.clone());
        self.engine.told.insert(launch, result.clone());
        let at = self.scene.at + self.scene.latency(&name, Span::secs(5));
        let input = Input::Driver(key, DriverInput::Exited { launch, result });
        if self.scene.fires(Fault::DoubledExit, &name) {
            self.scene
                .deliver(Source::Exit(launch), at, &name, input.clone());
        }
        self.scene.deliver(Source::Exit(launch), at, &name, input);
    }

    /// What the engine will do wrong with a container that runs from now.
    pub(crate) fn engine_may_err(&mut self, launch: LaunchId, name: &Arc<str>) {
        if !self.engine.owns(launch) {
            return;
        }
        let grid = [Span::ZERO, Span::millis(1), Span::secs(1), Span::secs(20)];
        if self.scene.fires(Fault::EngineLies, name) {
            let delay = self
                .scene
                .choices
                .one_of(&grid, Point::EngineErrsAfter, name);
            let codes = [Some(0), Some(1), None];
            let code = self.scene.choices.one_of(&codes, Point::ClaimedEnd, name);
            let result = match code.flatten() {
                Some(code) => ExitResult::code(code),
                None => ExitResult::unknown("the engine says so"),
            };
            let later = Later::FalseEnd { launch, result };
            self.scene.after(delay.unwrap_or(Span::ZERO), name, later);
        }
        if self.scene.fires(Fault::EngineForgets, name) {
            let delay = self
                .scene
                .choices
                .one_of(&grid, Point::EngineErrsAfter, name);
            let later = Later::ContainerGone { launch };
            self.scene.after(delay.unwrap_or(Span::ZERO), name, later);
        }
    }

    /// The engine says that a container ended which runs.
    pub(crate) fn false_end(&mut self, launch: LaunchId, result: ExitResult) {
        if self.engine.away {
            return;
        }
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        if !process.alive || !process.watched {
            return;
        }
        process.unknowable |= result.code.is_none();
        process.watched = false;
        process.told = Some(result.clone());
        self.tell_end(launch, result);
    }

    /// The engine says now that a container which runs ended with `code`.
    pub fn engine_says_ended(&mut self, launch: LaunchId, code: i32) {
        self.false_end(launch, ExitResult::code(code));
    }

    /// Somebody removes a container, and the engine forgets how it ended.
    pub fn container_gone(&mut self, launch: LaunchId) {
        if self.engine.away || !self.engine.owns(launch) {
            return;
        }
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        if !process.alive {
            return;
        }
        (process.alive, process.exit, process.unknowable) = (false, None, true);
        let (name, watched) = (Arc::clone(&process.name), process.watched);
        self.processes.living.remove(&launch);
        self.scene
            .note(|| (Column::named(&name), "its container is removed".to_owned()));
        if watched {
            let result = ExitResult::unknown("somebody removed its container");
            self.tell_end(launch, result);
        }
    }

    /// Whether the engine names a container as running that is not. Then its end is told a moment later.
    pub(crate) fn engine_claims(&mut self, launch: LaunchId) -> bool {
        let owned = self.engine.owns(launch);
        let process = self.processes.get(launch);
        let Some(process) = process.filter(|it| owned && it.starts > 0 && !it.alive) else {
            return false;
        };
        let (name, exit) = (Arc::clone(&process.name), process.exit.clone());
        if process.rebooted || !self.scene.fires(Fault::EngineClaims, &name) {
            return false;
        }
        let result = exit.unwrap_or_else(|| ExitResult::unknown("its container is not there"));
        self.tell_end(launch, result);
        true
    }
}
