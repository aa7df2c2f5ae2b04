//! Templates that are rendered, and watched from then on.

use std::sync::Arc;

use drover_core::op::Failure;
use drover_core::work::Rendering;

use super::{Answer, Hooks, Of, Work};

impl Work for Arc<Rendering> {
    fn begin(&self, hooks: &Hooks, of: &Of) {
        if let Ok(key) = of.key() {
            hooks.templates.begin(of.op, key, self.clone());
        }
    }

    /// Whoever renders answers, and reports later changes.
    async fn run(self, _hooks: &Hooks, of: &Of) -> Answer {
        match of.key() {
            Ok(_) => None,
            Err(error) => Some(Err(Failure::fatal(error.to_string()))),
        }
    }
}
