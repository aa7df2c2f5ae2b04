//! Websockets: their bounds, how they end, and the messages of exec sessions.
//!
//! The messages are Nomad's: JSON in text frames, bytes in base64. Each is bounded, and so is what is buffered
//! for a reader that is slow, who holds up the program that writes.

use std::borrow::Cow;

use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade, close_code};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use drover_core::model::alloc::ExitResult;
use drover_io_real::session::{Output, SessionInput, WindowSize};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// The most bytes of a message that is received.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;
/// How much is read at once.
const READ_BUFFER: usize = 16 << 10;
/// How much is written at once, and at most before somebody has to read.
const WRITE_BUFFER: (usize, usize) = (16 << 10, 1 << 20);
/// The most bytes of the reason in a frame that closes a websocket.
const MAX_REASON: usize = 123;

/// A websocket within bounds.
pub(super) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    let (usual, most) = WRITE_BUFFER;
    upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(usual)
        .max_write_buffer_size(most)
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
}

/// The same for a websocket that is no upgrade of a request.
pub(super) fn limits(most: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER.0)
        .max_write_buffer_size(WRITE_BUFFER.1)
        .max_message_size(Some(most))
        .max_frame_size(Some(most))
}

/// Why a websocket is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    /// The code that clients see.
    pub(super) code: u16,
    /// In words.
    pub(super) reason: String,
}

impl Closing {
    /// All is said.
    pub(super) fn done() -> Closing {
        Closing {
            code: close_code::NORMAL,
            reason: String::new(),
        }
    }

    /// What was asked for makes no sense.
    pub(super) fn refused(reason: impl Into<String>) -> Closing {
        Closing {
            code: close_code::POLICY,
            reason: reason.into(),
        }
    }

    /// It failed.
    pub(super) fn failed(reason: impl Into<String>) -> Closing {
        Closing {
            code: close_code::ERROR,
            reason: reason.into(),
        }
    }

    /// As the last message, whose reason is cut to what fits.
    pub(super) fn message(mut self) -> Message {
        let mut end = MAX_REASON.min(self.reason.len());
        while !self.reason.is_char_boundary(end) {
            end -= 1;
        }
        self.reason.truncate(end);
        Message::Close(Some(CloseFrame {
            code: self.code,
            reason: self.reason.into(),
        }))
    }
}

/// A message of a client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FromClient<'a> {
    #[serde(borrow)]
    stdin: Option<Operation<'a>>,
    tty_size: Option<Size>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Operation<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    close: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Size {
    height: i64,
    width: i64,
}

/// What a client's message says to a program, in this order.
///
/// # Errors
/// It makes no sense.
pub(crate) fn read_input(text: &[u8]) -> Result<Vec<SessionInput>, String> {
    let strange = |error: serde_json::Error| format!("a message cannot be read: {error}");
    let FromClient { stdin, tty_size } = serde_json::from_slice(text).map_err(strange)?;
    let mut inputs = Vec::new();
    if let Some(Size { height, width }) = tty_size {
        let side = |length: i64| u16::try_from(length.max(0)).unwrap_or(u16::MAX);
        inputs.push(SessionInput::Resize(WindowSize {
            height: side(height),
            width: side(width),
        }));
    }
    if let Some(Operation { data, close }) = stdin {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let bytes = STANDARD.decode(data.as_bytes());
            let bytes = bytes.map_err(|error| format!("stdin is no base64: {error}"))?;
            inputs.push(SessionInput::Stdin(bytes.into()));
        }
        if close {
            inputs.push(SessionInput::CloseStdin);
        }
    }
    Ok(inputs)
}

/// What is said to a program, as a client's message.
pub(crate) fn write_input(input: &SessionInput) -> String {
    match input {
        SessionInput::Stdin(bytes) => data_message("stdin", bytes),
        SessionInput::CloseStdin => r#"{"stdin":{"close":true}}"#.to_owned(),
        SessionInput::Resize(WindowSize { height, width }) => {
            format!(r#"{{"tty_size":{{"height":{height},"width":{width}}}}}"#)
        }
    }
}

fn name(output: Output) -> &'static str {
    match output {
        Output::Stdout => "stdout",
        Output::Stderr => "stderr",
    }
}

/// Some output as a message.
pub(crate) fn write_data(output: Output, bytes: &[u8]) -> String {
    data_message(name(output), bytes)
}

fn data_message(stream: &str, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 3 * 4 + 40);
    text.push_str("{\"");
    text.push_str(stream);
    text.push_str("\":{\"data\":\"");
    STANDARD.encode_string(bytes, &mut text);
    text.push_str("\"}}");
    text
}

