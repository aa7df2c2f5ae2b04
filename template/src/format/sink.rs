//! Bytes that are written up to a limit.

use crate::error::Fault;

/// Bytes, and how many more there may be.
#[derive(Default)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    left: usize,
    what: &'static str,
    limit: usize,
}

impl Sink {
    /// One that takes `left` bytes; what it says when there are more names the whole limit.
    pub(crate) fn new(left: usize, what: &'static str, limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            left,
            what,
            limit,
        }
    }

    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Fault> {
        let bytes = bytes.as_ref();
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None => return Err(self.full()),
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn push_char(&mut self, char: char) -> Result<(), Fault> {
        self.push(char.encode_utf8(&mut [0; 4]))
    }

    /// The same many times.
    pub(crate) fn repeat(&mut self, char: char, times: usize) -> Result<(), Fault> {
        if times > self.left {
            return Err(self.full());
        }
        for _ in 0..times {
            self.push_char(char)?;
        }
        Ok(())
    }

    /// How many characters stand on the last line.
    pub(crate) fn column(&self) -> usize {
        let line = self
            .bytes
            .rsplit(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        line.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn full(&self) -> Fault {
        let Self { what, limit, .. } = self;
        Fault::limit(format!(
            "{what} of more than {limit} bytes: make it shorter"
        ))
    }
}
