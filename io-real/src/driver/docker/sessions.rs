//! Programs beside a container's main process: sessions of people, and scripts. The engine starts them, as the
//! container's user and within its limits.
//!
//! The engine has no way to end one. So a program that nobody is connected to any more, or that takes too long, is
//! killed here, with all that it started ([`super::processes`]).

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ExecConfig;
use bollard::query_parameters::ResizeExecOptionsBuilder;
use bytes::Bytes;
use drover_core::effect::Program;
use drover_core::effect::request::OpenSession;
use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use drover_core::op::Failure;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::World;
use super::engine::{Engine, SOON, START};
use super::frames::Frames;
use super::processes::end_tree;
use super::trouble::Trouble;
use super::wire;
use crate::abort_on_drop::AbortOnDrop;
use crate::driver::session::Opening;
use crate::session::{CHUNK, Output, SessionInput, SessionOutput, SessionServer};

/// How much of what a script prints is kept.
const MAX_OUTPUT: usize = 4096;

/// How long the engine may take to say how a program ended whose output ended.
const END_TIME: Duration = Duration::from_secs(2);

/// The longest pause between two looks whether a program was started that is to end.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a program whose container ended may still say something.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// A program that was started.
struct Running {
    engine: Engine,
    id: String,
    container: String,
    stream: TokioIo<Upgraded>,
    has_terminal: bool,
}

impl World {
    async fn begin(
        self: &Arc<Self>,
        launch: LaunchId,
        command: Vec<String>,
        has_terminal: bool,
        has_input: bool,
    ) -> Result<Running, Failure> {
        let known = self
            .containers
            .get(launch)
            .filter(|_| self.held.is_running(launch));
        let known = known.ok_or_else(|| Failure::fatal("task not running"))?;
        let engine = self.engine()?;
        let program = ExecConfig {
            attach_stdin: Some(has_input),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(has_terminal),
            cmd: Some(command),
            ..ExecConfig::default()
        };
        let failed = |trouble: Trouble| trouble.failure("cannot run the program");
        let id = engine
            .prepare_exec(&known.id, program)
            .await
            .map_err(failed)?;
        let path = engine.path(&format!("/exec/{id}/start"));
        let body = format!("{{\"Detach\":false,\"Tty\":{has_terminal}}}");
        let begun = timeout(SOON, wire::upgrade(engine.socket(), &path, body)).await;
        let slow = |_| Trouble::Silent("it took too long".to_owned());
        match begun.map_err(slow).and_then(|it| it) {
            Ok(stream) => Ok(Running {
                engine,
                id,
                container: known.id,
                stream,
                has_terminal,
            }),
            Err(trouble) => {
                // It may be started all the same.
                self.kill(&engine, &id, &known.id).await;
                Err(failed(trouble))
            }
        }
    }

    /// Opens a session and stays with it to its end.
    pub(super) async fn open_session(
        self: Arc<Self>,
        asked: OpenSession,
        opening: Opening,
        server: SessionServer,
    ) {
        let program = &asked.program;
        let command = iter::once(&program.command)
            .chain(&program.args)
            .cloned()
            .collect();
        let running = match self.begin(asked.launch, command, program.tty, true).await {
            Ok(running) => running,
            Err(failure) => return opening.failed(failure),
        };
        let _open = opening.opened();
        let SessionServer { input, output } = server;
        let Running {
            engine,
            id,
            container,
            stream,
            has_terminal,
        } = running;
        let (from, to) = split(stream);
        let taken = tokio::spawn(pass_in(engine.clone(), id.clone(), to, input));
        let taken = AbortOnDrop(taken);
        let over = async {
            self.held.until_ended(asked.launch).await;
            sleep(OUTPUT_GRACE).await;
        };
        let is_over = tokio::select! {
            passed = pass_out(from, has_terminal, &output) => match passed {
                Ok(()) => true,
                Err(why) => {
                    let _ = output.send(SessionOutput::Failed(why)).await;
                    false
                }
            },
            () = over => true,
            () = output.closed() => false,
        };
        drop(taken);
        if !is_over {
            return self.kill(&engine, &id, &container).await;
        }
        let last = match exit_code(&engine, &id).await {
            Some(code) => SessionOutput::Exited(ExitResult::code(code)),
            None => {
                SessionOutput::Failed("the engine does not say how the program ended".to_owned())
            }
        };
        let _ = output.send(last).await;
    }

