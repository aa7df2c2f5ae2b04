//! Reports about drivers, and messages to people.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::input::{DriverHealth, DriverNews, NodeInput, ShutdownMode};
use drover_core::model::event::TaskEvent;
use drover_core::model::node::DriverInfo;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};

/// Values as short as this may stand anywhere by chance.
const SHORT: usize = 8;

/// What was last said of each driver in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    drivers: BTreeMap<String, DriverHealth>,
}

impl Words {
    /// The agent is told something of the node. One that ends does not listen.
    pub(super) fn heard(&mut self, agent: &Agent, said: &NodeInput) {
        let NodeInput::Driver { op, driver, news } = said else {
            return;
        };
        let view = agent.view();
        let heard = view.machine().drivers().listens_to(driver, *op);
        let deaf = view.stopped() || view.shutdown() == Some(ShutdownMode::KeepTasks);
        if deaf || !heard {
            return;
        }
        match news {
            DriverNews::Fingerprint(said) => drop(self.drivers.insert(driver.clone(), said.health)),
            DriverNews::Failed(_) | DriverNews::Ended(_) => drop(self.drivers.remove(driver)),
        }
    }
}

impl Checker {
    /// What was last said of a driver is what is known of it.
    pub(super) fn the_last_word_of_a_driver_counts(&mut self, agent: &Agent) -> Verdict {
        if self.words.drivers.is_empty() {
            return Ok(());
        }
        let known = &agent.view().node().drivers;
        let mut said = self.words.drivers.iter();
        let differs = |info: &DriverInfo, health: DriverHealth| {
            info.healthy != (health == DriverHealth::Healthy)
                || info.detected != (health != DriverHealth::Undetected)
        };
        let wrong =
            said.find(|(name, health)| known.get(*name).is_none_or(|info| differs(info, **health)));
        let wrong = wrong.map(|(name, info)| format!("{name}: {info:?}"));
        self.holds(
            Property::TheLastWordOfADriverCounts,
            wrong.is_none(),
            || wrong.clone().unwrap_or_default(),
        )
    }

    /// No event shows the value of a variable of the job.
    pub(super) fn no_event_shows_a_variable(
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
        self.holds(Property::NoEventShowsAVariable, shown.is_none(), || {
            format!("{:?} {}", task.spec().key, event.kind.as_str())
        })
    }
}
