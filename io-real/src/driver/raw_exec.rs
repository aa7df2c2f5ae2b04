//! The driver `raw_exec`: runs a program as it is, under a shim of its own.

mod checks;
mod connection;
mod destroy;
mod held;
mod launch;
mod machine;
mod program;
#[cfg(test)]
mod races;
mod scripts;
mod sessions;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;

use drover_core::effect::request::DriverRequest;
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::ExitResult;
use drover_core::model::node::DriverInfo;
use drover_core::op::Failure;
use tokio::sync::Notify;

use self::destroy::{Ended, ShimConduct};
use self::held::Held;
use self::launch::{LaunchDependencies, LaunchError};
use self::machine::{Machine, Shim};
use self::scripts::Scripts;
use super::answer::Answer;
use super::exec::ExecSettings;
use super::session::Opening;
use super::{Driver, Inbox, Orphans, signal};
use crate::cgroup::Cgroups;
use crate::dirs::AllocDirs;
use crate::gate::Gate;
use crate::network::Networks;
use crate::shim::record::{Record, State};
use crate::shim::{ExitRecord, Recovered, ShimHome, StartError};
use crate::stats::StatsSource;

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct RawExec {
    world: Arc<World>,
}

/// Its name.
pub(super) const RAW_EXEC: &str = "raw_exec";

/// What all launches share.
struct World<M: Machine = LaunchDependencies> {
    dependencies: M,
    inbox: Inbox,
    held: Held<M::Shim>,
    scripts: Scripts<M::Shim>,
    /// Notified whenever the core has heard of an end, and when a shim has been replaced.
    changes: Notify,
}

impl RawExec {
    /// A driver whose shims live in `home` and whose tasks work in `dirs`. `open_files` is the
    /// soft limit of open files that tasks get; the agent's own if none.
    pub fn new(
        home: ShimHome,
        dirs: AllocDirs,
        cgroups: Option<Cgroups>,
        open_files: Option<u64>,
        inbox: Inbox,
    ) -> RawExec {
        let settings = ExecSettings::default();
        RawExec::isolating(home, dirs, cgroups, open_files, inbox, settings, None)
    }

    /// The same, where isolated tasks ([`super::exec`]) are as these settings say, and tasks of allocations with
    /// networks of their own start in these.
    pub fn isolating(
        home: ShimHome,
        dirs: AllocDirs,
        cgroups: Option<Cgroups>,
        open_files: Option<u64>,
        inbox: Inbox,
        isolation: ExecSettings,
        networks: Option<Networks>,
    ) -> RawExec {
        let dependencies = LaunchDependencies {
            home,
            dirs,
            cgroups,
            open_files,
            isolation,
            networks,
            gate: Gate::default(),
        };
        RawExec {
            world: Arc::new(World::new(dependencies, inbox)),
        }
    }
}

impl RawExec {
    /// Whether tasks are in control groups.
    pub(super) fn has_cgroups(&self) -> bool {
        self.world.dependencies.cgroups.is_some()
    }
}

impl Driver for RawExec {
    fn name(&self) -> &str {
        RAW_EXEC
    }

    fn fingerprint(&self) -> DriverInfo {
        super::healthy()
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        let world = self.world.clone();
        let owed = Answer::owed(&world.inbox, &task, &effect);
        match effect {
            DriverEffect::Start(asked) => {
                tokio::spawn(world.start(owed, task, asked));
            }
            DriverEffect::Recover(asked) => {
                tokio::spawn(world.recover(owed, task, asked));
            }
            DriverEffect::Stop(asked) => {
                tokio::spawn(world.stop(owed, task, asked));
            }
            DriverEffect::Signal(request::Signal { op, launch, signal }) => {
                tokio::spawn(async move {
                    let result = world.signal(&task, launch, signal).await;
                    let result = result.map_err(|error| failure(&error));
                    owed.give(DriverInput::Signaled { op, launch, result });
                });
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                output,
            }) => {
                tokio::spawn(async move {
                    let (result, output) = match output {
                        true => world.exec_with_output(task, launch, program).await,
                        false => (world.exec(task, launch, program).await, String::new()),
                    };
                    owed.give(DriverInput::Executed {
                        op,
                        launch,
                        result,
                        output,
                    });
                });
            }
            DriverEffect::Health(asked) => {
                let why = "only images have health checks of their own";
                owed.give(asked.failed(Failure::fatal(why)));
            }
            DriverEffect::OpenSession(asked) => {
                if let Some((opening, server)) = Opening::take(&world.inbox, &task, owed, &asked) {
                    tokio::spawn(world.open_session(task, asked, opening, server));
                }
            }
            DriverEffect::Destroy(asked) => {
                tokio::spawn(world.end_by_force(owed, task, asked));
            }
        }
    }

    fn stats_source(&self, launch: LaunchId) -> Option<StatsSource> {
        let process = self.world.held.live(launch)?.task();
        let cgroups = self.world.dependencies.cgroups.as_ref();
        Some(StatsSource {
            group: cgroups.and_then(|groups| groups.counted(&launch.to_string()).ok()),
            process: Some((process.pid, process.start_time)),
        })
    }

    fn forget(&self, launch: LaunchId) {
        let world = self.world.clone();
        tokio::spawn(async move {
            let own = world.clone();
            let forgotten = world.blocking(move || destroy::forget(&own.dependencies, launch));
            if let Err(error) = forgotten.await {
                tracing::warn!(%launch, %error, "cannot remove the record of a launch");
            }
        });
    }
}

