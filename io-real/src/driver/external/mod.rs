//! A driver that is a plugin: what the core asks, asked of the plugin in its own protocol.
//!
//! The plugin comes and goes ([`PluginDriver::attach`], [`PluginDriver::detach`]), the driver
//! stays. A task whose plugin is gone goes on without anybody watching; the next plugin is asked
//! to find it again, and only what that one does not know has an end that nobody knows.
//!
//! The task's id is its launch id. That a start will be asked for is written down before it is
//! asked, the handle before `Started` is reported, and the end before it is reported, all with
//! `fsync`.
//!
//! | dies | what holds |
//! |------|------------|
//! | agent | plugin and tasks go on; the next agent attaches the plugin again and finds its tasks by their handles |
//! | plugin | its tasks go on unwatched; the next one is asked to find them, and the ends of those that it does not find are unknown |
//! | both | the same, by the next agent |
//! | agent or plugin in the middle of a start | the launch is `Gone`, and destroyed by its id; a plugin that forgot it may leave its process behind, which the protocol has no word for |

mod destroy;
mod events;
mod handles;
mod held;
mod logs;
mod sessions;
mod setup;
mod stats;
mod watch;

use std::iter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drover_core::driver::spec::Spec;
use drover_core::effect::request::DriverRequest;
use drover_core::effect::{DriverEffect, Program, TaskConfig, request};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::DriverNetwork;
use drover_core::model::node::DriverInfo;
use drover_core::model::task::LogConfig;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use tokio::sync::watch::Sender;
use tokio::time::timeout;

pub use self::handles::Handles;
pub(crate) use self::handles::unfinished;
pub use self::logs::Collectors;

use self::handles::Stage;
pub(super) use self::held::Held;
use self::stats::Measured;
use super::answer::Answer;
use super::session::Opening;
use super::{Driver, Inbox};
use crate::cgroup::nomad::Roots;
use crate::gate::Gate;
use crate::one_task::OneTask;
use crate::plugin::{Handle, Plugin, PluginError};

/// How long a search for a task waits for the plugin to be there: less than the core waits.
const PLUGIN_TIME: Duration = Duration::from_secs(20);

/// The driver. Cheap to clone.
#[derive(Clone)]
pub struct PluginDriver {
    world: Arc<World>,
}

struct World {
    name: String,
    handles: Handles,
    collectors: Collectors,
    root: PathBuf,
    inbox: Inbox,
    plugin: Sender<Option<Arc<Attached>>>,
    info: Mutex<DriverInfo>,
    held: Held,
    measured: Measured,
    /// Who listens to what the plugin says of its tasks.
    events: OneTask,
    gate: Gate,
}

/// A plugin that is there.
struct Attached {
    plugin: Arc<Plugin>,
    schema: Spec,
}

impl PluginDriver {
    /// A driver of this name without a plugin. Its tasks see the allocations'
    /// directories below `root`.
    pub fn new(
        name: String,
        handles: Handles,
        collectors: Collectors,
        root: PathBuf,
        inbox: Inbox,
    ) -> PluginDriver {
        let info = DriverInfo {
            detected: false,
            healthy: false,
            description: "its plugin does not run".to_owned(),
        };
        PluginDriver {
            world: Arc::new(World {
                name,
                handles,
                collectors,
                root,
                inbox,
                plugin: Sender::new(None),
                info: Mutex::new(info),
                held: Held::default(),
                measured: Measured::default(),
                events: OneTask::default(),
                gate: Gate::default(),
            }),
        }
    }

    /// From now on this plugin is asked, which was configured already; `schema` is what it says
    /// of its tasks' configurations. Tasks that the one before lost are looked for.
    pub fn attach(&self, plugin: Arc<Plugin>, schema: Spec) {
        let events = events::listen(Arc::downgrade(&self.world), plugin.clone());
        self.world.events.begin(events);
        let attached = Attached { plugin, schema };
        self.world.plugin.send_replace(Some(Arc::new(attached)));
    }

    /// From now on there is no plugin to ask.
    pub fn detach(&self) {
        self.world.plugin.send_replace(None);
    }

