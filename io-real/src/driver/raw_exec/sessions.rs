//! Exec sessions: programs beside a task that somebody is connected to. Like scripts ([`super::scripts`]) each
//! has a shim of its own, in the task's control group, and is ended with its task.
//!
//! A session's shim holds the read end of its *lifeline*, a pipe whose other end this agent alone has. When
//! that is closed, because the client is gone or because the agent died, the shim sends the program `SIGHUP` and
//! 5 s later `SIGKILL`, and then kills what the program left. So no session outlives the agent either, and
//! what of it were to (a shim that was killed too) is ended by the next agent, as a launch that nobody knows.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use drover_core::effect::request::OpenSession;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::op::Failure;
use tokio::io::Interest;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::connection::{Connection, Stream, Streams};
use super::launch::LaunchError;
use super::scripts::Running;
use super::{World, exit_result, start_failure};
use crate::driver::session::Opening;
use crate::driver::shims;
use crate::session::{Output, SessionInput, SessionOutput, SessionServer};
use crate::shim::{Live, Outcome, StartError};
use tokio::sync::mpsc;

/// How long a program may take that was hung up, before all of it is ended by force: longer than its shim gives
/// it.
const HANGUP_TIME: Duration = Duration::from_secs(8);

/// How long the rest of a program's output may take when the program is gone: it is there, unless a
/// stranger holds the other end.
const DRAIN_TIME: Duration = Duration::from_secs(2);

impl World {
    /// Opens a session and stays with it to its end.
    pub(super) async fn open_session(
        self: Arc<Self>,
        task: TaskKey,
        asked: OpenSession,
        opening: Opening,
        server: SessionServer,
    ) {
        let beside = asked.launch;
        if self.held.live(beside).is_none() {
            return opening.failed(Failure::fatal("the task does not run"));
        }
        let running = Running::begin(&self, beside);
        let session = running.id();
        let (live, connection) = match self.launch_session(task, session, asked).await {
            Ok(launched) => launched,
            Err(failure) => return opening.failed(failure),
        };
        if !running.began(beside, &live) {
            self.end_script(session).await;
            return opening.failed(Failure::fatal("the task ended"));
        }
        // Reported as ended when nothing of it is left.
        let _open = opening.opened();
        self.serve_session(session, &live, connection, server).await;
    }

    pub(super) async fn launch_session(
        self: &Arc<Self>,
        task: TaskKey,
        session: LaunchId,
        asked: OpenSession,
    ) -> Result<(Arc<Live>, Connection), Failure> {
        let world = self.clone();
        let work = move || {
            let dependencies = &world.dependencies;
            dependencies.session(&task, asked.launch, session, &asked.program)
        };
        let started = self.dependencies.gate.run(work).await;
        let lost = |lost: JoinError| io::Error::other(lost).into();
        match started.unwrap_or_else(|error| Err(lost(error))) {
            Ok((live, connection)) => Ok((Arc::new(live), connection)),
            // It may have started all the same.
            Err(error @ LaunchError::Shim(StartError::Spawn(_) | StartError::Lost)) => {
                self.end_script(session).await;
                Err(start_failure(&error))
            }
            Err(error) => {
                self.forget_script(session).await;
                Err(start_failure(&error))
            }
        }
    }

    /// Moves input and output until the program ends or nobody is connected to it any more.
    async fn serve_session(
        self: &Arc<Self>,
        session: LaunchId,
        live: &Arc<Live>,
        connection: Connection,
        server: SessionServer,
    ) {
        let SessionServer { input, output } = server;
        let Connection { streams, lifeline } = connection;
        let mut outputs = JoinSet::new();
        let stdin = match attach(streams, &output, &mut outputs) {
            Ok(stdin) => stdin,
            Err(error) => {
                drop(lifeline);
                self.end_script(session).await;
                return failed(&output, error.to_string()).await;
            }
        };
        let mut ended = Box::pin(shims::outcome(live, &self.dependencies.gate));
        // Both see a client that goes: one when it says no more, the other when it takes no more.
        let outcome = tokio::select! {
            outcome = &mut ended => Some(outcome),
            () = feed(stdin, input) => None,
            () = output.closed() => None,
        };
        let Some(outcome) = outcome else {
            drop(lifeline);
            outputs.abort_all();
            let over = timeout(HANGUP_TIME, ended).await;
            return match over {
                Ok(Ok(Outcome::Exited(_))) => self.forget_script(session).await,
                Ok(Ok(Outcome::ShimLost) | Err(_)) | Err(_) => self.end_script(session).await,
            };
        };
        let drain = async { while outputs.join_next().await.is_some() {} };
        let _ = timeout(DRAIN_TIME, drain).await;
        let last = match outcome {
            Ok(Outcome::Exited(exit)) => {
                self.forget_script(session).await;
                SessionOutput::Exited(exit_result(&exit))
            }
            Ok(Outcome::ShimLost) => {
                self.end_script(session).await;
                SessionOutput::Failed("the session's shim was killed".to_owned())
            }
            Err(error) => {
                self.end_script(session).await;
                SessionOutput::Failed(error.to_string())
            }
        };
        // Who is gone need not hear it.
        let _ = output.send(last).await;
    }
}

async fn failed(output: &mpsc::Sender<SessionOutput>, why: String) {
    let _ = output.send(SessionOutput::Failed(why)).await;
}

/// Begins to move the output of a program. Returns where its input goes.
fn attach(
    streams: Streams,
    output: &mpsc::Sender<SessionOutput>,
    outputs: &mut JoinSet<()>,
) -> io::Result<Stream> {
    match streams {
        Streams::Terminal(terminal) => {
            let both = Interest::READABLE | Interest::WRITABLE;
            let terminal = Stream::new(terminal, both, true)?;
            outputs.spawn(collect(terminal.clone(), Output::Stdout, output.clone()));
            Ok(terminal)
        }
        Streams::Pipes {
            stdin,
            stdout,
            stderr,
        } => {
            let all = [(stdout, Output::Stdout), (stderr, Output::Stderr)];
            for (end, which) in all {
                let end = Stream::new(end, Interest::READABLE, false)?;
                outputs.spawn(collect(end, which, output.clone()));
            }
            Stream::new(stdin, Interest::WRITABLE, false)
        }
    }
}

/// Moves what a program says, as fast as it is taken.
async fn collect(from: Stream, which: Output, to: mpsc::Sender<SessionOutput>) {
    loop {
        match from.read().await {
            Ok(chunk) if chunk.is_empty() => break,
            Ok(chunk) => {
                if to.send(SessionOutput::Data(which, chunk)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the output of a session cannot be read");
                break;
            }
        }
    }
    let _ = to.send(SessionOutput::Closed(which)).await;
}

/// Moves what is said to a program, until nobody can say any more.
async fn feed(stdin: Stream, mut from: mpsc::Receiver<SessionInput>) {
    let mut stdin = Some(stdin);
    while let Some(input) = from.recv().await {
        let Some(open) = &stdin else { continue };
        let written = match input {
            SessionInput::Stdin(bytes) => open.write(&bytes).await,
            SessionInput::Resize(size) => {
                open.resize(size);
                Ok(())
            }
            SessionInput::CloseStdin => {
                open.end_of_input().await;
                match open.is_terminal() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::WriteZero.into()),
                }
            }
        };
        // A program that reads no more goes on nevertheless.
        if written.is_err() {
            stdin = None;
        }
    }
}
