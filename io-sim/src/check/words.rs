//! What is said of drivers, and what is said to people.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::input::NodeInput;
use drover_core::model::event::TaskEvent;
use drover_core::model::node::DriverInfo;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};

/// Values as short as this may stand anywhere by chance.
const SHORT: usize = 8;

/// What was last said of each driver in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    drivers: BTreeMap<String, DriverInfo>,
}

impl Words {
    /// The agent is told something of the node. One that ends does not listen.
    pub(super) fn heard(&mut self, agent: &Agent, said: &NodeInput) {
        let NodeInput::Driver { name, info, .. } = said;
        if agent.view().shutdown().is_none() {
            self.drivers.insert(name.clone(), info.clone());
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
        let wrong = said.find(|(name, info)| known.get(*name) != Some(*info));
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