    /// What [`Driver::fingerprint`] answers from now on.
    pub fn set_info(&self, info: DriverInfo) {
        *self
            .world
            .info
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = info;
    }
}

impl Driver for PluginDriver {
    fn name(&self) -> &str {
        &self.world.name
    }

    fn fingerprint(&self) -> DriverInfo {
        let info = self.world.info.lock();
        info.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn carry_out(&self, task: TaskKey, effect: DriverEffect) {
        let world = self.world.clone();
        let owed = Answer::owed(&world.inbox, &task, &effect);
        match effect {
            DriverEffect::Start(request::Start { op, launch, config }) => {
                // Before anything that comes later can be begun.
                if world.held.begin(launch) {
                    tokio::spawn(world.start(owed, task, op, launch, config));
                } else {
                    owed.give(DriverInput::StartFailed {
                        op,
                        launch,
                        failure: Failure::fatal("the launch was started or given up before"),
                    });
                }
            }
            DriverEffect::Recover(request::Recover { op, launch, logs }) => {
                tokio::spawn(world.recover(owed, task, op, launch, logs));
            }
            DriverEffect::Stop(request::Stop {
                op,
                launch,
                signal,
                grace,
            }) => {
                tokio::spawn(async move {
                    let result = world.stop(launch, &signal, grace).await;
                    owed.give(DriverInput::Stopped { op, launch, result });
                });
            }
            DriverEffect::Signal(request::Signal { op, launch, signal }) => {
                tokio::spawn(async move {
                    let result = world.signal(launch, &signal).await;
                    owed.give(DriverInput::Signaled { op, launch, result });
                });
            }
            DriverEffect::Exec(request::Exec {
                op,
                launch,
                program,
                ..
            }) => {
                tokio::spawn(async move {
                    let ended = world.exec(launch, &program).await;
                    owed.give(DriverInput::executed(op, launch, ended));
                });
            }
            DriverEffect::Health(asked) => {
                let why = "only images have health checks of their own";
                owed.give(asked.failed(Failure::fatal(why)));
            }
            DriverEffect::OpenSession(asked) => {
                if let Some((opening, server)) = Opening::take(&world.inbox, &task, owed, &asked) {
                    tokio::spawn(world.open_session(asked, opening, server));
                }
            }
            DriverEffect::Destroy(request::Destroy { op, launch }) => {
                tokio::spawn(async move {
                    let result = world.destroy(&task, launch).await;
                    if result.is_ok() {
                        world.end_collecting(launch).await;
                    }
                    owed.give(DriverInput::Destroyed { op, launch, result });
                });
            }
        }
    }

    fn forget(&self, launch: LaunchId) {
        let world = self.world.clone();
        tokio::spawn(async move {
            world.held.forget(launch);
            world.measured.forget(launch);
            world.end_collecting(launch).await;
            let handles = world.handles.clone();
            if let Err(failure) = world.blocking(move || handles.remove(launch)).await {
                let error = failure.message;
                tracing::warn!(%launch, error, "cannot remove the handle of a launch");
            }
        });
    }
}

impl World {
    /// The plugin, if there is one.
    fn attached(&self) -> Result<Arc<Attached>, Failure> {
        let attached = self.plugin.borrow().clone();
        attached.ok_or_else(|| self.no_plugin())
    }

    /// The plugin, as soon as there is one.
    async fn wait_for_plugin(&self) -> Result<Arc<Attached>, Failure> {
        let mut plugin = self.plugin.subscribe();
        let there = timeout(PLUGIN_TIME, plugin.wait_for(Option::is_some)).await;
        let attached = there
            .ok()
            .and_then(Result::ok)
            .and_then(|there| there.clone());
        attached.ok_or_else(|| self.no_plugin())
    }

    fn no_plugin(&self) -> Failure {
        Failure::recoverable(format!("the plugin of driver {:?} does not run", self.name))
    }

