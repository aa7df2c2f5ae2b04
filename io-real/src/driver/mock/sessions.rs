//! Exec sessions in tasks of the mock driver: what `exec_command` says happens. The command `showinput` says what
//! it is given instead.

use std::sync::Arc;

use bytes::Bytes;
use drover_core::driver::config::{MockCommand, MockOutput};
use drover_core::effect::request::{OpenSession, SessionProgram};
use drover_core::op::Failure;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{World, duration, exit_of};
use crate::driver::session::Opening;
use crate::session::{Output, SessionInput, SessionOutput, SessionServer};

impl World {
    /// Opens a session and stays with it to its end.
    pub(super) async fn open_session(
        self: Arc<Self>,
        asked: OpenSession,
        opening: Opening,
        server: SessionServer,
    ) {
        let task = self.tasks().running.get(&asked.launch).map(|task| {
            let command = task.config.exec_command.clone();
            (command, task.stop.subscribe())
        });
        let (command, stopped) = match task {
            Some((Some(command), stopped)) => (command, stopped),
            Some((None, _)) => {
                return opening.failed(Failure::fatal("the task has no exec_command"));
            }
            None => return opening.failed(Failure::fatal("task not running")),
        };
        let _open = opening.opened();
        let SessionServer { input, output } = server;
        tokio::select! {
            () = run(&asked.program, &command, input, &output) => {}
            () = ended(stopped) => {}
            () = output.closed() => {}
        }
    }
}

/// Waits until the task is told to end, or was destroyed.
async fn ended(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn run(
    program: &SessionProgram,
    command: &MockCommand,
    input: mpsc::Receiver<SessionInput>,
    output: &mpsc::Sender<SessionOutput>,
) {
    if program.command == "showinput" {
        show(program.tty, input, output).await;
    } else {
        tokio::join!(
            say(&command.stdout, Output::Stdout, output),
            say(&command.stderr, Output::Stderr, output),
            sleep(duration(command.run_for)),
        );
    }
    // Who is gone need not hear it.
    let _ = output.send(SessionOutput::Exited(exit_of(command))).await;
}

async fn say(what: &MockOutput, which: Output, output: &mpsc::Sender<SessionOutput>) {
    if !what.text.is_empty() {
        for round in 0..=what.repeat {
            if round > 0 {
                sleep(duration(what.gap)).await;
            }
            let data = Bytes::from(what.text.clone());
            let _ = output.send(SessionOutput::Data(which, data)).await;
        }
    }
    let _ = output.send(SessionOutput::Closed(which)).await;
}

async fn show(
    tty: bool,
    mut input: mpsc::Receiver<SessionInput>,
    output: &mpsc::Sender<SessionOutput>,
) {
    let say = async |text: Bytes| {
        let _ = output.send(SessionOutput::Data(Output::Stdout, text)).await;
    };
    say(format!("TTY: {tty}\n--------\n").into()).await;
    while let Some(input) = input.recv().await {
        match input {
            SessionInput::Stdin(bytes) => say(bytes).await,
            SessionInput::CloseStdin => break,
            SessionInput::Resize(_) => {}
        }
    }
    let _ = output.send(SessionOutput::Closed(Output::Stdout)).await;
}