/// That there is no more of an output.
pub(crate) fn write_closed(output: Output) -> String {
    format!(r#"{{"{}":{{"close":true}}}}"#, name(output))
}

/// How a program ended. As in Nomad a zero is left out.
pub(crate) fn write_exit(result: &ExitResult) -> String {
    match result.code.unwrap_or(-1) {
        0 => r#"{"exited":true,"result":{}}"#.to_owned(),
        code => format!(r#"{{"exited":true,"result":{{"exit_code":{code}}}}}"#),
    }
}

/// What an agent says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromAgent {
    /// Some output.
    Data(Output, Bytes),
    /// It ended with this code.
    Exited(i32),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentMessage<'a> {
    #[serde(borrow)]
    stdout: Option<Operation<'a>>,
    #[serde(borrow)]
    stderr: Option<Operation<'a>>,
    exited: bool,
    result: Option<ExitMessage>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct ExitMessage {
    exit_code: i32,
}

/// What an agent's message says; nothing that a client has to do if it is empty.
///
/// # Errors
/// It makes no sense.
pub(crate) fn read_output(text: &[u8]) -> Result<Vec<FromAgent>, String> {
    let strange = |error: serde_json::Error| format!("a message cannot be read: {error}");
    let message: AgentMessage<'_> = serde_json::from_slice(text).map_err(strange)?;
    let mut all = Vec::new();
    let streams = [
        (Output::Stdout, message.stdout),
        (Output::Stderr, message.stderr),
    ];
    for (output, operation) in streams {
        let data = operation.and_then(|operation| operation.data);
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let bytes = STANDARD.decode(data.as_bytes());
            let bytes = bytes.map_err(|error| format!("output is no base64: {error}"))?;
            all.push(FromAgent::Data(output, bytes.into()));
        }
    }
    if message.exited {
        let code = message.result.unwrap_or_default().exit_code;
        all.push(FromAgent::Exited(code));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_messages_of_clients_are_read() {
        let read = |text: &str| read_input(text.as_bytes()).unwrap();
        assert_eq!(
            read(r#"{"stdin":{"data":"bGluZSBvbmUK"}}"#),
            [SessionInput::Stdin("line one\n".into())]
        );
        assert_eq!(
            read(r#"{"stdin":{"close":true}}"#),
            [SessionInput::CloseStdin]
        );
        let size = WindowSize {
            height: 40,
            width: 100,
        };
        assert_eq!(
            read(r#"{"tty_size":{"height":40,"width":100}}"#),
            [SessionInput::Resize(size)]
        );
        assert_eq!(read("{}"), [], "a heartbeat");
        assert_eq!(read(r#"{"stdin":null,"new":[1]}"#), [], "what is not known");
        assert_eq!(
            read(r#"{"stdin":{"data":"aA\u003d=","close":true}}"#),
            [SessionInput::Stdin("h".into()), SessionInput::CloseStdin]
        );
    }

    #[test]
    fn messages_are_written_as_recorded() {
        let exit = |code| ExitResult {
            code: Some(code),
            ..ExitResult::default()
        };
        for (written, recorded) in [
            (
                write_data(Output::Stderr, b"bad\n"),
                r#"{"stderr":{"data":"YmFkCg=="}}"#,
            ),
            (write_closed(Output::Stdout), r#"{"stdout":{"close":true}}"#),
            (write_exit(&exit(0)), r#"{"exited":true,"result":{}}"#),
            (
                write_exit(&exit(5)),
                r#"{"exited":true,"result":{"exit_code":5}}"#,
            ),
        ] {
            assert_eq!(written, recorded);
        }
        let both = [
            FromAgent::Data(Output::Stdout, "x".into()),
            FromAgent::Exited(0),
        ];
        let text = r#"{"exited":true,"result":{},"stdout":{"data":"eA=="}}"#;
        assert_eq!(read_output(text.as_bytes()).unwrap(), both);
    }

    #[test]
    fn input_written_by_client_is_read_by_agent() {
        let size = WindowSize {
            height: 1,
            width: 65535,
        };
        for input in [
            SessionInput::Stdin(Bytes::from((0..=255).collect::<Vec<u8>>())),
            SessionInput::CloseStdin,
            SessionInput::Resize(size),
        ] {
            let text = write_input(&input);
            assert_eq!(read_input(text.as_bytes()).unwrap(), [input]);
        }
    }

    /// Damaged messages: an error or inputs that are not larger than what came, and no panic.
    #[test]
    fn damaged_messages_are_errors() {
        let seeds = [
            r#"{"stdin":{"data":"bGluZSBvbmUK","close":true}}"#,
            r#"{"tty_size":{"height":-1,"width":99999999}}"#,
            r#"{"exited":true,"result":{"exit_code":5},"stdout":{"data":"eA=="}}"#,
        ];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        let (mut good, mut bad) = (0, 0);
        for round in 0..20_000 {
            let mut text = seeds[round % seeds.len()].as_bytes().to_vec();
            for _ in 0..=next(4) {
                let at = next(text.len());
                match next(4) {
                    0 => text[at] = u8::try_from(next(256)).unwrap_or(0),
                    1 => text.truncate(at.max(1)),
                    2 => text.insert(at, b"{}[]\"\\,:0"[next(9)]),
                    _ => text.extend_from_within(at..),
                }
            }
            let read: Result<usize, String> = read_input(&text).map(|inputs| {
                let size = |input: &SessionInput| match input {
                    SessionInput::Stdin(bytes) => bytes.len(),
                    SessionInput::CloseStdin | SessionInput::Resize(_) => 0,
                };
                inputs.iter().map(size).sum()
            });
            match &read {
                Ok(size) => assert!(*size <= text.len()),
                Err(why) => assert!(!why.is_empty()),
            }
            let _ = read_output(&text);
            good += usize::from(read.is_ok());
            bad += usize::from(read.is_err());
        }
        assert!(good > 500 && bad > 500, "{good} {bad}");
    }

    #[test]
    fn long_reason_is_cut_between_characters() {
        let Message::Close(Some(frame)) = Closing::failed("ä".repeat(100)).message() else {
            panic!("it closes");
        };
        assert_eq!(frame.reason.len(), 122);
        assert_eq!(frame.code, 1011);
    }
}
