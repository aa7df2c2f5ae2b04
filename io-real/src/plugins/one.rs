//! One plugin: started when it is needed, found again where an earlier agent started it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::driver::spec::{Spec, Strictness, decode};
use drover_core::fingerprint::PluginKind as Kind;
use drover_core::model::processors::Processors;
use drover_core::model::value::Value;
use drover_core::op::Failure;

use super::PluginConfig;
use super::memory::{Memory, Remembered};
use super::status::{Named, Notes, Status};
use crate::allowed::Allowed;
use crate::driver::Inbox;
use crate::driver::external::{Collectors, Handles, PluginDriver};
use crate::one_task::OneTask;
use crate::plugin::{
    DriverSettings, LaunchSpec, Limits, Plugin, PluginDir, PluginError, PluginInfo, PluginKind,
};
use crate::stats::listening::Listening;

/// The ports that helpers of drivers may listen on.
const HELPERS: (u16, u16) = (14_000, 14_512);

/// What all plugins share.
pub(super) struct PluginContext {
    pub(super) dir: PluginDir,
    pub(super) memory: Memory,
    pub(super) handles: Handles,
    pub(super) collectors: Collectors,
    pub(super) sockets: PathBuf,
    pub(super) root: PathBuf,
    pub(super) processors: Processors,
    pub(super) inbox: Inbox,
    pub(super) drivers: Allowed,
}

/// A plugin that runs and was configured.
pub(super) struct Running {
    pub(super) plugin: Arc<Plugin>,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) version: String,
}

impl Running {
    /// Why its stream broke off: the error, or how it ended if it did.
    pub(super) async fn broke(&self, error: PluginError) -> String {
        if self.plugin.is_alive() {
            return error.to_string();
        }
        self.plugin.lost().await.to_string()
    }
}

/// One plugin.
pub(super) struct One {
    config: PluginConfig,
    context: Arc<PluginContext>,
    /// Held while it is started, so that it is started once.
    running: tokio::sync::Mutex<Option<Arc<Running>>>,
    driver: Mutex<Option<PluginDriver>>,
    /// Who listens to it at present.
    watch: OneTask,
    /// Who listens to what it measures.
    device_stats: Listening,
    notes: Notes,
}

impl One {
    pub(super) fn new(config: PluginConfig, context: Arc<PluginContext>) -> One {
        One {
            config,
            context,
            running: tokio::sync::Mutex::default(),
            driver: Mutex::default(),
            watch: OneTask::default(),
            device_stats: Listening::default(),
            notes: Notes::default(),
        }
    }

    /// Who listens to what it measures of its devices.
    pub(super) fn device_stats(&self) -> &Listening {
        &self.device_stats
    }

    /// The plugin, if it runs.
    pub(super) async fn if_running(&self) -> Option<Arc<Running>> {
        let running = self.running.lock().await;
        running
            .as_ref()
            .filter(|one| one.plugin.is_alive())
            .cloned()
    }

    /// What an earlier agent knew of it.
    pub(super) fn remembered(&self) -> Option<(Kind, String)> {
        let known = self.context.memory.read(&self.config.file)?;
        self.notes.named(Named {
            kind: known.kind,
            name: known.name.clone(),
            version: known.version,
        });
        if self.denial().is_some() {
            return None;
        }
        if known.kind == Kind::Driver {
            self.make_driver(&known.name);
        }
        Some((known.kind, known.name))
    }

    /// How its program is doing.
    pub(super) fn status(&self) -> Status {
        Status {
            denied: self.denial(),
            ..self.notes.status(&self.config.file)
        }
    }

    /// Why it is not wanted, if it said that it is a driver which is not.
    pub(super) fn denial(&self) -> Option<String> {
        let driver = self.notes.name().filter(|it| it.kind == Kind::Driver)?;
        self.context.drivers.denial(&driver.name)
    }

    /// Ends it with what it runs, because it is not wanted.
    pub(super) async fn end_denied(&self, running: &Arc<Running>) {
        running.plugin.kill(true).await;
        *self.running.lock().await = None;
        if let Err(error) = self.context.memory.forget(&self.config.file) {
            tracing::warn!(plugin = self.config.file, %error, "cannot forget a plugin");
        }
    }

    /// The driver that it is, if it is one.
    pub(super) fn driver(&self) -> Option<PluginDriver> {
        self.held_driver().clone()
    }

