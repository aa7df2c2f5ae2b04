//! One exec session of the command line: standard input, output and errors over a websocket.

use std::future::pending;
use std::io::{self, Write};
use std::time::Duration;

use drover_io_real::session::{Output, SessionInput};
use futures::{SinkExt, StreamExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::interval;
use tokio_tungstenite::tungstenite::Message;

use super::escape::Escape;
use super::terminal;
use crate::cli::client::Socket;
use crate::cli::exit_code::Failure;
use crate::http::websocket::{FromAgent, read_output, write_input};

/// The most bytes of input in one message.
const CHUNK: usize = 32 << 10;
/// How many of them wait for the agent.
const AHEAD: usize = 2;
/// How often the agent hears that this end lives.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// What a shell says of a program that a signal ended: this and the signal's number.
const BY_SIGNAL: u8 = 128;

/// What a session is connected to here.
pub(super) struct Ends {
    /// Whether standard input goes to it.
    pub(super) input: bool,
    /// Whether it has a terminal.
    pub(super) tty: bool,
    /// What ends it at the beginning of a line.
    pub(super) escape: Option<u8>,
}

/// Stays with a session to its end. The exit code of its program.
pub(super) async fn attend(socket: Socket, ends: &Ends) -> Result<u8, Failure> {
    let _raw = match ends.tty && ends.input {
        true => terminal::Raw::begin()
            .map_err(|error| Failure::new(format!("cannot use the terminal: {error}")))?,
        false => None,
    };
    let signals = Signals::new(ends.tty);
    let mut signals = signals.map_err(|error| Failure::new(format!("no signals: {error}")))?;
    let (mut to_agent, mut from_agent) = socket.split();
    let mut typed = ends.input.then(read_input);
    let mut escape = Escape::new(ends.escape);
    let mut heartbeat = interval(HEARTBEAT);
    if let Some(size) = terminal::size().filter(|_| ends.tty) {
        let text = write_input(&SessionInput::Resize(size));
        send(&mut to_agent, text).await?;
    }
    if !ends.input {
        send(&mut to_agent, write_input(&SessionInput::CloseStdin)).await?;
    }
    loop {
        let text = tokio::select! {
            message = from_agent.next() => match receive(message)? {
                FromSession::Nothing => continue,
                FromSession::Exited(code) => return Ok(code),
            },
            chunk = next(&mut typed) => match chunk {
                Some(chunk) => match escape.typed(&chunk) {
                    Some(bytes) => write_input(&SessionInput::Stdin(bytes.into())),
                    None => return Ok(0),
                },
                None => {
                    typed = None;
                    write_input(&SessionInput::CloseStdin)
                }
            },
            received = signals.next() => match (received, terminal::size()) {
                (Received::Resize, Some(size)) => write_input(&SessionInput::Resize(size)),
                (Received::Resize, None) => continue,
                (Received::End(number), _) => return Ok(BY_SIGNAL + number),
            },
            _ = heartbeat.tick() => "{}".to_owned(),
        };
        send(&mut to_agent, text).await?;
    }
}

async fn send(
    to: &mut (impl SinkExt<Message, Error = tokio_tungstenite::tungstenite::Error> + Unpin),
    text: String,
) -> Result<(), Failure> {
    // If the agent has closed it, what it said last tells why.
    match to.send(Message::Text(text.into())).await {
        Ok(()) => Ok(()),
        Err(tokio_tungstenite::tungstenite::Error::Io(error)) => Err(broken(&error.to_string())),
        Err(_) => Ok(()),
    }
}

/// What came from the agent.
enum FromSession {
    Nothing,
    Exited(u8),
}

fn receive(
    message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
) -> Result<FromSession, Failure> {
    let text = match message {
        Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => message.into_data(),
        Some(Ok(Message::Close(Some(frame)))) => {
            let why = frame.reason;
            return Err(Failure::new(format!("failed to exec into task: {why}")));
        }
        Some(Ok(Message::Close(None))) | None => {
            return Err(broken("the agent closed it"));
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
            return Ok(FromSession::Nothing);
        }
        Some(Err(error)) => return Err(broken(&error.to_string())),
    };
    let outputs = read_output(&text).map_err(|why| broken(&why))?;
    for output in outputs {
        match output {
            FromAgent::Data(Output::Stdout, bytes) => show(&mut io::stdout(), &bytes)?,
            FromAgent::Data(Output::Stderr, bytes) => show(&mut io::stderr(), &bytes)?,
            // As exit codes are cut everywhere.
            FromAgent::Exited(code) => return Ok(FromSession::Exited(code.to_le_bytes()[0])),
        }
    }
    Ok(FromSession::Nothing)
}

fn show(to: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    let shown = to.write_all(bytes).and_then(|()| to.flush());
    // Nobody reads it any more: the program learns that by the end of the session.
    shown.map_err(|_| Failure::quiet(1))
}

fn broken(why: &str) -> Failure {
    Failure::new(format!(
        "failed to exec into task: the connection broke: {why}"
    ))
}

/// Standard input in chunks, read by a thread of its own, which the process does not wait for.
fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (typed, chunks) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let (stdin, mut chunk) = (io::stdin(), vec![0; CHUNK]);
        loop {
            match rustix::io::retry_on_intr(|| rustix::io::read(&stdin, &mut *chunk)) {
                Ok(count @ 1..) => {
                    let bytes = chunk.get(..count).unwrap_or_default().to_vec();
                    if typed.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => return,
            }
        }
    });
    chunks
}

/// The next of what is typed; never, if nothing is wanted.
async fn next(typed: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match typed {
        Some(typed) => typed.recv().await,
        None => pending().await,
    }
}

/// Signals that a session sees to, so that the terminal is given back.
struct Signals {
    resized: Option<Signal>,
    ended: Vec<(u8, Signal)>,
}

/// What a signal says.
enum Received {
    /// The terminal has another size.
    Resize,
    /// This program is to end, by the signal of this number.
    End(u8),
}

impl Signals {
    fn new(tty: bool) -> io::Result<Signals> {
        let kinds = [
            (1, SignalKind::hangup()),
            (2, SignalKind::interrupt()),
            (15, SignalKind::terminate()),
        ];
        let ended = kinds.map(|(number, kind)| Ok((number, signal(kind)?)));
        let resized = tty.then(|| signal(SignalKind::window_change()));
        Ok(Signals {
            resized: resized.transpose()?,
            ended: ended.into_iter().collect::<io::Result<_>>()?,
        })
    }

    async fn next(&mut self) -> Received {
        let ended = self.ended.iter_mut().map(|(number, signal)| {
            Box::pin(async {
                signal.recv().await;
                *number
            })
        });
        let resized = async {
            match &mut self.resized {
                Some(resized) => resized.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = resized => Received::Resize,
            (number, ..) = futures::future::select_all(ended) => Received::End(number),
        }
    }
}
