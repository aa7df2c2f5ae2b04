//! Devices: what reports them, and what tasks need in order to use them. What is believed, and
//! which task gets which, the core decides.

pub mod declared;
mod measured;
pub mod nvidia;

pub use measured::Measured;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::device::reported::ReportedGroup;
use drover_core::input::{DeviceReport, HookOutput, NodeInput};
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::op::{Failure, Op};
use futures::future::BoxFuture;

use crate::driver::Inbox;
use crate::driver::external::PluginDriver;
use crate::plugins::Plugins;

/// Somebody who has devices: a plugin, or a part of this program.
pub trait DevicePlugin: Send + Sync {
    /// Its name among all plugins.
    fn name(&self) -> &str;

    /// Begins to tell of its devices, now and whenever they change, without blocking. An earlier
    /// stream is over.
    fn watch(&self, report: DeviceStream);

    /// What a task needs in order to use these devices of a group.
    fn reserve<'a>(
        &'a self,
        group: &'a GroupId,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<HookOutput, Failure>>;

    /// Somebody looks at what these devices use, or at all: sees to it that `to` knows it. Who
    /// looks does not wait long, so this may be dropped before it is done.
    fn measure<'a>(
        &'a self,
        _ids: Option<&'a BTreeSet<String>>,
        _to: &'a Measured,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

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

/// The way of one stream's news to the core. Dropping it ends the stream.
#[derive(Debug)]
pub struct DeviceStream {
    op: Op,
    plugin: String,
    inbox: Inbox,
    ended: bool,
}

impl DeviceStream {
    /// The stream of this number, of this plugin.
    pub fn new(op: Op, plugin: &str, inbox: Inbox) -> DeviceStream {
        DeviceStream {
            op,
            plugin: plugin.to_owned(),
            inbox,
            ended: false,
        }
    }

    /// All devices, as they are now.
    pub fn report(&self, groups: Vec<ReportedGroup>) {
        self.deliver(DeviceReport::Devices(groups));
    }

    /// There is nothing for the plugin on this machine, and never will be.
    pub fn disabled(mut self, why: impl Into<String>) {
        self.ended = true;
        self.deliver(DeviceReport::Disabled(why.into()));
    }

    /// Nothing more will come.
    pub fn ended(mut self, why: impl Into<String>) {
        self.ended = true;
        self.deliver(DeviceReport::Ended(why.into()));
    }

    fn deliver(&self, report: DeviceReport) {
        self.inbox.deliver(Input::Node(NodeInput::Devices {
            op: self.op,
            plugin: self.plugin.clone(),
            report,
        }));
    }
}

impl Drop for DeviceStream {
    fn drop(&mut self) {
        if !self.ended {
            self.deliver(DeviceReport::Ended("it is not watched any more".to_owned()));
        }
    }
}
