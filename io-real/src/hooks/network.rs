//! Networks of allocations.

use std::sync::Arc;

use drover_core::input::HookOutput;
use drover_core::work::{BuildNetwork, RemoveNetwork};

use super::{Answer, Hooks, Of, Work};

impl Work for Arc<BuildNetwork> {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let _work = hooks.network_locks.work(alloc).await;
        let build = move |hooks: &Hooks| {
            Ok(HookOutput {
                network: hooks.networks.build(alloc, &self)?.map(Box::new),
                ..HookOutput::default()
            })
        };
        hooks.on_disk(build).await
    }
}

impl Work for RemoveNetwork {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let alloc = of.alloc;
        let _removal = hooks.network_locks.removal(alloc).await;
        let remove = move |hooks: &Hooks| {
            hooks.networks.remove(alloc, self.address).inspect_err(|error| {
                tracing::warn!(%alloc, %error, "an allocation's network is not removed; it is tried again");
            })?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(remove).await
    }
}
