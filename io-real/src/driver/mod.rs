//! Drivers: what starts tasks for real. They decide nothing; they carry out one effect at a time,
//! and answer.

mod answer;
pub mod denied;
pub mod docker;
pub mod exec;
pub mod external;
pub mod mock;
pub mod raw_exec;
mod session;
mod shims;
mod signal;
mod stream;

pub(crate) use signal::names as signal_names;
pub use stream::DriverStream;

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, ImageQuery};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, ImageDigests};
use drover_core::model::node::DriverInfo;
use drover_core::op::Failure;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::session::Sessions;
use crate::stats::StatsSource;

/// What is done, at the start of an agent, with launches that run and that its state does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// They are ended.
    End,
    /// They are left running: the state that knew them may have been lost.
    Leave,
}

/// The way of answers to the core, and the ends of sessions that were asked for.
#[derive(Clone, Debug)]
pub struct Inbox(mpsc::UnboundedSender<Input>, Sessions);

impl Inbox {
    /// A way that ends in `to`.
    pub fn new(to: mpsc::UnboundedSender<Input>) -> Inbox {
        Inbox(to, Sessions::default())
    }

    /// The sessions that drivers are asked to open.
    pub fn sessions(&self) -> &Sessions {
        &self.1
    }

    /// Delivers an input. Nobody listens any more once the agent has stopped; that is fine.
    pub fn deliver(&self, input: Input) {
        let _ = self.0.send(input);
    }

    /// Whether somebody listens.
    fn is_received(&self) -> bool {
        !self.0.is_closed()
    }

    /// Delivers what a driver says.
    pub fn send(&self, task: &TaskKey, input: DriverInput) {
        self.deliver(Input::Driver(task.clone(), input));
    }
}

/// One driver.
pub trait Driver: Send + Sync {
    /// Its name in job files.
    fn name(&self) -> &str;

    /// Its condition on this machine.
    fn fingerprint(&self) -> DriverInfo;

    /// Begins to tell of its condition, now and whenever it changes, without blocking. An earlier
    /// stream is over.
    fn watch(&self, report: DriverStream) {
        report.report_once(&self.fingerprint());
    }

    /// Begins to do what `effect` says, without blocking, and sees to it that exactly one answer
    /// follows.
    fn carry_out(&self, task: TaskKey, effect: DriverEffect);

    /// Asks the registry of an image what its tag means, and finds out which content launches run.
    fn look_up_image(
        &self,
        _query: Arc<ImageQuery>,
    ) -> BoxFuture<'static, Result<ImageDigests, Failure>> {
        let failure = Failure::fatal(format!("the driver {} knows no images", self.name()));
        async move { Err(failure) }.boxed()
    }

    /// Where what a launch uses can be measured, if it runs and that is known.
    fn stats_source(&self, _launch: LaunchId) -> Option<StatsSource> {
        None
    }

    /// Begins to remove what it keeps of a launch that is over for good, without blocking.
    fn forget(&self, launch: LaunchId);
}

/// The condition of a driver that works.
fn healthy() -> DriverInfo {
    DriverInfo {
        detected: true,
        healthy: true,
        description: "Healthy".to_owned(),
    }
}
