//! Disks that come from other nodes.

use drover_core::work::FetchDisk;

use super::{Answer, Hooks, Of, Work};

impl Work for FetchDisk {
    fn begin(&self, hooks: &Hooks, of: &Of) {
        hooks.migration.begin(of.op);
    }

    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let _work = hooks.dir_locks.work(of.alloc).await;
        let migration = &hooks.migration;
        Some(
            migration
                .fetch(of.op, of.alloc, &self.previous, self.tasks)
                .await,
        )
    }
}
