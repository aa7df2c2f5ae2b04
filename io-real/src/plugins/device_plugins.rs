//! Every plugin of devices: those of this program, and those that run beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::input::HookOutput;
use drover_core::model::device::AssignedDevices;
use drover_core::op::Failure;

use super::Plugins;
use crate::device::DevicePlugin;
use crate::driver::external::PluginDriver;

/// Every plugin: those of this program by name, and those that run beside it. Cheap to clone.
#[derive(Clone)]
pub struct DevicePlugins {
    own: Arc<BTreeMap<String, Arc<dyn DevicePlugin>>>,
    others: Plugins,
}

impl DevicePlugins {
    /// These of this program, and others.
    pub fn new(own: Vec<Arc<dyn DevicePlugin>>, others: Plugins) -> DevicePlugins {
        let named = own.into_iter().map(|one| (one.name().to_owned(), one));
        DevicePlugins {
            own: Arc::new(named.collect()),
            others,
        }
    }

    /// The names of those of this program.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }

    /// The names of all that are known by now.
    pub fn all_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names().map(str::to_owned).collect();
        names.extend(self.others.device_names());
        names
    }

    /// The driver of this name, if it runs beside this program.
    pub(crate) fn driver(&self, name: &str) -> Option<PluginDriver> {
        self.others.driver(name)
    }

    /// One of all.
    pub fn get(&self, name: &str) -> Option<Arc<dyn DevicePlugin>> {
        let own = self.own.get(name).cloned();
        own.or_else(|| self.others.devices(name))
    }

    /// What a task needs in order to use all of these: variables of a later group win, the rest
    /// is put together.
    ///
    /// # Errors
    /// The first plugin that is not there or refuses.
    pub async fn reserve(&self, devices: &[AssignedDevices]) -> Result<HookOutput, Failure> {
        let mut all = HookOutput::default();
        for one in devices {
            let Some(plugin) = self.get(&one.plugin) else {
                let why = format!(
                    "failed to reserve device {}: no plugin {:?}",
                    one.group, one.plugin
                );
                return Err(Failure::recoverable(why));
            };
            let given = plugin.reserve(&one.group, &one.ids).await;
            let given = given.map_err(|failure| Failure {
                message: format!(
                    "failed to reserve device {}: {}",
                    one.group, failure.message
                ),
                recoverable: failure.recoverable,
            })?;
            all.env.extend(given.env);
            all.mounts.extend(given.mounts);
            all.nodes.extend(given.nodes);
        }
        Ok(all)
    }
}
