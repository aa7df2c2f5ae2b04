//! Programs in tasks of drivers that are plugins, with somebody connected to them.

use std::time::Duration;

use bytes::Bytes;
use drover_core::model::alloc::ExitResult;
use futures::stream;
use tokio::sync::mpsc;
use tonic::Streaming;

use super::Plugin;
use super::driver_reported;
use super::error::PluginError;
use super::proto::driver as proto;
use super::wire::refused;
use crate::session::{Output, SessionInput};

/// How the call is named to people.
const CALL: &str = "ExecTaskStreaming";

/// What comes from a program that a plugin runs.
#[derive(Debug)]
pub(crate) struct ExecStream {
    stream: Streaming<proto::ExecTaskStreamingResponse>,
}

/// A message of it.
#[derive(Debug)]
pub(crate) enum ExecMessage {
    /// Some output, and whether there is more.
    Output(Output, Bytes, bool),
    /// The program ended.
    Exited(ExitResult),
    /// Nothing that is known.
    Other,
}

impl Plugin {
    /// Runs a program in a task. What is sent through `input` goes to it; it ends when that ends and what is
    /// returned is dropped. There is no limit to the time: a plugin answers when the program says something.
    ///
    /// # Errors
    /// The driver does not know the task, or cannot run the program.
    pub(crate) async fn exec_streaming(
        &self,
        id: &str,
        command: Vec<String>,
        tty: bool,
        input: mpsc::Receiver<SessionInput>,
    ) -> Result<ExecStream, PluginError> {
        let setup = proto::ExecTaskStreamingRequest {
            setup: Some(proto::exec_task_streaming_request::Setup {
                task_id: id.to_owned(),
                command,
                tty,
            }),
            ..Default::default()
        };
        let requests = stream::unfold((Some(setup), input), async |(first, mut input)| {
            let next = match first {
                Some(setup) => setup,
                None => request(input.recv().await?),
            };
            Some((next, (None, input)))
        });
        let mut client = self.driver();
        // As long as it takes: what to do meanwhile is for who waits.
        let endless = Duration::MAX;
        let answer = client.exec_task_streaming(requests);
        let stream = self.wire.call_within(CALL, endless, answer).await?;
        Ok(ExecStream { stream })
    }
}

fn request(input: SessionInput) -> proto::ExecTaskStreamingRequest {
    let operation =
        |data: Vec<u8>, close| Some(proto::ExecTaskStreamingIoOperation { data, close });
    match input {
        SessionInput::Stdin(bytes) => proto::ExecTaskStreamingRequest {
            stdin: operation(bytes.to_vec(), false),
            ..Default::default()
        },
        SessionInput::CloseStdin => proto::ExecTaskStreamingRequest {
            stdin: operation(Vec::new(), true),
            ..Default::default()
        },
        SessionInput::Resize(size) => proto::ExecTaskStreamingRequest {
            tty_size: Some(proto::exec_task_streaming_request::TerminalSize {
                height: size.height.into(),
                width: size.width.into(),
            }),
            ..Default::default()
        },
    }
}

impl ExecStream {
    /// The next message; `None` when the plugin ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<ExecMessage>, PluginError> {
        let next = self.stream.message().await;
        let next = next.map_err(|status| refused(CALL, &status))?;
        Ok(next.map(|message| match message {
            proto::ExecTaskStreamingResponse {
                stdout: Some(one), ..
            } => ExecMessage::Output(Output::Stdout, one.data.into(), !one.close),
            proto::ExecTaskStreamingResponse {
                stderr: Some(one), ..
            } => ExecMessage::Output(Output::Stderr, one.data.into(), !one.close),
            proto::ExecTaskStreamingResponse {
                exited: true,
                result,
                ..
            } => ExecMessage::Exited(driver_reported::exit(result.unwrap_or_default(), "")),
            _ => ExecMessage::Other,
        }))
    }
}
