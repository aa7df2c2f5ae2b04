//! What probes found out: it is kept where one fails once.

use drover_core::agent::Agent;

use super::{Checker, Property, Verdict};
use crate::machine::FACT;

/// What was found out in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    /// Whether what the host's probe finds was known.
    knew: bool,
}

impl Checker {
    /// What a probe found stays known when it fails later.
    pub(super) fn found_fact_is_kept(&mut self, agent: &Agent) -> Verdict {
        let knows = agent.view().node().attributes.contains_key(FACT);
        let holds = knows || !self.probes.knew;
        self.probes.knew |= knows;
        self.holds(Property::FoundFactIsKept, holds, || {
            format!("{FACT} is forgotten")
        })
    }
}