    /// Runs a program to its end. Its code, and the beginning of what it prints.
    pub(super) async fn exec(
        self: &Arc<Self>,
        launch: LaunchId,
        program: &Program,
    ) -> Result<(i32, String), Failure> {
        let command = iter::once(&program.command)
            .chain(&program.args)
            .cloned()
            .collect();
        let running = self.begin(launch, command, false, false).await?;
        let Running {
            engine,
            id,
            container,
            mut stream,
            ..
        } = running;
        let limit = Duration::from_nanos(u64::try_from(program.timeout.0).unwrap_or(0));
        let Ok(printed) = timeout(limit, print(&mut stream)).await else {
            self.kill(&engine, &id, &container).await;
            let why = format!("it did not end within {}, and was killed", program.timeout);
            return Err(Failure::fatal(why));
        };
        let code = exit_code(&engine, &id).await;
        if code != Some(0) {
            self.unless_it_ended(launch, &engine, &container).await;
        }
        let unknown = || Failure::fatal("how it ended is not known");
        Ok((code.ok_or_else(unknown)?, printed))
    }

    /// Ends a program by force, and all that it started. An engine that is slow holds nobody up for long: what it starts
    /// later is ended then.
    async fn kill(self: &Arc<Self>, engine: &Engine, id: &str, container: &str) {
        let (world, engine) = (self.clone(), engine.clone());
        let (id, container) = (id.to_owned(), container.to_owned());
        let ending = tokio::spawn(async move { world.end_program(&engine, &id, container).await });
        let _ = timeout(SOON, ending).await;
    }

    async fn end_program(&self, engine: &Engine, id: &str, container: String) {
        let (program, runs) = match started(engine, id).await {
            Ok(Some(started)) => started,
            Ok(None) => return,
            Err(trouble) => {
                let error = trouble.to_string();
                tracing::warn!(error, "a program beside a task may go on for ever");
                return;
            }
        };
        let ended = self.blocking(move || {
            end_tree(program, runs, &container);
            Ok(())
        });
        if let Err(failure) = ended.await {
            let error = failure.message;
            tracing::warn!(error, "cannot end a program beside a task");
        }
    }

    /// What ends with its task has not failed: the end of the task is told first.
    async fn unless_it_ended(&self, launch: LaunchId, engine: &Engine, container: &str) {
        let found = engine.inspect(container).await;
        if !found.is_ok_and(|found| super::exit::runs(&found)) {
            // One that nobody tells is no reason to wait for ever.
            let _ = timeout(SOON, self.held.until_ended(launch)).await;
        }
    }
}

/// What whoever is connected says, to the program.
async fn pass_in(
    engine: Engine,
    id: String,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    mut input: mpsc::Receiver<SessionInput>,
) {
    while let Some(piece) = input.recv().await {
        let passed = match piece {
            SessionInput::Stdin(bytes) => to.write_all(&bytes).await,
            SessionInput::CloseStdin => to.shutdown().await,
            SessionInput::Resize(size) => {
                let options = ResizeExecOptionsBuilder::new()
                    .h(size.height.into())
                    .w(size.width.into())
                    .build();
                // A program that ended has no window.
                let _ = Engine::within(SOON, engine.docker().resize_exec(&id, options)).await;
                Ok(())
            }
        };
        // It takes nothing any more; what it says is still read.
        if passed.is_err() {
            return;
        }
    }
}