    async fn start(
        self: Arc<Self>,
        owed: Answer,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) {
        let started = self.clone().try_start(&task, launch, config).await;
        if started.is_err() {
            self.end_collecting(launch).await;
        }
        match started {
            Ok((handle, network, attached)) => {
                owed.give(DriverInput::Started {
                    op,
                    launch,
                    network,
                });
                self.watch(task, launch, handle, attached).await;
            }
            Err(failure) => owed.give(DriverInput::StartFailed {
                op,
                launch,
                failure,
            }),
        }
    }

    async fn try_start(
        self: Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        config: Arc<TaskConfig>,
    ) -> Result<(Handle, Option<DriverNetwork>, Arc<Attached>), Failure> {
        let starting = Starting {
            world: &self,
            launch,
            done: false,
        };
        let attached = self.attached()?;
        let (world, key, plugin) = (self.clone(), task.clone(), attached.plugin.clone());
        let asked = attached.clone();
        // Only those of volumes say how they propagate. A driver may ignore what a device wants to be mounted.
        let volumes = config.reserved.mounts.iter();
        let has_volumes = volumes.clone().any(|it| !it.propagation_mode.is_empty());
        if has_volumes && !attached.plugin.capabilities().await?.mounts {
            let why = format!("driver {:?} does not support host volumes", self.name);
            return Err(Failure::fatal(why));
        }
        let setup = self
            .blocking(move || {
                // Whether it is needed only the driver knows, and it says so.
                if let Err(error) = Roots::detect().make() {
                    tracing::debug!(%error, "cannot create the cgroups that some drivers need");
                }
                let pipes = world.collectors.pipes(launch);
                let setup = setup::task(&asked.schema, &world.root, &key, launch, &config, pipes);
                if setup.is_ok() {
                    world.collect(&key, launch, config.logs)?;
                }
                // Remembered before it is asked for: what is not remembered was not asked for.
                if setup.is_ok() {
                    world.handles.write(launch, &Stage::Asked)?;
                }
                Ok(setup)
            })
            .await??;
        let id = setup.id.clone();
        let asked = tokio::select! {
            asked = plugin.start_task(setup) => asked,
            lost = plugin.lost() => Err(lost),
        };
        let started = match asked {
            Ok(started) => started,
            Err(error) => {
                // It may have started all the same, or start later.
                if !matches!(error, PluginError::Refused(_)) {
                    end_quietly(&plugin, &id).await;
                }
                return Err(error.into());
            }
        };
        let (handles, stage) = (
            self.handles.clone(),
            Stage::Started(started.handle.as_bytes().to_vec()),
        );
        let written = self.blocking(move || handles.write(launch, &stage)).await;
        if let Err(error) = written {
            end_quietly(&plugin, &id).await;
            return Err(error);
        }
        if !starting.succeeded() {
            end_quietly(&plugin, &id).await;
            return Err(Failure::fatal("it was destroyed while it started"));
        }
        Ok((started.handle, started.network, attached))
    }

    async fn recover(
        self: Arc<Self>,
        owed: Answer,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        logs: LogConfig,
    ) {
        self.collect_on(&task, launch, logs).await;
        let (found, handle) = match self.try_recover(launch).await {
            Ok(found) => found,
            Err(failure) => {
                let why = format!("cannot be recovered: {}", failure.message);
                (Found::Gone(why), None)
            }
        };
        let network = match &handle {
            Some((_, attached)) => network(attached, launch).await,
            None => None,
        };
        owed.give(DriverInput::Recovered {
            op,
            launch,
            found,
            network,
        });
        if let Some((handle, attached)) = handle {
            self.watch(task, launch, handle, attached).await;
        }
    }

    async fn try_recover(
        &self,
        launch: LaunchId,
    ) -> Result<(Found, Option<(Handle, Arc<Attached>)>), Failure> {
        let handles = self.handles.clone();
        let handle = match self.blocking(move || handles.read(launch)).await? {
            None => {
                self.held.never(launch);
                return Ok((Found::NeverStarted, None));
            }
            Some(Stage::Ended(result)) => return Ok((Found::Exited(result), None)),
            Some(Stage::Asked) => {
                let why = "the agent died while it was being started";
                return Ok((Found::Gone(why.to_owned()), None));
            }
            Some(Stage::Started(bytes)) => Handle::from_bytes(bytes),
        };
        let attached = self.wait_for_plugin().await?;
        let id = setup::id(launch);
        attached.plugin.recover_task(&id, &handle).await?;
        if !self.held.runs(launch) {
            return Ok((Found::Gone("it was destroyed".to_owned()), None));
        }
        Ok((Found::Running, Some((handle, attached))))
    }

