//! The mock driver: obeys its tasks' configuration, and misbehaves where chance says so.

use drover_core::driver::config::MockConfig;
use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, DriverNetwork, Found, Input, TaskKey};
use drover_core::model::alloc::ExitResult;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;

use crate::faults::Fault;
use crate::inbox::Source;
use crate::process::Process;
use crate::world::{Later, World};

/// Ended by this signal.
fn by_signal(signal: i32) -> ExitResult {
    ExitResult {
        code: Some(128 + signal),
        signal,
        ..ExitResult::default()
    }
}

impl World {
    pub(crate) fn drive(&mut self, key: TaskKey, effect: DriverEffect) {
        match effect {
            DriverEffect::Start { op, launch, config } => {
                self.begin_start(key, op, launch, &config);
            }
            DriverEffect::Recover { op, launch, .. } => {
                self.latest.insert(key.clone(), launch);
                let name = self.name_of(launch);
                let process = self.processes.entry(launch).or_default();
                process.key = key;
                if process.forgotten {
                    self.violated("what_was_forgotten_is_not_looked_for", name.clone());
                }
                if !self.strikes(Fault::HangRecover, &name) {
                    let delay = self.latency(&name, self.patience.recover);
                    self.after(delay, Later::Recover { op, launch });
                }
            }
            DriverEffect::Stop { op, launch, .. } => self.begin_stop(&key, op, launch),
            DriverEffect::Signal { op, launch, .. } => self.signal(&key, op, launch),
            DriverEffect::Destroy { op, launch } => self.begin_destroy(&key, op, launch),
        }
    }

    fn name_of(&self, launch: LaunchId) -> String {
        let known = self
            .processes
            .get(&launch)
            .map(|process| process.name.clone());
        known.unwrap_or_default()
    }

    fn say(&mut self, life: u64, op: Op, launch: LaunchId, patience: Span, input: DriverInput) {
        let Some(process) = self.processes.get(&launch) else {
            return;
        };
        let (name, key) = (process.name.clone(), process.key.clone());
        self.answer(life, op, &name, patience, Input::Driver(key, input));
    }

    fn begin_start(&mut self, key: TaskKey, op: Op, launch: LaunchId, config: &TaskConfig) {
        let (life, patience) = (self.life, self.patience.start);
        self.latest.insert(key.clone(), launch);
        let process = self.processes.entry(launch).or_default();
        process.name = format!(
            "{}.{}.{}#{}",
            config.job, config.group, key.task, config.run.0
        );
        process.key = key;
        process.claims += 1;
        let name = process.name.clone();
        if process.claims > 1 || process.tombstone {
            if process.claims > 1 {
                self.violated("no_launch_id_is_started_twice", name);
            }
            let failure = Failure::fatal("this launch id was used before");
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.say(life, op, launch, patience, input);
        }
        match MockConfig::decode(&config.config) {
            Ok(mock) => process.config = mock,
            Err(problems) => {
                let failure = Failure::fatal(format!("{problems:?}"));
                let input = DriverInput::StartFailed {
                    op,
                    launch,
                    failure,
                };
                return self.say(life, op, launch, patience, input);
            }
        }
        let delay = process.config.start_block_for;
        if self.strikes(Fault::HangStart, &name) {
            // The answer never comes; half of the hanging starts start something.
            if self.choices.below(2, "hanging start", &name) == 1 {
                self.after(delay, Later::Start { op: Op(0), launch });
            }
            return;
        }
        let delay = Span(delay.0 + self.latency(&name, patience).0);
        self.after(delay, Later::Start { op, launch });
    }

    pub(crate) fn start(&mut self, life: u64, op: Op, launch: LaunchId) {
        let patience = self.patience.start;
        let Some(process) = self.processes.get(&launch) else {
            return;
        };
        let (name, config) = (process.name.clone(), process.config.clone());
        let failure = match &config.start_error {
            _ if process.tombstone => Some(Failure::fatal("this launch id is over")),
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
            return self.say(life, op, launch, patience, input);
        }
        self.spawn(life, launch);
        if op == Op(0) {
            return;
        }
        if self.strikes(Fault::FailStartedStart, &name) {
            let failure = Failure::recoverable("the driver lost its way");
            let input = DriverInput::StartFailed {
                op,
                launch,
                failure,
            };
            return self.say(life, op, launch, patience, input);
        }
        let network = config.driver_ip.map(|ip| DriverNetwork {
            ip,
            auto_advertise: config.driver_advertise,
            port_map: config.driver_port_map.into_iter().collect(),
        });
        let input = DriverInput::Started {
            op,
            launch,
            network,
        };
        self.say(life, op, launch, patience, input);
    }

    fn spawn(&mut self, life: u64, launch: LaunchId) {
        let current = life == self.life;
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        process.starts += 1;
        process.alive = true;
        process.watched = current;
        let (key, name, starts) = (process.key.clone(), process.name.clone(), process.starts);
        let config = process.config.clone();
        if starts > 1 {
            self.violated("no_launch_id_is_started_twice", name.clone());
        }
        let others = |(id, other): (&LaunchId, &Process)| *id != launch && other.key == key;
        if self.alive().any(others) {
            self.violated("one_live_process_per_task", name.clone());
        }
        self.note(&format!("world: {name} runs"));
        let command = &config.command;
        let result = ExitResult {
            code: Some(command.exit_code),
            signal: command.exit_signal,
            oom_killed: false,
            message: command.exit_err_msg.clone(),
        };
        self.after(command.run_for, Later::End { launch, result });
        if let Some(after) = config.plugin_exit_after {
            self.after(after, Later::PluginGone { launch });
        }
        if self.strikes(Fault::KillProcess, &name) {
            let grid = [Span::ZERO, Span::millis(1), Span::secs(1), Span::secs(20)];
            let at = self.choices.below(grid.len(), "sudden death", &name);
            let delay = grid.get(at).copied().unwrap_or(Span::ZERO);
            self.after(
                delay,
                Later::End {
                    launch,
                    result: ExitResult::code(66),
                },
            );
        }
    }

