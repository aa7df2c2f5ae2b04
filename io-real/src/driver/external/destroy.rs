//! Ending a launch by force.

use std::time::Duration;

use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::op::Failure;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use super::handles::Stage;
use super::{World, setup};
use crate::plugin::{Handle, Plugin, PluginError};

/// How long a task may take to end by force. That, and what follows, is less than the core waits.
const FORCE_TIME: Duration = Duration::from_secs(2);

/// How long an end may take to be told.
const END_TIME: Duration = Duration::from_secs(1);

impl World {
    /// Ends whatever of a launch is alive, and makes its driver forget it. How it ended, if that
    /// is known and was not told.
    pub(super) async fn destroy(
        &self,
        task: &TaskKey,
        launch: LaunchId,
    ) -> Result<Option<ExitResult>, Failure> {
        let end = self.held.take(launch);
        let handles = self.handles.clone();
        let stage = self.blocking(move || handles.read(launch)).await;
        let destroyed = match stage {
            Ok(None) => Ok(None),
            Ok(Some(stage)) => self.destroy_started(launch, end, &stage).await,
            Err(failure) => Err(failure),
        };
        match &destroyed {
            Ok(_) => self.held.remove(launch),
            // It goes on, and so does telling its end.
            Err(_) => {
                if let Some(result) = self.held.give_back(launch) {
                    self.inbox
                        .send(task, DriverInput::Exited { launch, result });
                }
            }
        }
        destroyed
    }

    async fn destroy_started(
        &self,
        launch: LaunchId,
        end: Option<Receiver<Option<ExitResult>>>,
        stage: &Stage,
    ) -> Result<Option<ExitResult>, Failure> {
        let plugin = self.attached()?.plugin.clone();
        let id = setup::id(launch);
        let result = match (end, stage) {
            (Some(end), _) => kill(&plugin, &id, end).await,
            (None, Stage::Started(bytes)) => {
                find(&plugin, &id, &Handle::from_bytes(bytes.clone())).await?;
                None
            }
            (None, Stage::Asked | Stage::Ended(_)) => None,
        };
        match plugin.destroy_task(&id, true).await {
            Ok(()) => {}
            Err(error) if error.is_unknown_task() => {}
            Err(error) => return Err(error.into()),
        }
        if let (Some(result), Stage::Asked | Stage::Started(_)) = (&result, stage) {
            self.remember_end(launch, result).await;
        }
        Ok(result)
    }
}

/// Makes a plugin know a task that it may have forgotten, so that it can end it.
async fn find(plugin: &Plugin, id: &str, handle: &Handle) -> Result<(), Failure> {
    match plugin.recover_task(id, handle).await {
        // There is nothing to be ended then.
        Ok(()) | Err(PluginError::Refused(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends a task that may run, and finds out how it ended: by who waits for it, or, if that one
/// hangs, by asking.
async fn kill(
    plugin: &Plugin,
    id: &str,
    mut end: Receiver<Option<ExitResult>>,
) -> Option<ExitResult> {
    let killing = plugin.stop_task(id, "SIGKILL", Duration::ZERO);
    match timeout(FORCE_TIME, killing).await {
        Ok(Err(PluginError::Lost(_))) => return None,
        Ok(Err(error)) if !error.is_unknown_task() => {
            tracing::debug!(task = id, %error, "a driver does not end a task by force");
        }
        Ok(_) | Err(_) => {}
    }
    if let Ok(Ok(end)) = timeout(END_TIME, end.wait_for(Option::is_some)).await {
        return end.clone();
    }
    let status = timeout(END_TIME, plugin.inspect_task(id)).await;
    status.ok()?.ok()?.exit
}