    async fn stop(&self, launch: LaunchId, signal: &str, grace: Span) -> Result<(), Failure> {
        if !self.held.is_running(launch) {
            // What is over cannot be asked to end; it did.
            return Ok(());
        }
        let grace = Duration::from_nanos(u64::try_from(grace.0).unwrap_or(0));
        let plugin = self.attached()?.plugin.clone();
        match plugin.stop_task(&setup::id(launch), signal, grace).await {
            Err(error) if error.is_unknown_task() => Ok(()),
            stopped => stopped.map_err(Failure::from),
        }
    }

    async fn signal(&self, launch: LaunchId, signal: &str) -> Result<(), Failure> {
        if !self.held.is_running(launch) {
            return Err(Failure::fatal("task not running"));
        }
        let plugin = self.attached()?.plugin.clone();
        let sent = plugin.signal_task(&setup::id(launch), signal).await;
        sent.map_err(Failure::from)
    }

    /// The driver knows by itself as what and with what its tasks' programs run.
    async fn exec(&self, launch: LaunchId, program: &Program) -> Result<(i32, String), Failure> {
        if !self.held.is_running(launch) {
            return Err(Failure::fatal("task not running"));
        }
        let plugin = self.attached()?.plugin.clone();
        if !plugin.capabilities().await?.exec {
            let why = format!(
                "driver {:?} runs no further programs in its tasks",
                self.name
            );
            return Err(Failure::fatal(why));
        }
        let command: Vec<String> = iter::once(&program.command)
            .chain(&program.args)
            .cloned()
            .collect();
        let time = Duration::from_nanos(u64::try_from(program.timeout.0).unwrap_or(0));
        let ended = plugin.exec_task(&setup::id(launch), command, time).await;
        let ended = ended.map(|(exit, output)| (exit.code.unwrap_or_default(), output));
        if !matches!(ended, Ok((0, _))) {
            self.unless_it_ended(&plugin, launch).await;
        }
        Ok(ended?)
    }

    /// What ends with its task has not failed: the end of the task is told first.
    async fn unless_it_ended(&self, plugin: &Plugin, launch: LaunchId) {
        let status = plugin.inspect_task(&setup::id(launch)).await;
        if !status.is_ok_and(|status| status.running == Some(false)) {
            return;
        }
        let ending = self.held.until_ended(launch);
        // One that nobody tells is no reason to wait for ever.
        let _ = timeout(PLUGIN_TIME, ending).await;
    }

    /// Runs work that touches the disk where it hurts nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.gate.run(work).await;
        let done = done.unwrap_or_else(|lost| Err(std::io::Error::other(lost)));
        done.map_err(|error| Failure::recoverable(error.to_string()))
    }
}

/// Ends what may have started without anybody knowing.
async fn end_quietly(plugin: &Plugin, id: &str) {
    if let Err(error) = plugin.destroy_task(id, true).await
        && !error.is_unknown_task()
    {
        tracing::warn!(task = id, %error, "cannot end a task that may have started");
    }
}

/// What the driver knows of the network of a task that it found again, as far as it says so.
async fn network(attached: &Attached, launch: LaunchId) -> Option<DriverNetwork> {
    let status = attached.plugin.inspect_task(&setup::id(launch)).await;
    status.ok()?.network
}

/// A start that is under way.
struct Starting<'a> {
    world: &'a World,
    launch: LaunchId,
    done: bool,
}

impl Starting<'_> {
    /// Notes that the task runs. False if it was destroyed meanwhile.
    fn succeeded(mut self) -> bool {
        self.done = true;
        self.world.held.runs(self.launch)
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.world.held.start_failed(self.launch);
        }
    }
}