    /// The process ends, unless it did before.
    pub(crate) fn end(&mut self, launch: LaunchId, result: ExitResult) {
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        if !process.alive {
            return;
        }
        process.alive = false;
        process.exit = Some(result.clone());
        let (name, key) = (process.name.clone(), process.key.clone());
        let (watched, stopping) = (process.watched, process.stopping);
        self.note(&format!("world: {name} ends with {:?}", result.code));
        if !watched || (stopping && self.strikes(Fault::SwallowExit, &name)) {
            return;
        }
        let at = self.at + self.latency(&name, Span::secs(5));
        let input = Input::Driver(key, DriverInput::Exited { launch, result });
        if self.strikes(Fault::DoubledAnswer, &name) {
            self.inbox.push(Source::Exit(launch), at, input.clone());
        }
        self.inbox.push(Source::Exit(launch), at, input);
    }

    /// The driver's side of a process is gone while the process lives on.
    pub(crate) fn plugin_gone(&mut self, launch: LaunchId) {
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        if !process.alive || !process.watched {
            return;
        }
        process.unknowable = true;
        process.watched = false;
        let key = process.key.clone();
        let result = ExitResult::unknown("plugin is shut down");
        let input = Input::Driver(key, DriverInput::Exited { launch, result });
        self.inbox.push(Source::Exit(launch), self.at, input);
    }

    pub(crate) fn recover(&mut self, life: u64, op: Op, launch: LaunchId) {
        let name = self.name_of(launch);
        let lost = self.strikes(Fault::LoseLaunch, &name);
        let current = life == self.life;
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        let found = if process.starts == 0 {
            process.tombstone = true;
            Found::NeverStarted
        } else if lost || (!process.alive && process.exit.is_none()) {
            process.unknowable = true;
            Found::Gone("nothing of it can be found".to_owned())
        } else if let Some(exit) = process.exit.clone() {
            Found::Exited(exit)
        } else {
            process.watched = current;
            Found::Running
        };
        let patience = self.patience.recover;
        self.say(
            life,
            op,
            launch,
            patience,
            DriverInput::Recovered { op, launch, found },
        );
    }

    fn begin_stop(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, patience) = (self.life, self.patience.signal);
        let Some(process) = self
            .processes
            .get(&launch)
            .filter(|process| process.key == *key)
        else {
            return self.violated("nothing_strange_is_touched", format!("stop {launch}"));
        };
        let (alive, name) = (process.alive, process.name.clone());
        let mut result = Ok(());
        if alive {
            if self.strikes(Fault::HangStop, &name) {
                return;
            }
            if self.strikes(Fault::FailStop, &name) {
                result = Err(Failure::recoverable("the driver is busy"));
            } else {
                let delay = self.latency(&name, patience);
                self.after(delay, Later::Signal { launch });
            }
        }
        self.say(
            life,
            op,
            launch,
            patience,
            DriverInput::Stopped { op, launch, result },
        );
    }

    pub(crate) fn signal_lands(&mut self, launch: LaunchId) {
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        process.stopping = true;
        let delay = process.config.kill_after;
        let result = by_signal(15);
        self.after(delay, Later::End { launch, result });
    }

    fn signal(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, patience) = (self.life, self.patience.signal);
        let Some(process) = self
            .processes
            .get(&launch)
            .filter(|process| process.key == *key)
        else {
            return self.violated("nothing_strange_is_touched", format!("signal {launch}"));
        };
        let result = match &process.config.command.signal_error {
            Some(why) => Err(Failure::fatal(why)),
            None if !process.alive => Err(Failure::fatal("it does not run")),
            None => Ok(()),
        };
        let name = process.name.clone();
        if self.strikes(Fault::HangStop, &name) {
            return;
        }
        self.say(
            life,
            op,
            launch,
            patience,
            DriverInput::Signaled { op, launch, result },
        );
    }

    fn begin_destroy(&mut self, key: &TaskKey, op: Op, launch: LaunchId) {
        let (life, patience) = (self.life, self.patience.destroy);
        let process = self.processes.entry(launch).or_default();
        if process.key.task.as_str().is_empty() {
            process.key = key.clone();
        }
        if process.key != *key {
            return self.violated("nothing_strange_is_touched", format!("destroy {launch}"));
        }
        let name = process.name.clone();
        if self.strikes(Fault::HangDestroy, &name) {
            return;
        }
        if self.strikes(Fault::FailDestroy, &name) {
            let result = Err(Failure::recoverable("the driver is busy"));
            let input = DriverInput::Destroyed { op, launch, result };
            return self.say(life, op, launch, patience, input);
        }
        let delay = self.latency(&name, patience);
        self.after(delay, Later::Destroy { op, launch });
    }

    pub(crate) fn destroy(&mut self, life: u64, op: Op, launch: LaunchId) {
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        process.tombstone = true;
        process.destroyed = true;
        let name = process.name.clone();
        self.end(launch, by_signal(9));
        let forgets = self.strikes(Fault::ForgetExit, &name);
        let Some(process) = self.processes.get_mut(&launch) else {
            return;
        };
        process.unknowable |= forgets || process.starts == 0;
        let exit = process.exit.clone().filter(|_| !forgets);
        let patience = self.patience.destroy;
        let result = Ok(exit);
        self.say(
            life,
            op,
            launch,
            patience,
            DriverInput::Destroyed { op, launch, result },
        );
    }
}
