//! What a node needs of its clock to live with others and with servers, which know only the time since the beginning.

use drover_core::time::{Instant, Span};

use super::Sim;

impl Sim {
    /// When the servers do something by themselves, by the clock of this machine.
    pub(super) fn servers_at(&self) -> Option<Instant> {
        let at = self.world.link.deadline()?;
        let left = Span((at.0 - self.world.scene.elapsed.0).max(0));
        Some(self.world.scene.at + left)
    }

    /// When something happens next, since the beginning of the world.
    pub(crate) fn next_since_beginning(&mut self) -> Option<Span> {
        self.set_call();
        let left = (self.next_at()? - self.world.scene.at).0.max(0);
        Some(Span(self.world.scene.elapsed.0 + left))
    }

    /// Nothing happened here until so long after the beginning.
    pub(crate) fn catch_up(&mut self, elapsed: Span) {
        let left = Span((elapsed.0 - self.world.scene.elapsed.0).max(0));
        self.world.scene.advance(self.world.scene.at + left);
    }

    /// The state is checked after each so many steps only: of a thousand nodes all would take too long.
    pub(crate) fn check_every(&mut self, steps: u64) {
        self.checks_every = steps.max(1);
    }
}
