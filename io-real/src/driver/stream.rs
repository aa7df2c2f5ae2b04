//! The way of a driver's reports about itself to the core.

use drover_core::agent::Input;
use drover_core::input::{DriverFingerprint, DriverHealth, DriverReport, NodeInput};
use drover_core::model::node::DriverInfo;
use drover_core::op::Op;

use super::Inbox;

/// The way of one stream's news. Dropping it ends the stream.
#[derive(Debug)]
pub struct DriverStream {
    op: Op,
    driver: String,
    inbox: Inbox,
    ended: bool,
}

impl DriverStream {
    /// The stream of this number, of this driver.
    pub fn new(op: Op, driver: &str, inbox: Inbox) -> DriverStream {
        DriverStream {
            op,
            driver: driver.to_owned(),
            inbox,
            ended: false,
        }
    }

    /// The driver's condition, as it is now.
    pub fn report(&self, fingerprint: DriverFingerprint) {
        self.deliver(DriverReport::Fingerprint(fingerprint));
    }

    /// The condition could not be found out this time.
    pub fn failed(&self, why: impl Into<String>) {
        self.deliver(DriverReport::Failed(why.into()));
    }

    /// Nothing more will come.
    pub fn ended(mut self, why: impl Into<String>) {
        self.ended = true;
        self.deliver(DriverReport::Ended(why.into()));
    }

    /// The condition of a driver in this program, which changes only with the program: it is told
    /// once, and the stream stays open.
    pub fn report_once(mut self, info: &DriverInfo) {
        self.ended = true;
        let health = match (info.detected, info.healthy) {
            (false, _) => DriverHealth::Undetected,
            (true, false) => DriverHealth::Unhealthy,
            (true, true) => DriverHealth::Healthy,
        };
        self.report(DriverFingerprint {
            health,
            description: info.description.clone(),
            ..DriverFingerprint::default()
        });
    }

    fn deliver(&self, report: DriverReport) {
        self.inbox.deliver(Input::Node(NodeInput::Driver {
            op: self.op,
            driver: self.driver.clone(),
            report,
        }));
    }
}

impl Drop for DriverStream {
    fn drop(&mut self) {
        if !self.ended {
            self.deliver(DriverReport::Ended("it is not watched any more".to_owned()));
        }
    }
}
