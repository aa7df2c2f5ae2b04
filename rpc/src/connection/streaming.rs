//! Inbound streaming calls: logs, files, exec sessions, the agent's own log.
//!
//! The server sends a header, gets an acknowledgement, and sends its request. From then on both sides send
//! objects. The end of the server's objects means that its user has gone away.

use std::io;

use futures::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use serde::Serialize;
use serde::de::DeserializeOwned;
use yamux::Stream;

use super::inbound::InboundCall;
use super::reader::{MessageReader, ReadError};
use crate::msgpack::{Malformed, Raw, decode, encode};
use crate::types::stream::{StreamAck, StreamError, StreamHeader, StreamOut};

/// The longest header, in bytes. It holds a method.
const MAX_HEADER: usize = 4 << 10;

/// The objects that the server sends.
pub struct Input {
    reader: MessageReader<ReadHalf<Stream>>,
    max: usize,
}

/// Why there are no more objects.
#[derive(Debug)]
pub enum InputEnd {
    /// The server sends no more: the call should end.
    Closed,
    /// It sent something invalid.
    Malformed(Malformed),
    /// The connection failed.
    Failed(io::Error),
}

impl Input {
    pub(super) fn new(stream: ReadHalf<Stream>, max: usize) -> Input {
        Input {
            reader: MessageReader::new(stream),
            max,
        }
    }

    /// The next object. Cancel safe.
    ///
    /// # Errors
    /// If there is none.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<T, InputEnd> {
        let object = self.bytes(self.max).await?;
        decode(object).map_err(InputEnd::Malformed)
    }

    /// Discards objects until there are no more.
    pub async fn end(&mut self) -> InputEnd {
        loop {
            if let Err(end) = self.bytes(self.max).await {
                return end;
            }
        }
    }

    async fn bytes(&mut self, max: usize) -> Result<&[u8], InputEnd> {
        self.reader.next(max).await.map_err(|error| match error {
            ReadError::End { within: false } => InputEnd::Closed,
            ReadError::End { within: true } => InputEnd::Malformed(Malformed::Truncated),
            ReadError::Malformed(reason) => InputEnd::Malformed(reason),
            ReadError::Io(error) => InputEnd::Failed(error),
        })
    }
}

/// The objects that we send. While the server does not read, sending waits.
pub struct Output {
    stream: WriteHalf<Stream>,
}

impl Output {
    pub(super) fn new(stream: WriteHalf<Stream>) -> Output {
        Output { stream }
    }

    /// Sends a payload; an empty one is a heartbeat.
    ///
    /// # Errors
    /// If the stream or the connection is closed.
    pub async fn send(&mut self, payload: Vec<u8>) -> io::Result<()> {
        self.write(&StreamOut {
            error: None,
            payload: Raw(payload),
        })
        .await
    }

    /// Sends an error with an HTTP status code. Nothing may follow it.
    ///
    /// # Errors
    /// As [`Output::send`].
    pub async fn fail(&mut self, code: i64, message: impl Into<String>) -> io::Result<()> {
        let error = StreamError {
            code: Some(code),
            message: message.into(),
        };
        self.write(&StreamOut {
            error: Some(error),
            payload: Raw::default(),
        })
        .await
    }

    async fn write<T: Serialize>(&mut self, object: &T) -> io::Result<()> {
        let bytes = encode(object).map_err(io::Error::other)?;
        self.stream.write_all(&bytes).await
    }

    pub(super) async fn close(&mut self) {
        // A failure means that the stream is closed already.
        drop(self.stream.close().await);
    }
}

/// Reads the header, acknowledges it, and reads the request. `None`: the call cannot be served.
pub(super) async fn accept(
    input: &mut Input,
    output: &mut Output,
    is_known: impl Fn(&str) -> bool,
) -> Option<InboundCall> {
    let header: StreamHeader = decode(input.bytes(MAX_HEADER).await.ok()?).ok()?;
    if !is_known(&header.method) {
        let error = format!("Unknown rpc method: {:?}", header.method);
        output.write(&StreamAck { error }).await.ok()?;
        output.close().await;
        return None;
    }
    output.write(&StreamAck::default()).await.ok()?;
    let body = input.bytes(input.max).await.ok()?;
    Some(InboundCall::new(header.method, body))
}
