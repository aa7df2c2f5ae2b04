//! Reports about drivers, and messages to people.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::input::{DriverHealth, DriverReport, NodeInput, ShutdownMode};
use drover_core::model::event::TaskEvent;
use drover_core::model::node::DriverInfo;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};

/// Values as short as this may stand anywhere by chance.
const SHORT: usize = 8;

/// What was last said of each driver in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct DriverReports {
    drivers: BTreeMap<String, DriverHealth>,
}

impl DriverReports {
    /// The agent is told something of the node. One that ends does not listen.
    pub(super) fn delivered(&mut self, agent: &Agent, reported: &NodeInput) {
        let NodeInput::Driver { op, driver, report } = reported else {
            return;
        };
        let view = agent.view();
        let delivered = view.machine().drivers().listens_to(driver, *op);
        let deaf = view.stopped() || view.shutdown() == Some(ShutdownMode::KeepTasks);
        if deaf || !delivered {
            return;
        }
        match report {
            DriverReport::Fingerprint(it) => drop(self.drivers.insert(driver.clone(), it.health)),
            DriverReport::Failed(_) | DriverReport::Ended(_) => drop(self.drivers.remove(driver)),
        }
    }
}

impl Checker {
    /// The last report of a driver is its known state.
    pub(super) fn last_driver_report_counts(&mut self, agent: &Agent) -> Verdict {
        if self.driver_reports.drivers.is_empty() {
            return Ok(());
        }
        let known = &agent.view().node().drivers;
        let mut reported = self.driver_reports.drivers.iter();
        let differs = |info: &DriverInfo, health: DriverHealth| {
            info.healthy != (health == DriverHealth::Healthy)
                || info.detected != (health != DriverHealth::Undetected)
        };
        let wrong = reported
            .find(|(name, health)| known.get(*name).is_none_or(|info| differs(info, **health)));
        let wrong = wrong.map(|(name, info)| format!("{name}: {info:?}"));
        self.holds(Property::LastDriverReportCounts, wrong.is_none(), || {
            wrong.clone().unwrap_or_default()
        })
    }

    /// No event shows the value of a variable of the job.
    pub(super) fn no_event_shows_a_secret(
        &mut self,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let mut secrets = task.spec().task().env.values();
        let shows = |secret: &&String| {
            let mut texts = event.details.values().chain([&event.display_message]);
            secret.len() > SHORT && texts.any(|text| text.contains(secret.as_str()))
        };
        let shown = secrets.find(shows);
        self.holds(Property::NoEventShowsASecret, shown.is_none(), || {
            format!("{:?} {}", task.spec().key, event.kind.as_str())
        })
    }
}
