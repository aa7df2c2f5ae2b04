//! Exec sessions in tasks of plugins: the plugin runs the program and ends it; what goes to and fro is passed on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drover_core::effect::request::OpenSession;
use drover_core::ids::LaunchId;
use drover_core::op::Failure;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{World, setup};
use crate::driver::session::Opening;
use crate::plugin::exec::{ExecMessage, ExecStream};
use crate::plugin::{Plugin, PluginError};
use crate::session::{CHUNK, Output, SessionOutput, SessionServer};

/// How long a plugin may take to say how a program ended whose task has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

impl World {
    /// Opens a session and stays with it to its end.
    pub(super) async fn open_session(
        self: Arc<Self>,
        asked: OpenSession,
        opening: Opening,
        server: SessionServer,
    ) {
        let plugin = match self.plugin_for_sessions(asked.launch).await {
            Ok(plugin) => plugin,
            Err(failure) => return opening.failed(failure),
        };
        // A plugin answers only when the program says something, so that it could not be started follows.
        let _open = opening.opened();
        let SessionServer { input, output } = server;
        let program = asked.program.clone();
        let command = core::iter::once(&program.command).chain(&program.args);
        let command = command.cloned().collect();
        let id = setup::id(asked.launch);
        let run = async {
            let stream = plugin.exec_streaming(&id, command, program.tty, input);
            pass_on(stream.await?, &output).await
        };
        let ended = self.until_task_ended(asked.launch);
        let last = tokio::select! {
            last = run => last,
            lost = plugin.lost() => Err(lost),
            () = ended => return,
            // Nobody is connected any more: the plugin learns it when the call is dropped.
            () = output.closed() => return,
        };
        let last = last.unwrap_or_else(|error| SessionOutput::Failed(error.to_string()));
        let _ = output.send(last).await;
    }

    async fn plugin_for_sessions(&self, launch: LaunchId) -> Result<Arc<Plugin>, Failure> {
        if !self.held.is_running(launch) {
            return Err(Failure::fatal("task not running"));
        }
        let plugin = self.attached()?.plugin.clone();
        if !plugin.capabilities().await?.exec {
            let why = format!(
                "driver {:?} runs no further programs in its tasks",
                self.name
            );
            return Err(Failure::fatal(why));
        }
        Ok(plugin)
    }

    /// Waits for the end of a task, and then a little for what the plugin has to say of its sessions.
    async fn until_task_ended(&self, launch: LaunchId) {
        self.held.until_ended(launch).await;
        let _ = timeout(OUTPUT_GRACE, core::future::pending::<()>()).await;
    }
}

/// Passes on what a program says, as fast as it is taken. Returns how it ended.
async fn pass_on(
    mut from: ExecStream,
    to: &mpsc::Sender<SessionOutput>,
) -> Result<SessionOutput, PluginError> {
    while let Some(message) = from.next().await? {
        match message {
            ExecMessage::Output(which, data, more) => send(to, which, data, more).await,
            ExecMessage::Exited(result) => return Ok(SessionOutput::Exited(result)),
            ExecMessage::Other => {}
        }
    }
    let why = "the plugin does not say how the program ended";
    Ok(SessionOutput::Failed(why.to_owned()))
}

async fn send(to: &mpsc::Sender<SessionOutput>, which: Output, mut data: Bytes, more: bool) {
    // That nobody takes it is seen by who waits for that.
    while !data.is_empty() {
        let chunk = data.split_to(CHUNK.min(data.len()));
        let _ = to.send(SessionOutput::Data(which, chunk)).await;
    }
    if !more {
        let _ = to.send(SessionOutput::Closed(which)).await;
    }
}
