//! Where the next object ends, while its bytes arrive.
//!
//! A [`Scanner`] passes once over the bytes, however they are split, and refuses an object that is too long or
//! too deep as soon as that is certain.

use super::head::Head;
use super::{MAX_DEPTH, Malformed};

/// Finds the end of one object.
#[derive(Clone, Debug)]
pub struct Scanner {
    max: usize,
    /// How many bytes were scanned; more than arrived, if a string is not complete yet.
    at: usize,
    /// For each list and map that is not complete, how many objects are missing.
    open: Vec<u64>,
    /// How many objects are missing in all; each has a byte at least.
    owed: u64,
}

impl Scanner {
    /// Scans an object of `max` bytes at most.
    pub fn new(max: usize) -> Scanner {
        Scanner {
            max,
            at: 0,
            open: Vec::new(),
            owed: 1,
        }
    }

    /// Continues to scan; `arrived` holds all bytes from the beginning of the object. Returns the length of
    /// the object, or `None` if it is not complete.
    ///
    /// # Errors
    /// If it is longer than `max`, deeper than [`MAX_DEPTH`], or not msgpack.
    pub fn scan(&mut self, arrived: &[u8]) -> Result<Option<usize>, Malformed> {
        while self.owed > 0 {
            let Some(rest) = arrived.get(self.at..) else {
                return Ok(None);
            };
            let Some((head, size)) = Head::read(rest)? else {
                return Ok(None);
            };
            self.step(head, size)?;
        }
        Ok((self.at <= arrived.len()).then_some(self.at))
    }

    /// Passes a head and the bytes that follow it.
    fn step(&mut self, head: Head, size: usize) -> Result<(), Malformed> {
        let (bytes, objects) = head.follows();
        if let Some(last) = self.open.last_mut() {
            *last -= 1;
        }
        self.at = self
            .at
            .checked_add(size + bytes)
            .ok_or(Malformed::TooLong)?;
        self.owed = (self.owed - 1)
            .checked_add(objects)
            .ok_or(Malformed::TooLong)?;
        if self.at as u64 + self.owed > self.max as u64 {
            return Err(Malformed::TooLong);
        }
        if objects > 0 {
            if self.open.len() == MAX_DEPTH {
                return Err(Malformed::TooDeep);
            }
            self.open.push(objects);
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        Ok(())
    }
}

/// The length of the object at the beginning of `bytes`.
///
/// # Errors
/// As [`Scanner::scan`], and if it is not complete.
pub fn end_of(bytes: &[u8]) -> Result<usize, Malformed> {
    Scanner::new(bytes.len())
        .scan(bytes)?
        .ok_or(Malformed::Truncated)
}
