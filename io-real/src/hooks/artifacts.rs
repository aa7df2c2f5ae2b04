//! Files that are fetched for tasks.

use drover_core::op::Failure;
use drover_core::work::FetchArtifacts;

use super::{Answer, Hooks, Of, Work};
use crate::artifact::Asked;

impl Work for FetchArtifacts {
    fn begin(&self, hooks: &Hooks, of: &Of) {
        hooks.artifacts.begin(of.op);
    }

    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let Some(task) = of.task.clone() else {
            return Some(Err(Failure::fatal("no task was named")));
        };
        let asked = Asked {
            alloc: of.alloc,
            task,
            artifacts: self.artifacts,
            root: self.root,
            user: self.user,
        };
        Some(hooks.artifacts.fetch(of.op, asked).await)
    }
}
