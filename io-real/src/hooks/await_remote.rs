//! Whether an allocation of another node still runs.

use drover_core::work::AskRemote;

use super::{Answer, Hooks, Of, Work};

impl Work for AskRemote {
    fn begin(&self, hooks: &Hooks, of: &Of) {
        hooks.migration.begin(of.op);
    }

    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        Some(hooks.migration.ask(of.op, &self.previous, self.index).await)
    }
}
