//! Directories of allocations.

use drover_core::input::HookOutput;
use drover_core::work::{BuildAllocDir, RemoveAllocDir};

use super::{Answer, Hooks, Of, Work};

impl Work for BuildAllocDir {
    fn begin(&self, hooks: &Hooks, _: &Of) {
        if let Some(moves) = hooks.moves.clone() {
            let gate = hooks.gate.clone();
            tokio::spawn(async move {
                if let Ok(Err(error)) = gate.run(move || moves.prepare()).await {
                    tracing::debug!(%error, "moves to control groups are not prepared");
                }
            });
        }
    }

    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let _work = hooks.dir_locks.work(alloc).await;
        let build = move |hooks: &Hooks| {
            hooks
                .dirs
                .build_alloc(alloc)
                .map(|()| HookOutput::default())
        };
        hooks.on_disk(build).await
    }
}

impl Work for RemoveAllocDir {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let _removal = hooks.dir_locks.removal(alloc).await;
        let remove = move |hooks: &Hooks| {
            hooks.issuer.forget(alloc);
            hooks.dirs.remove(alloc).inspect_err(|error| {
                tracing::warn!(%alloc, %error, "an allocation's directory is not removed; it is tried again");
            })?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(remove).await
    }
}
