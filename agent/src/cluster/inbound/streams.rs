//! Streams of bytes: a task's output, a file, the agent's own log. Each ends when the server wants no more of it, and
//! waits while the server does not read.

use std::pin::pin;

use bytes::Bytes;
use drover_rpc::connection::{Input, Output};
use drover_rpc::types::stream::{AgentMonitor, FileSystemLogs, FileSystemStream};
use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;

use super::Inbound;
use crate::http::errors::ApiError;
use crate::http::frames::Form;
use crate::http::{file_stream, logs, monitor};

impl Inbound {
    pub(super) async fn logs(
        &self,
        asked: FileSystemLogs,
        input: &mut Input,
        output: &mut Output,
    ) -> Result<(), ApiError> {
        let asked = logs::Asked {
            alloc: &asked.alloc_id,
            task: &asked.task,
            stream: &asked.log_type,
            origin: &asked.origin,
            offset: u64::try_from(asked.offset).ok(),
            follow: asked.follow,
            until_end: false,
            form: form(asked.plain_text),
        };
        let pieces = logs::open(&self.agent_handle, asked).await?;
        pass_on(all(pieces), input, output).await;
        Ok(())
    }

    pub(super) async fn file(
        &self,
        asked: FileSystemStream,
        input: &mut Input,
        output: &mut Output,
    ) -> Result<(), ApiError> {
        let limit = u64::try_from(asked.limit).ok();
        let asked = file_stream::Asked {
            alloc: &asked.alloc_id,
            path: &asked.path,
            origin: &asked.origin,
            offset: u64::try_from(asked.offset).ok(),
            limit: limit.filter(|limit| *limit > 0),
            follow: asked.follow,
            form: form(asked.plain_text),
        };
        let pieces = file_stream::open(&self.agent_handle, asked).await?;
        pass_on(all(pieces), input, output).await;
        Ok(())
    }

    pub(super) async fn monitor(
        &self,
        asked: AgentMonitor,
        input: &mut Input,
        output: &mut Output,
    ) -> Result<(), ApiError> {
        let asked = monitor::Asked {
            level: &asked.log_level,
            json: asked.log_json,
            form: form(asked.plain_text),
        };
        let reader = monitor::follow(&self.log, asked)?;
        let lines = stream::unfold(reader, |mut reader| async move {
            let line = reader.next().await?;
            Some((line, reader))
        });
        pass_on(lines, input, output).await;
        Ok(())
    }
}

fn form(plain: bool) -> Form {
    match plain {
        true => Form::Messages,
        false => Form::Frames,
    }
}

fn all(mut pieces: mpsc::Receiver<Bytes>) -> impl Stream<Item = Bytes> {
    stream::poll_fn(move |cx| pieces.poll_recv(cx))
}

/// Sends what comes, until there is no more or the server wants no more.
async fn pass_on(pieces: impl Stream<Item = Bytes>, input: &mut Input, output: &mut Output) {
    let mut pieces = pin!(pieces);
    let sending = async {
        while let Some(piece) = pieces.next().await {
            if output.send(piece.into()).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = sending => {}
        _ = input.end() => {}
    }
}
