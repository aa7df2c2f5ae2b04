//! Reads msgpack objects from a stream, however their bytes are split.

use std::io;

use futures::io::{AsyncRead, AsyncReadExt};

use crate::msgpack::{Malformed, Scanner};

/// How many bytes are read at once.
const CHUNK: usize = 16 << 10;

/// A buffer with more capacity is shrunk after a large object.
const MAX_SPARE: usize = 64 << 10;

/// Why there is no next object.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The end of the stream, after an object or within one.
    End { within: bool },
    /// Not msgpack, or beyond a limit.
    Malformed(Malformed),
    /// The stream failed.
    Io(io::Error),
}

/// Reads objects one after the other.
pub(super) struct MessageReader<R> {
    stream: R,
    buffer: Vec<u8>,
    /// The length of the last object, which is still at the beginning of the buffer.
    returned: usize,
    /// Where the end of the next object is looked for, once bytes of it were scanned.
    scanner: Option<Scanner>,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    pub(super) fn new(stream: R) -> MessageReader<R> {
        MessageReader {
            stream,
            buffer: Vec::new(),
            returned: 0,
            scanner: None,
        }
    }

    /// The stream, to write to it.
    pub(super) fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The next object, of `max` bytes at most. Cancel safe: dropping the future loses no bytes.
    pub(super) async fn next(&mut self, max: usize) -> Result<&[u8], ReadError> {
        self.remove_returned();
        loop {
            let scanner = self.scanner.get_or_insert_with(|| Scanner::new(max));
            if let Some(end) = scanner.scan(&self.buffer).map_err(ReadError::Malformed)? {
                self.scanner = None;
                self.returned = end;
                return Ok(&self.buffer[..end]);
            }
            if self.fill().await.map_err(ReadError::Io)? == 0 {
                return Err(ReadError::End {
                    within: !self.buffer.is_empty(),
                });
            }
        }
    }

    fn remove_returned(&mut self) {
        self.buffer.drain(..self.returned);
        self.returned = 0;
        if self.buffer.len() < CHUNK && self.buffer.capacity() > MAX_SPARE {
            self.buffer.shrink_to(CHUNK);
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        let mut chunk = Chunk {
            buffer: &mut self.buffer,
            filled,
        };
        let read = self.stream.read(&mut chunk.buffer[filled..]).await?;
        chunk.filled += read;
        Ok(read)
    }
}

/// Cuts the buffer to what was filled, also if reading is cancelled.
struct Chunk<'a> {
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        self.buffer.truncate(self.filled);
    }
}
