//! Limits of disk space.

use drover_core::input::HookOutput;
use drover_core::work::SetDiskQuota;

use super::{Answer, Hooks, Of, Work};

impl Work for SetDiskQuota {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let _work = hooks.dir_locks.work(alloc).await;
        let limit = move |hooks: &Hooks| {
            hooks.dirs.set_quota(alloc, self.bytes)?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(limit).await
    }
}