    fn held_driver(&self) -> MutexGuard<'_, Option<PluginDriver>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_driver(&self, name: &str) -> PluginDriver {
        let context = &self.context;
        let make = || {
            let (root, inbox) = (context.root.clone(), context.inbox.clone());
            let (handles, collectors) = (context.handles.clone(), context.collectors.clone());
            PluginDriver::new(name.to_owned(), handles, collectors, root, inbox)
        };
        self.held_driver().get_or_insert_with(make).clone()
    }

    /// From now on this listens to the plugin; who did before does not any more.
    pub(super) fn watch(&self, listening: impl Future<Output = ()> + Send + 'static) {
        self.watch.begin(listening);
    }

    /// The plugin, started if it does not run.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) async fn running(&self) -> Result<Arc<Running>, Failure> {
        let mut running = self.running.lock().await;
        if let Some(alive) = running.as_ref().filter(|one| one.plugin.is_alive()) {
            return Ok(alive.clone());
        }
        *running = None;
        let started = Arc::new(self.begin().await?);
        *running = Some(started.clone());
        Ok(started)
    }

    /// The plugin is of no use any more. A driver goes on with its tasks if it can.
    pub(super) async fn give_up(&self, given_up: &Arc<Running>) {
        let mut running = self.running.lock().await;
        if !running
            .as_ref()
            .is_some_and(|one| Arc::ptr_eq(one, given_up))
        {
            return;
        }
        match given_up.kind {
            Kind::Device => {
                given_up.plugin.kill(true).await;
                *running = None;
            }
            Kind::Driver if !given_up.plugin.is_alive() => {
                if let Some(driver) = self.driver() {
                    driver.detach();
                }
                *running = None;
            }
            Kind::Driver => {}
        }
    }

    /// The agent ends.
    pub(super) async fn agent_ends(&self) {
        let running = self.running.lock().await.take();
        let Some(running) = running.filter(|one| one.kind == Kind::Device) else {
            return;
        };
        running.plugin.stop(true).await;
        if let Err(error) = self.context.memory.forget(&self.config.file) {
            tracing::warn!(plugin = self.config.file, %error, "cannot forget a plugin");
        }
    }

    async fn begin(&self) -> Result<Running, Failure> {
        if let Some(found) = self.find_again().await {
            return Ok(found);
        }
        let program = (self.context.dir.program(&self.config.file))
            .map_err(|error| Failure::recoverable(error.to_string()))?;
        let spec = LaunchSpec {
            args: self.config.args.clone(),
            socket_dir: Some(self.context.sockets.clone()),
            ..LaunchSpec::default()
        };
        self.notes.started();
        let plugin = Arc::new(Plugin::launch(&program, &spec).await?);
        match self.set_up(&plugin, true).await {
            Ok(running) => Ok(running),
            Err(failure) => {
                plugin.kill(true).await;
                Err(failure)
            }
        }
    }

    /// A driver of an earlier agent is used on; a plugin of devices is ended, because nobody can
    /// ask it what it was asked before.
    async fn find_again(&self) -> Option<Running> {
        let known = self.context.memory.read(&self.config.file)?;
        let process = known.process?;
        if known.kind == Kind::Device {
            if let Err(error) = process.end().await {
                tracing::warn!(plugin = known.name, %error, "cannot end an earlier agent's plugin");
            }
            return None;
        }
        let plugin = Arc::new(Plugin::reattach(&process, Limits::default()).await.ok()?);
        match self.set_up(&plugin, false).await {
            Ok(running) => Some(running),
            Err(failure) => {
                let why = failure.message;
                tracing::warn!(
                    plugin = known.name,
                    why,
                    "an earlier agent's plugin is of no use"
                );
                plugin.kill(false).await;
                None
            }
        }
    }

    /// Asks a plugin who it is and gives it its configuration.
    async fn set_up(&self, plugin: &Arc<Plugin>, new: bool) -> Result<Running, Failure> {
        self.notes.runs(Arc::downgrade(plugin));
        let info = plugin.info().await?;
        let kind = match info.kind {
            PluginKind::Driver => Kind::Driver,
            PluginKind::Device => Kind::Device,
        };
        if new {
            self.configure(plugin, &info, kind).await?;
        }
        self.remember(plugin, &info, kind)?;
        self.notes.named(Named {
            kind,
            name: info.name.clone(),
            version: info.version.text.clone(),
        });
        if kind == Kind::Driver {
            let schema = plugin.task_schema().await?;
            self.make_driver(&info.name).attach(plugin.clone(), schema);
        }
        Ok(Running {
            plugin: plugin.clone(),
            kind,
            name: info.name,
            version: info.version.text.clone(),
        })
    }

    async fn configure(
        &self,
        plugin: &Plugin,
        info: &PluginInfo,
        kind: Kind,
    ) -> Result<(), Failure> {
        let config = self.decoded(plugin.config_schema().await?)?;
        let settings = DriverSettings {
            ports: HELPERS,
            processors: self.context.processors.clone(),
        };
        let settings = (kind == Kind::Driver).then_some(&settings);
        plugin
            .configure(&config, &info.api_version, settings)
            .await?;
        if kind == Kind::Driver {
            plugin.init().await?;
        }
        Ok(())
    }

    /// The configuration by the schema that the plugin announces.
    fn decoded(&self, schema: Option<Spec>) -> Result<Value, Failure> {
        let config = &self.config.config;
        match schema {
            None if config.is_empty() => Ok(Value::Map(config.clone())),
            None => Err(Failure::fatal(
                "it takes no configuration, and is given one",
            )),
            Some(schema) => decode(&schema, config, Strictness::Resolved).map_err(|problems| {
                let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Failure::fatal(format!("its configuration: {}", texts.join("; ")))
            }),
        }
    }

    fn remember(&self, plugin: &Plugin, info: &PluginInfo, kind: Kind) -> Result<(), Failure> {
        let known = Remembered {
            kind,
            name: info.name.clone(),
            version: info.version.text.clone(),
            process: Some(plugin.remember()),
        };
        let written = self.context.memory.write(&self.config.file, &known);
        written.map_err(|error| PluginError::from(error).into())
    }
}