/// What the program says, as fast as it is taken.
async fn pass_out(
    mut from: ReadHalf<TokioIo<Upgraded>>,
    has_terminal: bool,
    to: &mpsc::Sender<SessionOutput>,
) -> Result<(), String> {
    let mut frames = Frames::default();
    let mut space = vec![0; CHUNK / 4];
    loop {
        let read = from
            .read(&mut space)
            .await
            .map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(());
        }
        let bytes = space.get(..read).unwrap_or_default();
        let mut pieces = Vec::new();
        match has_terminal {
            true => pieces.push((Output::Stdout, Bytes::copy_from_slice(bytes))),
            false => frames.feed(bytes, |which, part| {
                pieces.push((which, Bytes::copy_from_slice(part)))
            })?,
        }
        for (which, bytes) in pieces {
            // That nobody takes it is seen by who waits for that.
            let _ = to.send(SessionOutput::Data(which, bytes)).await;
        }
    }
}

/// The beginning of what a program prints. All of it is read, so that it waits for nobody.
async fn print(stream: &mut TokioIo<Upgraded>) -> String {
    let (mut frames, mut printed) = (Frames::default(), Vec::new());
    let mut space = vec![0; MAX_OUTPUT];
    while let Ok(read) = stream.read(&mut space).await
        && read > 0
    {
        let bytes = space.get(..read).unwrap_or_default();
        let take = |_, part: &[u8]| {
            let remaining = MAX_OUTPUT - printed.len();
            printed.extend_from_slice(part.get(..remaining).unwrap_or(part));
        };
        if frames.feed(bytes, take).is_err() {
            break;
        }
    }
    String::from_utf8_lossy(&printed).into_owned()
}

/// The process of a program, and whether it runs; none, if it could not be started.
///
/// The engine takes the connection before it starts the program: one that is to end may not have begun yet, and nothing
/// takes its start back.
///
/// # Errors
/// The engine does not say.
async fn started(engine: &Engine, id: &str) -> Result<Option<(i32, bool)>, Trouble> {
    let begun = async {
        let mut pause = Duration::from_millis(5);
        loop {
            let found = engine.inspect_exec(id).await?;
            let process = found.pid.and_then(|pid| i32::try_from(pid).ok());
            if let Some(process) = process.filter(|pid| *pid > 0) {
                return Ok(Some((process, found.running == Some(true))));
            }
            if found.exit_code.is_some() {
                return Ok(None);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    };
    let late = |_| Trouble::Silent("it neither starts it nor says that it cannot".to_owned());
    timeout(START, begun).await.map_err(late)?
}

/// The code of a program whose output ended.
async fn exit_code(engine: &Engine, id: &str) -> Option<i32> {
    let ended = async {
        let mut pause = Duration::from_millis(5);
        loop {
            let found = engine.inspect_exec(id).await.ok()?;
            if found.running != Some(true) {
                return found.exit_code.and_then(|code| i32::try_from(code).ok());
            }
            sleep(pause).await;
            pause *= 2;
        }
    };
    timeout(END_TIME, ended).await.ok().flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::driver::docker::fake;

    /// What is found out of an engine that says these of a program, one after the other, and then the last again.
    async fn found(
        answers: &'static [(u16, &'static str)],
    ) -> Result<Option<(i32, bool)>, Trouble> {
        let asked = AtomicUsize::new(0);
        let (engine, _dir) = fake::engine(move |_| {
            let time = asked.fetch_add(1, Ordering::Relaxed);
            let (status, says) = answers[time.min(answers.len() - 1)];
            (status, says.to_owned())
        })
        .await;
        started(&engine, "x").await
    }

    #[tokio::test]
    async fn program_that_is_started_late_is_waited_for() {
        const WAITS: &str = r#"{"Running":false,"ExitCode":null,"Pid":0}"#;
        let late = &[
            (200, WAITS),
            (200, WAITS),
            (200, r#"{"Running":true,"Pid":7}"#),
        ];
        assert_eq!(found(late).await, Ok(Some((7, true))));
        let over = &[(200, r#"{"Running":false,"ExitCode":0,"Pid":7}"#)];
        assert_eq!(found(over).await, Ok(Some((7, false))));
        let failed = &[
            (200, WAITS),
            (200, r#"{"Running":false,"ExitCode":126,"Pid":0}"#),
        ];
        assert_eq!(found(failed).await, Ok(None));
        let gone = &[(404, r#"{"message":"no such exec"}"#)];
        assert!(matches!(found(gone).await, Err(Trouble::Unknown(_))));
    }
}
