//! Waiting for the ends of tasks, over the deaths of their plugin.

use std::sync::Arc;

use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;

use super::{Attached, World, setup};
use crate::plugin::{Handle, PluginError};

impl World {
    /// Waits for the end of a task and tells it, once. `attached` is the plugin that knows it.
    pub(super) async fn watch(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        handle: Handle,
        mut attached: Arc<Attached>,
    ) {
        let id = setup::id(launch);
        let result = loop {
            match attached.plugin.wait_task(&id).await {
                Ok(result) => break result,
                Err(error) if error.is_lost() => {
                    if !self.held.is_running(launch) {
                        return;
                    }
                    tracing::warn!(%launch, %error, "a task's plugin ended; the task is not watched");
                }
                Err(error) => {
                    break ExitResult::unknown(format!("its driver does not wait for it: {error}"));
                }
            }
            match self.found_by_next(attached, &id, &handle).await {
                Some(Ok(next)) => attached = next,
                Some(Err(result)) => break result,
                None => return,
            }
        };
        self.report_end(task, launch, result).await;
    }

    /// The first plugin after this one that finds a task again; its end, if one does not know it.
    /// `None` when there will be no further plugin.
    async fn found_by_next(
        &self,
        mut last: Arc<Attached>,
        id: &str,
        handle: &Handle,
    ) -> Option<Result<Arc<Attached>, ExitResult>> {
        let mut plugins = self.plugin.subscribe();
        loop {
            let next = plugins.borrow_and_update().clone();
            let next = next.filter(|next| !Arc::ptr_eq(next, &last));
            let Some(next) = next else {
                plugins.changed().await.ok()?;
                continue;
            };
            match self.found_again(&next, id, handle).await {
                Ok(true) => return Some(Ok(next)),
                Ok(false) => last = next,
                Err(result) => return Some(Err(result)),
            }
        }
    }

    /// Whether a plugin found a task again; not if that plugin is gone, too. The end, if it does
    /// not know it.
    async fn found_again(
        &self,
        attached: &Attached,
        id: &str,
        handle: &Handle,
    ) -> Result<bool, ExitResult> {
        match attached.plugin.recover_task(id, handle).await {
            Ok(()) => Ok(true),
            Err(PluginError::Refused(refusal)) => Err(ExitResult::unknown(format!(
                "its plugin died, and the next one does not find it: {}",
                refusal.message
            ))),
            Err(error) => {
                tracing::warn!(task = id, %error, "a plugin did not recover a task");
                Ok(false)
            }
        }
    }

    async fn report_end(&self, task: TaskKey, launch: LaunchId, result: ExitResult) {
        self.remember_end(launch, &result).await;
        if self.held.ended(launch, &result) {
            self.inbox
                .send(&task, DriverInput::Exited { launch, result });
        }
    }

    /// Writes an end down, so that it can be told again after a crash.
    pub(super) async fn remember_end(&self, launch: LaunchId, result: &ExitResult) {
        let (handles, result) = (self.handles.clone(), result.clone());
        if let Err(failure) = self.blocking(move || handles.ended(launch, result)).await {
            let error = failure.message;
            tracing::warn!(%launch, error, "cannot write down how a task ended");
        }
    }
}
