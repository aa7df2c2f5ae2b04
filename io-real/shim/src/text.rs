//! Short texts on the stack: paths under `/proc` and names of files, without an allocator.

use core::ffi::CStr;

/// A text of at most 279 bytes, NUL-terminated. What does not fit is cut off, and the name that
/// results exists nowhere; no caller comes near the limit.
pub struct Text {
    bytes: [u8; 280],
    len: usize,
}

impl Text {
    /// An empty text.
    pub fn new() -> Self {
        Self {
            bytes: [0; 280],
            len: 0,
        }
    }

    /// Adds bytes.
    pub fn push(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.len)
                && self.len < 279
            {
                *place = *byte;
                self.len += 1;
            }
        }
        self
    }

    /// Adds a number in decimal.
    pub fn number(self, mut value: u64) -> Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
            first = at;
            if value == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or_default())
    }

    /// The text as the kernel wants it.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// Reads a decimal number: digits only, no sign, at most 18 of them.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    Some(value)
}
