//! Tokens of tasks.

use std::sync::Arc;

use drover_core::input::HookOutput;
use drover_core::work::Issuing;

use super::{Answer, Hooks, Of, Work};
use crate::clock;

impl Work for Arc<Issuing> {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let _work = hooks.dir_locks.work(of.alloc).await;
        let key = of.key();
        let issue = move |hooks: &Hooks| {
            let now = clock::now().wall;
            hooks.issuer.issue(&hooks.dirs, &key?, &self, now)?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(issue).await
    }
}
