//! Waiting for the ends of tasks, over the deaths of their plugin.

use std::sync::Arc;

use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, TaskKey};
use drover_core::model::alloc::ExitResult;

use super::handles::Stage;
use super::{Attached, World, setup};
use crate::plugin::{Handle, PluginError};

impl World {
    /// Waits for the end of a task and tells it, once. `attached` is the plugin that knows it.
    pub(super) async fn watch(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        handle: Handle,
        attached: Arc<Attached>,
    ) {
        let id = setup::id(launch);
        let mut plugins = self.plugin.subscribe();
        let mut knows = Some(attached);
        loop {
            let Some(attached) = knows.take() else {
                // The one that is lost is still there until another is attached.
                if plugins.changed().await.is_err() {
                    return;
                }
                let next = plugins.borrow_and_update().clone();
                knows = match next {
                    Some(next) => match self.found_again(&next, &id, &handle).await {
                        Ok(found) => found.then_some(next),
                        Err(result) => return self.tell_end(task, launch, result).await,
                    },
                    None => None,
                };
                continue;
            };
            let error = match attached.plugin.wait_task(&id).await {
                Ok(result) => return self.tell_end(task, launch, result).await,
                Err(error) => error,
            };
            if !error.is_lost() {
                let why = format!("its driver does not wait for it: {error}");
                return self.tell_end(task, launch, ExitResult::unknown(why)).await;
            }
            if !self.held.is_running(launch) {
                return;
            }
            tracing::warn!(%launch, %error, "a task's plugin is gone, and nobody watches it");
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
                tracing::warn!(task = id, %error, "a plugin did not look for a task");
                Ok(false)
            }
        }
    }

    async fn tell_end(&self, task: TaskKey, launch: LaunchId, result: ExitResult) {
        self.remember_end(launch, &result).await;
        if self.held.ended(launch, &result) {
            self.inbox
                .say(&task, DriverInput::Exited { launch, result });
        }
    }

    /// Writes an end down, so that it can be told again after a crash.
    pub(super) async fn remember_end(&self, launch: LaunchId, result: &ExitResult) {
        let (handles, stage) = (self.handles.clone(), Stage::Ended(result.clone()));
        let work = move || {
            // What is forgotten stays so.
            match handles.read(launch)? {
                Some(_) => handles.write(launch, &stage),
                None => Ok(()),
            }
        };
        if let Err(error) = self.blocking(work).await {
            let error = error.message;
            tracing::warn!(%launch, error, "cannot write down how a task ended");
        }
    }
}
