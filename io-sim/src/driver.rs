//! The mock driver: obeys its tasks' configuration, and misbehaves where chance says so.

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::driver::config::MockConfig;
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::{DriverNetwork, ExitResult};
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::engine;
use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::point::Point;
use crate::sessions::Sessions;
use crate::trace::Column;
use crate::world::World;

/// Ended by this signal.
pub(crate) fn by_signal(signal: i32) -> ExitResult {
    ExitResult {
        code: Some(128 + signal),
        signal,
        ..ExitResult::default()
    }
}

impl World {
    pub(crate) fn drive(&mut self, driver: &str, key: TaskKey, effect: DriverEffect) {
        if driver == engine::DRIVER && self.engine_refuses(&key, &effect) {
            return;
        }
        match effect {
            DriverEffect::Start(request::Start { op, launch, config }) => {
                self.begin_start(key, op, launch, &config);
            }
            DriverEffect::Recover(request::Recover { op, launch, .. }) => {
                let process = self.processes.record(&mut self.scene.names, &key, launch);
                let (name, forgotten) = (Arc::clone(&process.name), process.forgotten);
                self.processes.latest.insert(key, launch);
                if forgotten {
                    self.scene
                        .violated("forgotten_launch_is_not_recovered", name.to_string());
                }
                // Who asks an engine asks it again and again.
                if driver == engine::DRIVER || !self.scene.fires(Fault::HangRecover, &name) {
                    let delay = self.scene.latency(&name, self.scene.timeouts.recover);
                    self.scene
                        .after(delay, &name, Later::Recover { op, launch });
                }
            }
            DriverEffect::Stop(request::Stop { op, launch, .. }) => {
                self.begin_stop(&key, op, launch)
            }
            DriverEffect::Signal(request::Signal { op, launch, .. }) => {
                self.signal(&key, op, launch)
            }
            DriverEffect::Health(request::Health { op, launch }) => {
                let processes = &self.processes;
                let scene = &mut self.scene;
                self.services
                    .look_at_health(scene, processes, &key, op, launch);
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output: true,
            }) => {
                let processes = &self.processes;
                let (scene, timeout) = (&mut self.scene, program.timeout);
                self.services
                    .run_program(scene, processes, &key, op, launch, timeout);
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output: false,
            }) => self.run_script(&key, op, launch, program.timeout),
            DriverEffect::OpenSession(asked) => {
                Sessions::begin(&mut self.scene, &self.processes, &key, &asked);
            }
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                self.begin_destroy(&key, op, launch)
            }
        }
    }

    pub(crate) fn answer_driver(
        &mut self,
        life: u64,
        op: Op,
        launch: LaunchId,
        timeout: Span,
        input: DriverInput,
    ) {
        let Some(process) = self.processes.get(launch) else {
            return;
        };
        let input = Input::Driver(process.key.clone(), input);
        self.scene.answer(life, op, &process.name, timeout, input);
    }

    fn begin_start(&mut self, key: TaskKey, op: Op, launch: LaunchId, config: &TaskConfig) {
        let (life, timeout) = (self.scene.life, self.scene.timeouts.start);
        let process = self.processes.record(&mut self.scene.names, &key, launch);
        process.claims += 1;
        let name = Arc::clone(&process.name);
        let (claims, tombstone) = (process.claims, process.tombstone);
        let (alloc, task) = (key.alloc, key.task.clone());
        self.processes.latest.insert(key, launch);
        if claims > 1 || tombstone {
            if claims > 1 {
                self.scene
                    .violated("launch_id_is_started_once", name.to_string());
            }
            let failure = Failure::fatal("this launch id was used before");
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        if let Some(failure) = self.refusal_of_start(alloc, launch, config) {
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        let options = self.engine.options(launch, &config.config);
        let delay = match MockConfig::decode(&options) {
            Ok(mock) => {
                let mock =
                    (self.task_faults).of_start(self.scene.elapsed, &config.group, &task, mock);
                let mock = Arc::new(self.registry.fetch(launch, &config.config, mock));
                let delay = mock.start_block_for;
                if let Some(process) = self.processes.get_mut(launch) {
                    process.config = mock;
                }
                delay
            }
            Err(problems) => {
                let failure = Failure::fatal(format!("{problems:?}"));
                let input = DriverInput::StartFailed {
                    op,
                    launch,
                    failure,
                };
                return self.answer_driver(life, op, launch, timeout, input);
            }
        };
        if self.scene.fires(Fault::HangStart, &name) {
            // The answer never comes; half of the hanging starts start something.
            if self.scene.choices.either(Point::HangingStart, &name) {
                self.scene
                    .after(delay, &name, Later::Start { op: Op(0), launch });
            }
            return;
        }
        let delay = Span(delay.0 + self.scene.latency(&name, timeout).0);
        self.scene.after(delay, &name, Later::Start { op, launch });
    }

    /// Why what a task needs is not there: its engine, or a network that somebody removed.
    fn refusal_of_start(
        &self,
        alloc: AllocId,
        launch: LaunchId,
        config: &TaskConfig,
    ) -> Option<Failure> {
        let network = config.network.as_ref();
        let taken = network.is_some_and(|it| it.own) && self.networks.is_taken(alloc);
        let gone = || Failure::recoverable("its network is not there");
        self.engine.refusal(launch).or_else(|| taken.then(gone))
    }

    pub(crate) fn start(&mut self, life: u64, op: Op, launch: LaunchId) {
        let timeout = self.scene.timeouts.start;
        let Some(process) = self.processes.get(launch) else {
            return;
        };
        let (name, config) = (Arc::clone(&process.name), Arc::clone(&process.config));
        let failure = match &config.start_error {
            _ if process.tombstone => Some(Failure::fatal("this launch id has ended")),
            _ if self.engine.hides(launch) => self.engine.refusal(launch),
            Some(why) if config.start_error_recoverable => Some(Failure::recoverable(why)),
            Some(why) => Some(Failure::fatal(why)),
            None => None,
        };
        if let Some(failure) = failure {
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        if op != Op(0) && self.scene.fires(Fault::LoseStart, &name) {
            return self.lose_start(life, op, launch);
        }
        self.spawn(life, launch);
        if op == Op(0) {
            return;
        }
        if self.scene.fires(Fault::FailStartedStart, &name) {
            let failure = Failure::recoverable("the driver lost its way");
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        let network = network(&config);
        let input = DriverInput::Started {
            op,
            launch,
            network,
        };
        self.answer_driver(life, op, launch, timeout, input);
    }

    /// What starts a process is killed: half of those had let the program go.
    fn lose_start(&mut self, life: u64, op: Op, launch: LaunchId) {
        let name = self.scene.names.known_launch(launch);
        if self.scene.choices.either(Point::LostStart, &name) {
            self.spawn(life, launch);
        } else if let Some(process) = self.processes.get_mut(launch) {
            process.tombstone = true;
        }
        let timeout = self.scene.timeouts.start;
        let why = "what starts it was killed".to_owned();
        let input = DriverInput::StartLost { op, launch, why };
        self.answer_driver(life, op, launch, timeout, input);
    }

    fn spawn(&mut self, life: u64, launch: LaunchId) {
        let current = life == self.scene.life;
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        process.starts += 1;
        process.alive = true;
        process.watched = current;
        let (key, starts) = (process.key.clone(), process.starts);
        let (name, config) = (Arc::clone(&process.name), Arc::clone(&process.config));
        if starts > 1 {
            self.scene
                .violated("launch_id_is_started_once", name.to_string());
        }
        if self
            .launches_of(&key)
            .any(|(id, other)| other.alive && *id != launch)
        {
            self.scene
                .violated("task_has_one_live_process", name.to_string());
        }
        self.processes.living.insert(launch);
        self.dirs.write(key.alloc);
        self.scene
            .note(|| (Column::named(&name), "runs".to_owned()));
        let command = &config.command;
        let result = ExitResult {
            code: Some(command.exit_code),
            signal: command.exit_signal,
            oom_killed: false,
            message: command.exit_err_msg.clone(),
        };
        self.scene
            .after(command.run_for, &name, Later::End { launch, result });
        if let Some(after) = config.plugin_exit_after {
            self.scene.after(after, &name, Later::PluginGone { launch });
        }
        if self.scene.fires(Fault::Chatter, &name) {
            let event = DriverInput::Event {
                launch,
                message: "an image was fetched".to_owned(),
                details: [("image".to_owned(), "one".to_owned())].into(),
            };
            let grid = [Span::ZERO, Span::secs(1), Span::secs(100)];
            let delay = self.scene.choices.one_of(&grid, Point::Chatter, &name);
            let at = self.scene.at + delay.unwrap_or(Span::ZERO);
            self.scene.deliver(
                Source::Chatter(launch),
                at,
                &name,
                Input::Driver(key, event),
            );
        }
        self.engine_may_err(launch, &name);
        if self.scene.fires(Fault::KillProcess, &name) {
            let grid = [Span::ZERO, Span::millis(1), Span::secs(1), Span::secs(20)];
            let delay = self.scene.choices.one_of(&grid, Point::SuddenDeath, &name);
            let result = ExitResult::code(66);
            self.scene.after(
                delay.unwrap_or(Span::ZERO),
                &name,
                Later::End { launch, result },
            );
        }
    }

    /// The process ends, unless it did before.
    pub(crate) fn end(&mut self, launch: LaunchId, mut result: ExitResult) {
        let Some(process) = self.processes.get(launch).filter(|it| it.alive) else {
            return;
        };
        let name = Arc::clone(&process.name);
        let owned = self.engine.owns(launch);
        let loses = owned && self.scene.fires(Fault::EngineLosesCode, &name);
        if loses {
            result = ExitResult::unknown("the engine does not say how it ended");
        }
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        process.alive = false;
        process.unknowable |= loses;
        process.exit = Some(result.clone()).filter(|_| !loses);
        let key = process.key.clone();
        let (watched, stopping) = (process.watched, process.stopping);
        self.processes.living.remove(&launch);
        let code = result.code;
        self.scene
            .note(|| (Column::named(&name), format!("ends with {code:?}")));
        if !watched || (stopping && self.scene.fires(Fault::SwallowExit, &name)) {
            return;
        }
        if owned {
            return self.tell_end(launch, result);
        }
        let at = self.scene.at + self.scene.latency(&name, Span::secs(5));
        let input = Input::Driver(key, DriverInput::Exited { launch, result });
        if self.scene.fires(Fault::DoubledExit, &name) {
            self.scene
                .deliver(Source::Exit(launch), at, &name, input.clone());
        }
        self.scene.deliver(Source::Exit(launch), at, &name, input);
    }

    /// The driver's side of a process is gone while the process lives on.
    pub(crate) fn plugin_gone(&mut self, launch: LaunchId) {
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        if !process.alive || !process.watched {
            return;
        }
        process.unknowable = true;
        process.watched = false;
        let (name, key) = (Arc::clone(&process.name), process.key.clone());
        let result = ExitResult::unknown("plugin is shut down");
        let input = Input::Driver(key, DriverInput::Exited { launch, result });
        self.scene
            .deliver(Source::Exit(launch), self.scene.at, &name, input);
    }

    pub(crate) fn recover(&mut self, life: u64, op: Op, launch: LaunchId) {
        if self.waits_for_engine(life, op, launch) {
            return;
        }
        let name = self.scene.names.known_launch(launch);
        let claimed = self.engine_claims(launch);
        let lost = self.scene.fires(Fault::LoseLaunch, &name);
        let current = life == self.scene.life;
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        let found = if process.starts == 0 {
            process.tombstone = true;
            Found::NeverStarted
        } else if process.rebooted {
            Found::Rebooted
        } else if claimed {
            process.unknowable |= process.exit.is_none();
            Found::Running
        } else if lost || (!process.alive && process.exit.is_none()) {
            process.unknowable = true;
            Found::Gone("nothing of it can be found".to_owned())
        } else if let Some(exit) = process.exit.clone() {
            Found::Exited(exit)
        } else {
            process.watched = current;
            Found::Running
        };
        let network = network(&process.config).filter(|_| found == Found::Running);
        let timeout = self.scene.timeouts.recover;
        self.answer_driver(
            life,
            op,
            launch,
            timeout,
            DriverInput::Recovered {
                op,
                launch,
                found,
                network,
            },
        );
    }

    fn begin_stop(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, timeout) = (self.scene.life, self.scene.timeouts.signal);
        let Some(process) = self.processes.own(&mut self.scene, key, launch, "stop") else {
            return;
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        let mut result = Ok(());
        if alive {
            if self.scene.fires(Fault::HangStop, &name) {
                return;
            }
            if self.scene.fires(Fault::FailStop, &name) {
                result = Err(Failure::recoverable("the driver is busy"));
            } else {
                let delay = self.scene.latency(&name, timeout);
                self.scene.after(delay, &name, Later::Signal { launch });
            }
        }
        self.answer_driver(
            life,
            op,
            launch,
            timeout,
            DriverInput::Stopped { op, launch, result },
        );
    }

    pub(crate) fn signal_lands(&mut self, launch: LaunchId) {
        if self.engine.hides(launch) {
            return;
        }
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        process.stopping = true;
        let (delay, name) = (process.config.kill_after, Arc::clone(&process.name));
        let result = by_signal(15);
        self.scene
            .after(delay, &name, Later::End { launch, result });
    }

    fn signal(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, timeout) = (self.scene.life, self.scene.timeouts.signal);
        let Some(process) = self.processes.own(&mut self.scene, key, launch, "signal") else {
            return;
        };
        let result = match &process.config.command.signal_error {
            Some(why) => Err(Failure::fatal(why)),
            None if !process.alive => Err(Failure::fatal("it does not run")),
            None => Ok(()),
        };
        let name = Arc::clone(&process.name);
        if self.scene.fires(Fault::HangStop, &name) {
            return;
        }
        self.answer_driver(
            life,
            op,
            launch,
            timeout,
            DriverInput::Signaled { op, launch, result },
        );
    }

    /// A script that hangs is ended by the driver in time; a driver that hangs says nothing.
    fn run_script(&mut self, key: &TaskKey, op: Op, launch: LaunchId, timeout: Span) {
        let (life, timeout) = (
            self.scene.life,
            Span(timeout.0 + self.scene.timeouts.signal.0 + 2 * self.scene.timeouts.destroy.0),
        );
        let Some(process) = self.processes.own(&mut self.scene, key, launch, "exec") else {
            return;
        };
        let (alive, name) = (process.alive, Arc::clone(&process.name));
        if self.scene.fires(Fault::HangScript, &name) {
            return;
        }
        let result = if !alive {
            Err(Failure::fatal("it does not run"))
        } else if !self.scene.fires(Fault::FailScript, &name) {
            Ok(0)
        } else if self.scene.choices.either(Point::FailingScript, &name) {
            Ok(3)
        } else {
            Err(Failure::fatal("there is no such program"))
        };
        self.answer_driver(
            life,
            op,
            launch,
            timeout,
            DriverInput::Executed {
                op,
                launch,
                result,
                output: String::new(),
            },
        );
    }

    fn begin_destroy(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, timeout) = (self.scene.life, self.scene.timeouts.destroy);
        let process = self.processes.record(&mut self.scene.names, key, launch);
        if process.key != *key {
            return self.scene.violated(
                "foreign_process_is_not_touched",
                format!("destroy {launch}"),
            );
        }
        let name = Arc::clone(&process.name);
        if self.scene.fires(Fault::HangDestroy, &name) {
            return;
        }
        if self.scene.fires(Fault::FailDestroy, &name) {
            let result = Err(Failure::recoverable("the driver is busy"));
            let input = DriverInput::Destroyed { op, launch, result };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        let delay = self.scene.latency(&name, timeout);
        self.scene
            .after(delay, &name, Later::Destroy { op, launch });
    }

    pub(crate) fn destroy(&mut self, life: u64, op: Op, launch: LaunchId) {
        if let Some(failure) = self.engine.refusal(launch) {
            let (timeout, result) = (self.scene.timeouts.destroy, Err(failure));
            let input = DriverInput::Destroyed { op, launch, result };
            return self.answer_driver(life, op, launch, timeout, input);
        }
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        process.tombstone = true;
        process.destroyed = true;
        let name = Arc::clone(&process.name);
        self.end(launch, by_signal(9));
        self.sessions.end_with(&mut self.scene, launch);
        let forgets = self.scene.fires(Fault::ForgetExit, &name);
        let Some(process) = self.processes.get_mut(launch) else {
            return;
        };
        process.unknowable |= forgets || process.starts == 0;
        let exit = process.exit.clone().filter(|_| !forgets);
        let timeout = self.scene.timeouts.destroy;
        let result = Ok(exit);
        self.answer_driver(
            life,
            op,
            launch,
            timeout,
            DriverInput::Destroyed { op, launch, result },
        );
    }
}

/// What the driver tells of a task's network, which the mock driver takes from the task's options.
fn network(config: &MockConfig) -> Option<DriverNetwork> {
    let ip = config.driver_ip.clone()?;
    Some(DriverNetwork {
        ip,
        auto_advertise: config.driver_advertise,
        port_map: config.driver_port_map.clone().into_iter().collect(),
    })
}
