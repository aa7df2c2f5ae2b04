//! The parsers of what strangers write, for whoever tries them with input that makes no sense (the crate
//! `drover-fuzz`). The API's routes use the same ones.

use std::io::{self, Cursor, Read, Write};

use bytes::Bytes;
use drover_io_real::session::SessionInput;
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};

use super::filter::Filter;
use super::websocket::{self, FromAgent};

/// Whether a filter expression lists an object.
///
/// # Errors
/// It cannot be read, or says what makes no sense of the object.
pub fn filter(expression: &str, object: &Value) -> Result<bool, String> {
    let filter = Filter::parse(expression).map_err(|error| error.message)?;
    filter.takes(object).map_err(|error| error.message)
}

/// What a message of a client says to the program of an exec session.
///
/// # Errors
/// It makes no sense.
pub fn exec_input(text: &[u8]) -> Result<Vec<SessionInput>, String> {
    websocket::read_input(text)
}

/// The message that says this.
pub fn write_exec_input(input: &SessionInput) -> String {
    websocket::write_input(input)
}

/// How many bytes of output a message of an agent says that a program wrote.
///
/// # Errors
/// It makes no sense.
pub fn exec_output(text: &[u8]) -> Result<usize, String> {
    let size = |one: &FromAgent| match one {
        FromAgent::Data(_, bytes) => bytes.len(),
        FromAgent::Exited(_) => 0,
    };
    Ok(websocket::read_output(text)?.iter().map(size).sum())
}

/// What is received over a websocket, and what is answered.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The messages.
    pub messages: Vec<Bytes>,
    /// How many bytes are sent back.
    pub answered: usize,
}

/// The messages that a client sends with these bytes, each of `most` bytes at most, up to the first that is none.
pub fn websocket_messages(bytes: &[u8], most: usize) -> Received {
    let stream = Both {
        from: Cursor::new(bytes),
        answered: 0,
    };
    let config = websocket::limits(most.min(websocket::MAX_MESSAGE));
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
    let mut messages = Vec::new();
    while let Ok(message) = socket.read() {
        // Frames that ping, answer and close are the library's, and it puts words of its own into them.
        if message.is_text() || message.is_binary() {
            messages.push(message.into_data());
        }
    }
    let answered = socket.get_ref().answered;
    Received { messages, answered }
}

/// A connection whose other side has sent all that it will.
struct Both<'b> {
    from: Cursor<&'b [u8]>,
    answered: usize,
}

impl Read for Both<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.from.read(to)
    }
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answered += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
