//! What can be checked where there is no world, only an agent: in a recording of a real one.

use drover_core::agent::Agent;

use super::{Checker, Verdict};

impl Checker {
    /// Looks at all that a state says by itself.
    pub(crate) fn alone(&mut self, agent: &Agent) -> Verdict {
        if agent.view().stopped() || agent.view().shutdown().is_some() {
            // One that ends listens to nobody, and waits for nothing.
            return Ok(());
        }
        for alloc in agent.view().allocs() {
            self.deadlines_are_kept(agent, alloc)?;
            self.an_allocation_waits_for_something(agent, alloc)?;
            self.who_waits_names_its_claims(agent, alloc)?;
            for task in alloc.tasks() {
                self.a_task_waits_for_something(agent, task)?;
                self.states_fit_phases(task)?;
            }
        }
        self.who_waits_is_named(agent)
    }
}
