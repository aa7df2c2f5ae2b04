//! Devices: what reports them, and what tasks need in order to use them. What is believed, and
//! which task gets which, the core decides.

pub mod declared;
mod measured;
pub mod nvidia;

pub use measured::Measured;

use std::collections::BTreeSet;

use drover_core::agent::Input;
use drover_core::device::reported::ReportedGroup;
use drover_core::input::{DeviceReport, HookOutput, NodeInput};
use drover_core::model::device::GroupId;
use drover_core::op::{Failure, Op};
use futures::future::BoxFuture;

use crate::driver::Inbox;

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
