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
        let size = times.checked_mul(char.len_utf8());
        let left = size.and_then(|size| self.left.checked_sub(size));
        let Some(left) = left else {
            return Err(self.full());
        };
        self.left = left;
        let mut bytes = [0; 4];
        let bytes = char.encode_utf8(&mut bytes).as_bytes();
        match bytes {
            [byte] => self.bytes.resize(self.bytes.len() + times, *byte),
            _ => self.bytes.extend(bytes.repeat(times)),
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
