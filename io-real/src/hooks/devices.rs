//! What plugins give with their devices.

use drover_core::work::Reserve;

use super::{Answer, Hooks, Of, Work};

impl Work for Reserve {
    async fn run(self, hooks: &Hooks, _of: &Of) -> Answer {
        Some(hooks.devices.reserve(&self.devices).await)
    }
}
