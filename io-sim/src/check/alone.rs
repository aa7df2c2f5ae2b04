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
            self.poll_timeout_matches_earliest_deadline(agent, alloc)?;
            self.nonterminal_alloc_has_deadline_or_awaited_event(agent, alloc)?;
            self.waiting_alloc_names_ungranted_claims(None, agent, alloc)?;
            for task in alloc.tasks() {
                self.nonterminal_task_has_deadline_or_awaited_event(agent, task)?;
                self.task_state_matches_phase(task)?;
            }
        }
        self.waiting_alloc_is_in_pending(agent)
    }
}
