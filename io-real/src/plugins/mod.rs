//! The plugins of this agent: which programs its configuration names, which of them run, and what
//! each turned out to be.
//!
//! A plugin is looked for by a probe of its own: it is started, asked for its name, and given its
//! configuration. When that worked, the core knows its name and listens to it. When it is asked
//! again, and how soon, the core decides; here is only the work.
//!
//! It lends a plugin to the loop as a driver (`driver/external/`) or as devices (`device/`), and
//! remembers how the next agent finds it. `device/declared.rs` has devices that need no plugin.

mod device_plugins;
mod devices;
mod drivers;
mod memory;
mod one;
mod status;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::fingerprint::{Fingerprint, Plugin as Found, PluginKind};
use drover_core::model::processors::Processors;
use drover_core::model::value::Value;
use drover_core::op::Failure;

use crate::allowed::Allowed;
use crate::device::DevicePlugin;
use crate::driver::external::{Collectors, Handles, PluginDriver};
use crate::driver::{DriverStream, Inbox};
use crate::plugin::PluginDir;

pub use device_plugins::DevicePlugins;
use memory::Memory;
pub(crate) use memory::{forget, remembered};
use one::One;
pub use status::{Named, Runs, Status};

/// What the names of plugins' probes begin with.
const PROBE: &str = "plugin ";

/// A plugin, as the configuration names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginConfig {
    /// The name of its program in the directory of plugins.
    pub file: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its own configuration.
    pub config: BTreeMap<String, Value>,
}

/// Where plugins are, and what they are given.
pub struct PluginSettings {
    /// The directory of their programs.
    pub dir: PathBuf,
    /// What is remembered of them; a directory that belongs to the agent alone.
    pub memory: OwnedFd,
    /// What is remembered of drivers' tasks; a directory that belongs to the agent alone.
    pub handles: OwnedFd,
    /// Those who collect the output of tasks.
    pub collectors: Collectors,
    /// Where their sockets are made.
    pub sockets: PathBuf,
    /// The directories of allocations, as tasks see them.
    pub root: PathBuf,
    /// The machine's processors.
    pub processors: Processors,
    /// The way of answers.
    pub inbox: Inbox,
    /// The drivers that are wanted.
    pub drivers: Allowed,
}

/// Every plugin of this agent. Cheap to clone.
#[derive(Clone)]
pub struct Plugins(Arc<Inner>);

struct Inner {
    /// By the names of their programs.
    plugins: BTreeMap<String, Arc<One>>,
    /// Those that are known, by what they are and by their own names.
    known: Mutex<BTreeMap<(PluginKind, String), Arc<One>>>,
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.plugins.keys()).finish()
    }
}

impl Default for Plugins {
    fn default() -> Plugins {
        Plugins::none()
    }
}

impl Plugins {
    /// No plugins.
    pub fn none() -> Plugins {
        Plugins(Arc::new(Inner {
            plugins: BTreeMap::new(),
            known: Mutex::default(),
        }))
    }

    /// These plugins, none of which was started yet. Drivers that an earlier agent knew are there
    /// at once, so that their tasks are looked for when they run.
    ///
    /// # Errors
    /// The directory of plugins cannot be used; what to do.
    pub fn new(configs: Vec<PluginConfig>, settings: PluginSettings) -> io::Result<Plugins> {
        let Some(first) = configs.first() else {
            return Ok(Plugins::none());
        };
        let dir = PluginDir::open(&settings.dir).map_err(|error| {
            let dir = settings.dir.display();
            let first = &first.file;
            io::Error::other(format!(
                "the directory of plugins {dir}: {error}; plugin {first:?} is to be a program there \
                 (plugin_dir says where else)"
            ))
        })?;
        let context = Arc::new(one::PluginContext {
            dir,
            memory: Memory::new(settings.memory),
            handles: Handles::new(settings.handles),
            collectors: settings.collectors,
            sockets: settings.sockets,
            root: settings.root,
            processors: settings.processors,
            inbox: settings.inbox,
            drivers: settings.drivers,
        });
        let one = |config: PluginConfig| {
            let file = config.file.clone();
            (file, Arc::new(One::new(config, context.clone())))
        };
        let plugins: BTreeMap<String, Arc<One>> = configs.into_iter().map(one).collect();
        let known = plugins.values().filter_map(|one| {
            let (kind, name) = one.remembered()?;
            Some(((kind, name), one.clone()))
        });
        let known = Mutex::new(known.collect());
        Ok(Plugins(Arc::new(Inner { plugins, known })))
    }

    /// The names of the probes that look for them.
    pub fn probes(&self) -> impl Iterator<Item = String> {
        self.0.plugins.keys().map(|file| Plugins::probe_of(file))
    }

    /// The name of the probe that looks for the plugin of this program.
    pub fn probe_of(file: &str) -> String {
        format!("{PROBE}{file}")
    }

    /// How each program is doing, by name.
    pub fn status(&self) -> Vec<Status> {
        let plugins = self.0.plugins.values();
        plugins.map(|one| one.status()).collect()
    }

    /// Looks for the plugin that this probe is there for: starts it if it does not run.
    /// None if it is no probe of a plugin.
    pub async fn probe(&self, name: &str) -> Option<Result<Fingerprint, Failure>> {
        let one = self.0.plugins.get(name.strip_prefix(PROBE)?)?;
        Some(self.find(one).await)
    }

    async fn find(&self, one: &Arc<One>) -> Result<Fingerprint, Failure> {
        let running = one.running().await?;
        if one.denial().is_some() {
            one.end_denied(&running).await;
            return Ok(Fingerprint::default());
        }
        let found = Found {
            kind: running.kind,
            name: running.name.clone(),
            version: running.version.clone(),
        };
        let mut known = self.known();
        let holder = known.entry((found.kind, found.name.clone()));
        if !Arc::ptr_eq(holder.or_insert_with(|| one.clone()), one) {
            let why = format!("its name {:?} is another plugin's", found.name);
            return Err(Failure::fatal(why));
        }
        Ok(Fingerprint {
            plugins: vec![found],
            ..Fingerprint::default()
        })
    }

    /// The driver of this name, if a plugin is it.
    pub fn driver(&self, name: &str) -> Option<PluginDriver> {
        self.named(PluginKind::Driver, name)?.driver()
    }

    /// The names of the plugins of devices that are known by now.
    pub(crate) fn device_names(&self) -> Vec<String> {
        let known = self.known();
        let devices = known.keys().filter(|(kind, _)| *kind == PluginKind::Device);
        devices.map(|(_, name)| name.clone()).collect()
    }

    /// The plugin of devices of this name.
    pub fn devices(&self, name: &str) -> Option<Arc<dyn DevicePlugin>> {
        let one = self.named(PluginKind::Device, name)?;
        Some(Arc::new(devices::Devices::new(name, one)))
    }

    /// Begins to tell how the driver of this name is. The stream ends at once if there is none.
    pub fn watch_driver(&self, name: &str, report: DriverStream) {
        match self.named(PluginKind::Driver, name) {
            Some(one) => one
                .clone()
                .watch(drivers::forward_fingerprints(one, report)),
            None => report.ended("this agent has no such driver"),
        }
    }

    /// Ends what does not outlive the agent: plugins of devices. Drivers go on with their tasks.
    pub async fn end(&self) {
        for one in self.0.plugins.values() {
            one.agent_ends().await;
        }
    }

    fn named(&self, kind: PluginKind, name: &str) -> Option<Arc<One>> {
        self.known().get(&(kind, name.to_owned())).cloned()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(PluginKind, String), Arc<One>>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
