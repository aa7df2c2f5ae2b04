//! Exec sessions. Servers let pass whoever may `alloc-exec`. Where the task sees the file system of the host, that is
//! not enough, and this node asks whose the token is, as it does of its own API. There is no limit to a session's time. It ends with its program, with its task, and with its
//! client, whose end is that of what the server sends.

use std::collections::VecDeque;
use std::time::Duration;

use drover_core::agent::requests::SessionCommand;
use drover_core::ids::TaskName;
use drover_io_real::session::{SessionClient, SessionInput, SessionOutput, WindowSize};
use drover_rpc::connection::{Input, Output};
use drover_rpc::types::stream::{AllocationsExec, ExecInput};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Inbound, alloc_id};
use crate::http::errors::ApiError;
use crate::http::exec::{Session, may_enter, open_session};
use crate::http::websocket::{write_closed, write_data, write_exit};

/// How much input a program that does not read leaves waiting. So much is read ahead, because the end of the client
/// is behind it. Further input has to wait, and so has the news of the end, until the server resets the stream.
const AHEAD: usize = 256 << 10;

/// How often the client hears that the session lives. A server whose user has gone away without a word notices that
/// when it has something to pass on, and not before.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// What says so.
const ALIVE: &str = "{}";

impl Inbound {
    /// Runs a program, and connects the server's client with it until one of them ends.
    ///
    /// # Errors
    /// The client may not, it cannot be run, or how it ended is not known.
    pub(super) async fn exec(
        &self,
        asked: AllocationsExec,
        input: &mut Input,
        output: &mut Output,
    ) -> Result<(), ApiError> {
        let alloc = alloc_id(&asked.alloc_id)?;
        let task = TaskName::from(asked.task);
        let token = asked.auth_token.expose();
        let sender = self.access.sender(&self.agent_handle, token).await?;
        may_enter(&self.agent_handle, &sender, Some(alloc), Some(task.clone())).await?;
        let session = Session {
            alloc,
            task,
            run: match asked.action.is_empty() {
                true => SessionCommand::Command(asked.cmd),
                false => SessionCommand::Action(asked.action),
            },
            tty: asked.tty,
        };
        let SessionClient {
            input: to,
            output: from,
        } = open_session(&self.agent_handle, session).await?;
        // The program ends with what is dropped then.
        tokio::select! {
            () = listen(input, to) => Ok(()),
            exec_input = speak(output, from) => exec_input,
        }
    }
}

/// Passes on what the client says, as fast as the program reads it, until the client is gone.
async fn listen(input: &mut Input, to: mpsc::Sender<SessionInput>) {
    let (mut waiting, mut size) = (VecDeque::new(), 0);
    loop {
        tokio::select! {
            place = to.reserve(), if !waiting.is_empty() => match place {
                Ok(place) => {
                    if let Some(next) = waiting.pop_front() {
                        size -= size_of(&next);
                        place.send(next);
                    }
                }
                // That the program takes no more is told by what comes from it.
                Err(_) => (waiting, size) = (VecDeque::new(), 0),
            },
            exec_input = input.next::<ExecInput>(), if size < AHEAD => {
                // What makes no sense ends the session, too.
                let Ok(exec_input) = exec_input else { return };
                for next in inputs(exec_input) {
                    size += size_of(&next);
                    waiting.push_back(next);
                }
            }
        }
    }
}

/// How much an input takes, with its place.
fn size_of(input: &SessionInput) -> usize {
    let place = size_of_val(input);
    match input {
        SessionInput::Stdin(bytes) => place + bytes.len(),
        SessionInput::CloseStdin | SessionInput::Resize(_) => place,
    }
}

/// What an object says to a program, in this order.
fn inputs(exec_input: ExecInput) -> impl Iterator<Item = SessionInput> {
    let side = |length: i32| u16::try_from(length.max(0)).unwrap_or(u16::MAX);
    let resize = exec_input.tty_size.map(|size| {
        SessionInput::Resize(WindowSize {
            height: side(size.height),
            width: side(size.width),
        })
    });
    let stdin = exec_input.stdin.into_iter().flat_map(|stdin| {
        let data = Some(stdin.data.0).filter(|data| !data.is_empty());
        let data = data.map(|data| SessionInput::Stdin(data.into()));
        let close = stdin.close.then_some(SessionInput::CloseStdin);
        data.into_iter().chain(close)
    });
    resize.into_iter().chain(stdin)
}

/// Passes on what the program says, as fast as the client reads it.
async fn speak(
    output: &mut Output,
    mut from: mpsc::Receiver<SessionOutput>,
) -> Result<(), ApiError> {
    let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (text, is_last) = tokio::select! {
            exec_input = from.recv() => match exec_input {
                Some(SessionOutput::Data(which, bytes)) => (write_data(which, &bytes), false),
                Some(SessionOutput::Closed(which)) => (write_closed(which), false),
                Some(SessionOutput::Exited(result)) => (write_exit(&result), true),
                Some(SessionOutput::Failed(why)) => return Err(ApiError::failed(why)),
                None => return Err(ApiError::failed("the task ended")),
            },
            _ = beats.tick() => (ALIVE.to_owned(), false),
        };
        if output.send(text.into_bytes()).await.is_err() || is_last {
            return Ok(());
        }
    }
}
