//! Reports about drivers, and messages to people.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::input::{DriverHealth, DriverReport, NodeInput, ShutdownMode};
use drover_core::model::event::TaskEvent;
use drover_core::model::node::DriverInfo;
use drover_core::operations::Purpose;
use drover_core::task::runner::TaskRunner;
use drover_core::time::{Span, Timestamp};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Values as short as this may stand anywhere by chance.
const SHORT: usize = 8;

/// What was last said of each driver in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct DriverReports {
    drivers: BTreeMap<String, DriverHealth>,
    /// The driver of which something is said in this step, as it was known before.
    before: Option<(String, Shown)>,
    /// How often each probe failed since it last worked.
    failures: BTreeMap<String, u32>,
    /// The probe that fails in this step.
    fails: Option<String>,
}

/// The first and the longest pause before a probe that failed is asked again.
const PAUSES: (Span, Span) = (Span::secs(2), Span::secs(300));

/// A driver as operators see it, and since when.
type Shown = (DriverInfo, BTreeMap<String, String>, Timestamp);

fn shown(agent: &Agent, name: &str) -> Option<Shown> {
    let drivers = agent.view().machine().drivers();
    let (_, info, attributes) = drivers.known().find(|(known, ..)| &***known == name)?;
    let changed = drivers.get(name)?.changed();
    Some((info.clone(), attributes.clone(), changed))
}

impl DriverReports {
    /// The agent is told something of the node. One that ends does not listen.
    pub(super) fn delivered(&mut self, agent: &Agent, reported: &NodeInput) {
        self.probed(agent, reported);
        let NodeInput::Driver { op, driver, report } = reported else {
            return;
        };
        let view = agent.view();
        let delivered = view.machine().drivers().listens_to(driver, *op);
        let deaf = view.stopped() || view.shutdown() == Some(ShutdownMode::KeepTasks);
        if deaf || !delivered {
            return;
        }
        self.before = shown(agent, driver).map(|before| (driver.to_string(), before));
        match report {
            DriverReport::Fingerprint(it) => drop(self.drivers.insert(driver.clone(), it.health)),
            DriverReport::Failed(_) | DriverReport::Ended(_) => drop(self.drivers.remove(driver)),
        }
    }
}

impl DriverReports {
    /// The agent is called back: a probe whose time is over has failed.
    pub(super) fn called_back(&mut self, world: &World, agent: &Agent) {
        self.fails = None;
        for (_, operation) in agent.view().operations().iter() {
            let late = operation
                .until()
                .is_some_and(|until| until <= world.scene.at);
            if let Purpose::Probe(name) = &operation.purpose
                && late
            {
                *self.failures.entry(name.to_string()).or_default() += 1;
            }
        }
    }

    /// A probe answers, if that is awaited.
    fn probed(&mut self, agent: &Agent, reported: &NodeInput) {
        self.fails = None;
        let NodeInput::Probed { op, probe, result } = reported else {
            return;
        };
        let view = agent.view();
        let awaited = view.operations().get(*op).is_some();
        if !awaited || view.stopped() || view.shutdown() == Some(ShutdownMode::KeepTasks) {
            return;
        }
        match result {
            Ok(_) => drop(self.failures.remove(probe)),
            Err(_) => {
                *self.failures.entry(probe.clone()).or_default() += 1;
                self.fails = Some(probe.clone());
            }
        }
    }
}

impl Checker {
    /// A probe that failed for the first time is asked again soon, and later each time after that.
    pub(super) fn failed_probe_is_asked_again_in_time(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let Some(name) = self.driver_reports.fails.take() else {
            return Ok(());
        };
        let times = self
            .driver_reports
            .failures
            .get(&name)
            .copied()
            .unwrap_or(1);
        let (first, longest) = PAUSES;
        let pause = Span(first.0 << times.saturating_sub(1).min(20)).min(longest);
        let mut probes = agent.view().machine().fingerprints().probes();
        let again = probes.find(|probe| probe.name() == name);
        let again = again.and_then(|probe| probe.asked_again());
        let soonest = world.scene.at + pause;
        let latest = world.scene.at + Span(pause.0 + pause.0 / 4);
        let holds = again.is_some_and(|at| (soonest..=latest).contains(&at));
        self.holds(Property::FailedProbeIsAskedAgainInTime, holds, || {
            format!(
                "{name} failed {times} times at {:?}, asked again at {again:?}",
                world.scene.at
            )
        })
    }

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

    /// Who only says again what is known of a driver changes nothing of it, and who says something else does it now.
    pub(super) fn driver_changes_with_news(&mut self, world: &World, agent: &Agent) -> Verdict {
        let Some((name, (info, attributes, changed))) = self.driver_reports.before.take() else {
            return Ok(());
        };
        let Some(now) = shown(agent, &name) else {
            return Ok(());
        };
        let is_news = (&now.0, &now.1) != (&info, &attributes);
        let expected = if is_news { world.now().wall } else { changed };
        self.holds(Property::DriverChangesWithNews, now.2 == expected, || {
            format!(
                "{name}: changed at {changed:?}, news {is_news}, now at {:?}",
                now.2
            )
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