impl RawExec {
    /// Ends, in the background, every launch of which there is a record but of which nobody knows
    /// any more: `known` are those that somebody does. For the start of an agent, before it starts
    /// anything. Returns how many were left running.
    ///
    /// # Errors
    /// The records cannot be listed.
    pub fn end_unknown(&self, known: &BTreeSet<LaunchId>, orphans: Orphans) -> io::Result<usize> {
        let home = &self.world.dependencies.home;
        let mut left = 0;
        for name in home.list()? {
            let Ok(launch) = name.parse() else { continue };
            let buried = |record: Record| record.state == State::Abandoned;
            if known.contains(&launch) || home.read_record(&name)?.is_some_and(buried) {
                continue;
            }
            if orphans == Orphans::Leave && home.may_run(&name)? {
                left += 1;
                continue;
            }
            let driver = self.clone();
            tokio::task::spawn_blocking(move || match driver.end(launch) {
                Ok(()) => tracing::info!(%launch, "cleared away what a task left behind"),
                Err(error) => tracing::error!(%launch, %error, "cannot end a lost task"),
            });
        }
        Ok(left)
    }

    /// The launch beside which this one runs, if it is one of a script.
    pub fn beside(&self, launch: LaunchId) -> Option<LaunchId> {
        self.world.scripts.beside(launch)
    }

    /// Ends a launch that nobody knows any more, and removes its control group and its record.
    /// Blocks for as long as that takes.
    ///
    /// # Errors
    /// Something of it resists.
    pub fn end(&self, launch: LaunchId) -> io::Result<()> {
        let ended = self.world.destroy(launch)?;
        if ended.shim == ShimConduct::Killed {
            tracing::warn!(%launch, "{SHIM_KILLED}");
        }
        destroy::forget(&self.world.dependencies, launch)
    }
}

/// What people read of a shim that was stopped.
const SHIM_CONTINUED: &str = "the task's shim was stopped, and has been continued";

/// What people read of a shim that does not answer.
const SHIM_KILLED: &str = "the task's shim did not answer, and was killed together with the task";

/// Why a launch was not started.
enum NotStarted {
    /// It failed.
    Failed(Failure),
    /// Its shim was killed meanwhile.
    Lost(String),
}

impl<M: Machine> World<M> {
    fn new(dependencies: M, inbox: Inbox) -> World<M> {
        World {
            dependencies,
            inbox,
            held: Held::default(),
            scripts: Scripts::default(),
            changes: Notify::new(),
        }
    }

    /// Ends a launch and what runs beside it. What resists of its scripts hinders nothing else.
    fn destroy(&self, launch: LaunchId) -> io::Result<Ended> {
        let machine = &self.dependencies;
        if let Err(error) = scripts::end_all(machine, &self.scripts, launch) {
            tracing::debug!(%launch, %error, "a script resists");
        }
        let ended = destroy::destroy(machine, &self.held, launch)?;
        // One that began meanwhile.
        scripts::end_all(machine, &self.scripts, launch)?;
        Ok(ended)
    }

    /// Tells people if a shim had to be continued.
    fn report_continued_shim(&self, task: &TaskKey, launch: LaunchId, live: &M::Shim) {
        if live.take_continued() {
            self.report_shim_problem(task, launch, ShimConduct::Continued);
        }
    }

    /// Tells people of a shim that did not do what it should.
    fn report_shim_problem(&self, task: &TaskKey, launch: LaunchId, conduct: ShimConduct) {
        let message = match conduct {
            ShimConduct::Fine => return,
            ShimConduct::Continued => SHIM_CONTINUED,
            ShimConduct::Killed => SHIM_KILLED,
        };
        tracing::warn!(%launch, alloc = %task.alloc, task = %task.task, "{message}");
        let reported = DriverInput::Event {
            launch,
            message: message.to_owned(),
            details: BTreeMap::new(),
        };
        self.inbox.send(task, reported);
    }

