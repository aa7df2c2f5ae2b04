//! Programs of checks: run beside a task as scripts are ([`super::scripts`]), over pipes as sessions are, so that
//! the beginning of what they print can be shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drover_core::effect::Program;
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::ids::{LaunchId, SessionId, TaskKey};
use drover_core::op::{Failure, Op};
use tokio::io::Interest;
use tokio::time::timeout;

use super::connection::{Connection, Stream, Streams};
use super::scripts::Running;
use super::{World, exit_result};
use crate::driver::shims;
use crate::shim::Outcome;

/// How much is kept of what a program prints, in bytes.
const MAX_OUTPUT: usize = 4 * 1024;

/// How long the rest of it may take when the program is gone.
const DRAIN_TIME: Duration = Duration::from_secs(1);

impl World {
    /// Runs a program beside a launch to its end, or until its time is over. Its exit code, and the beginning of
    /// what it printed.
    pub(super) async fn exec_with_output(
        self: Arc<Self>,
        task: TaskKey,
        beside: LaunchId,
        program: Arc<Program>,
    ) -> (Result<i32, Failure>, String) {
        if self.held.live(beside).is_none() {
            return (Err(Failure::fatal("the task does not run")), String::new());
        }
        let running = Running::begin(&self, beside);
        let time = program.timeout;
        let asked = OpenSession {
            op: Op::default(),
            launch: beside,
            session: SessionId::default(),
            program: Arc::new(SessionProgram {
                command: program.command.clone(),
                args: program.args.clone(),
                tty: false,
                task: program.task.clone(),
            }),
        };
        let (live, connection) = match self.launch_session(task, running.id(), asked).await {
            Ok(launched) => launched,
            Err(failure) => return (Err(failure), String::new()),
        };
        if !running.began(beside, &live) {
            self.end_script(running.id()).await;
            return (Err(Failure::fatal("the task ended")), String::new());
        }
        let Connection { streams, lifeline } = connection;
        let printed = tokio::spawn(collect(streams));
        let stop = printed.abort_handle();
        let limit = Duration::from_nanos(u64::try_from(time.0).unwrap_or(0));
        let ended = timeout(limit, shims::outcome(&live, &self.dependencies.gate)).await;
        let why = match ended {
            Ok(Ok(Outcome::Exited(exit))) => {
                self.forget_script(running.id()).await;
                // It is there, unless a stranger holds the other end.
                let printed = timeout(DRAIN_TIME, printed).await;
                stop.abort();
                let output = printed.ok().and_then(Result::ok).unwrap_or_default();
                let unknown = || Failure::fatal("how it ended is not known");
                let code = exit_result(&exit).code.ok_or_else(unknown);
                if code != Ok(0) {
                    // What ends with its task has not failed: the core hears of the task's end first.
                    self.unless_it_ended(beside).await;
                }
                return (code, output);
            }
            Ok(Ok(Outcome::ShimLost)) => "its shim was killed".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not end within {time}, and was killed"),
        };
        drop(lifeline);
        stop.abort();
        self.end_script(running.id()).await;
        self.unless_it_ended(beside).await;
        (Err(Failure::fatal(why)), String::new())
    }
}

/// The beginning of what a program prints, of both streams as it comes. All of it is read, so that no program
/// waits for a reader.
async fn collect(streams: Streams) -> String {
    let Streams::Pipes {
        stdin,
        stdout,
        stderr,
    } = streams
    else {
        return String::new();
    };
    // There is no input.
    drop(stdin);
    let streams = [stdout, stderr].map(|end| Stream::new(end, Interest::READABLE, false));
    let [Ok(stdout), Ok(stderr)] = streams else {
        return String::new();
    };
    let output = Mutex::new(Vec::new());
    let read = async |stream: Stream| {
        while let Ok(chunk) = stream.read().await
            && !chunk.is_empty()
        {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MAX_OUTPUT - output.len();
            output.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        }
    };
    tokio::join!(read(stdout), read(stderr));
    let output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&output).into_owned()
}