    /// Starts a launch, and watches it. It is in hand before anything that comes later can be begun.
    fn start(
        self: Arc<Self>,
        owed: Answer,
        task: TaskKey,
        asked: request::Start,
    ) -> impl Future<Output = ()> + Send {
        self.held.begin(asked.launch);
        self.start_and_watch(owed, task, asked)
    }

    async fn start_and_watch(self: Arc<Self>, owed: Answer, task: TaskKey, asked: request::Start) {
        let request::Start { op, launch, config } = asked;
        let (world, key, logs) = (self.clone(), task.clone(), config.logs);
        let work = move || world.start_blocking(&key, launch, &config);
        let started = self.dependencies.run(work).await;
        let lost = |lost| {
            let failure = Failure::recoverable(format!("the start was lost: {lost}"));
            Err(NotStarted::Failed(failure))
        };
        match started.unwrap_or_else(lost) {
            Ok(live) => {
                let network = None;
                owed.give(DriverInput::Started {
                    op,
                    launch,
                    network,
                });
                self.report_continued_shim(&task, launch, &live);
                self.watch(task, launch, live, logs).await;
            }
            Err(NotStarted::Failed(failure)) => owed.give(DriverInput::StartFailed {
                op,
                launch,
                failure,
            }),
            Err(NotStarted::Lost(why)) => owed.give(DriverInput::StartLost { op, launch, why }),
        }
    }

    fn start_blocking(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        config: &TaskConfig,
    ) -> Result<Arc<M::Shim>, NotStarted> {
        let (refusal, remove) = match self.dependencies.start(task, launch, config) {
            Ok(live) => match self.held.take(launch, live) {
                Some(live) => return Ok(live),
                None => {
                    let failure = Failure::fatal("it was destroyed while it started");
                    (NotStarted::Failed(failure), true)
                }
            },
            Err(error) => {
                let doomed = self.held.start_failed(launch);
                let claimed = matches!(error, LaunchError::Shim(StartError::AlreadyClaimed));
                let refusal = match &error {
                    LaunchError::Shim(StartError::Lost) => NotStarted::Lost(error.to_string()),
                    error => NotStarted::Failed(start_failure(error)),
                };
                (refusal, doomed || (claimed && self.is_over(launch)))
            }
        };
        // Nobody destroys it again: its group was made after that.
        if remove && let Err(error) = destroy::remove_group(&self.dependencies, launch) {
            tracing::warn!(%launch, %error, "cannot remove a control group");
        }
        Err(refusal)
    }

    /// Whether a launch was given up before it started, or nothing of it is left.
    fn is_over(&self, launch: LaunchId) -> bool {
        match self.dependencies.state(launch) {
            Ok(Some(State::Abandoned | State::Failed | State::Exited)) => true,
            Ok(Some(State::Starting | State::Running | State::Ended) | None) | Err(_) => false,
        }
    }

    /// Finds out what became of a launch, and watches it if it runs. It is in hand from now on, as one that starts.
    fn recover(
        self: Arc<Self>,
        owed: Answer,
        task: TaskKey,
        asked: request::Recover,
    ) -> impl Future<Output = ()> + Send {
        self.held.begin(asked.launch);
        self.recover_and_watch(owed, task, asked)
    }

    async fn recover_and_watch(
        self: Arc<Self>,
        owed: Answer,
        task: TaskKey,
        asked: request::Recover,
    ) {
        let request::Recover { op, launch, logs } = asked;
        let world = self.clone();
        let recovered = self.blocking(move || world.recover_blocking(launch)).await;
        // What cannot be found is ended by force, and that asks again.
        let lost = |error: io::Error| (Found::Gone(format!("cannot be recovered: {error}")), None);
        let (found, live) = recovered.unwrap_or_else(lost);
        match &live {
            Some(live) => self.report_continued_shim(&task, launch, live),
            None => {
                self.held.start_failed(launch);
            }
        }
        owed.give(DriverInput::Recovered {
            op,
            launch,
            found,
            network: None,
        });
        if let Some(live) = live {
            self.watch(task, launch, live, logs).await;
        }
    }

    fn recover_blocking(&self, launch: LaunchId) -> io::Result<(Found, Option<Arc<M::Shim>>)> {
        let found = match self.dependencies.recover(launch)? {
            Recovered::Running(live) => match self.held.take(launch, live) {
                Some(live) => return Ok((Found::Running, Some(live))),
                None => Found::Gone("it was destroyed".to_owned()),
            },
            Recovered::Silent(_) => Found::Gone("its shim does not answer".to_owned()),
            Recovered::Exited(exit)
            | Recovered::Vanished {
                exit: Some(exit), ..
            } => Found::Exited(exit_result(&exit)),
            Recovered::Failed { step, errno } => {
                let error = io::Error::from_raw_os_error(errno);
                let message = format!("the program could not be started ({step:?}): {error}");
                Found::Exited(ExitResult::unknown(message))
            }
            Recovered::NeverStarted => {
                // Nobody destroys what never was, but its group may have been made already.
                destroy::remove_group(&self.dependencies, launch)?;
                Found::NeverStarted
            }
            Recovered::Rebooted => Found::Rebooted,
            Recovered::Vanished { exit: None, .. } => {
                Found::Gone("its shim was killed while no agent ran".to_owned())
            }
        };
        Ok((found, None))
    }

    /// An exit as the core is told it: of one for lack of memory, how much there was.
    fn told(&self, launch: LaunchId, exit: &ExitRecord) -> ExitResult {
        const MIB: u64 = 1024 * 1024;
        let mut result = exit_result(exit);
        if !result.oom_killed || result.message.is_some() {
            return result;
        }
        let marks = self.dependencies.memory_marks(launch);
        result.message = marks.map(|(limit, most)| {
            let (limit, most) = (limit.div_ceil(MIB), most.div_ceil(MIB));
            format!("out of memory: the limit is {limit} MiB, {most} MiB were used at most")
        });
        result
    }

    /// Ends a launch by force.
    async fn end_by_force(self: Arc<Self>, owed: Answer, task: TaskKey, asked: request::Destroy) {
        let request::Destroy { op, launch } = asked;
        self.forbid_replacement(launch).await;
        let world = self.clone();
        let result = self.blocking(move || world.destroy(launch)).await;
        if let Ok(ended) = &result {
            self.report_shim_problem(&task, launch, ended.shim);
        }
        let result = result.map(|ended| ended.exit);
        let result = result.map_err(|error| failure(&error));
        self.changes.notify_waiters();
        owed.give(DriverInput::Destroyed { op, launch, result });
    }

    /// Waits until no successor of a launch's shim is being begun; then none will be.
    async fn forbid_replacement(&self, launch: LaunchId) {
        loop {
            let mut next_change = pin!(self.changes.notified());
            next_change.as_mut().enable();
            if !self.held.forbid_replacement(launch) {
                return;
            }
            next_change.await;
        }
    }

    /// Asks a launch to end, by the signal that its job names.
    async fn stop(self: Arc<Self>, owed: Answer, task: TaskKey, asked: request::Stop) {
        let request::Stop {
            op, launch, signal, ..
        } = asked;
        let result = match self.signal(&task, launch, signal).await {
            // What is over cannot be asked to end; it did.
            Err(error) if is_gone(&error) => Ok(()),
            result => result.map_err(|error| failure(&error)),
        };
        owed.give(DriverInput::Stopped { op, launch, result });
    }

    async fn signal(&self, task: &TaskKey, launch: LaunchId, name: String) -> io::Result<()> {
        let Some(number) = signal::number(&name, signal::INTERRUPT) else {
            let message = format!("there is no signal {name:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let live = self.held.live(launch);
        let live = live.ok_or_else(|| io::Error::from(rustix::io::Errno::SRCH))?;
        let shim = live.clone();
        let sent = self.blocking(move || shim.signal(number)).await;
        self.report_continued_shim(task, launch, &live);
        sent
    }

    /// Runs work that blocks where it hurts nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let done = self.dependencies.run(work).await;
        done.unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn failure(error: &io::Error) -> Failure {
    Failure::recoverable(error.to_string())
}

fn start_failure(error: &LaunchError) -> Failure {
    let message = error.to_string();
    match error {
        LaunchError::Io(_) | LaunchError::Shim(StartError::Spawn(_) | StartError::Lost) => {
            Failure::recoverable(message)
        }
        LaunchError::Invalid(_)
        | LaunchError::NotFound(_)
        | LaunchError::NotInRoot(_)
        | LaunchError::Shim(_) => Failure::fatal(message),
    }
}

/// An exit as the core knows it: a signal's code is 128 and its number. The kernel counts for the whole control group what
/// it killed for lack of memory, and programs that run beside a task are in it: a task that succeeds lacked nothing.
fn exit_result(exit: &ExitRecord) -> ExitResult {
    let signal = exit.signal.unwrap_or(0);
    let code = exit.code.or(exit.signal.map(|signal| 128 + signal));
    let message = match (exit.known, exit.output_lost) {
        (false, _) => Some("how the process ended is not known".to_owned()),
        (true, true) => Some("the end of its output could not be written".to_owned()),
        (true, false) => None,
    };
    ExitResult {
        code,
        signal,
        oom_killed: exit.oom && code != Some(0),
        message,
    }
}
