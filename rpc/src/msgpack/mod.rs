//! The encoding of messages: msgpack as servers write it.
//!
//! Servers use msgpack as it was before strings and bytes were distinguished. No library writes this dialect, so
//! a serializer and a deserializer for serde are here:
//!
//! - Strings and bytes are the same type, "raw", with lengths of 5, 16 or 32 bits, never of 8. A string that is
//!   not UTF-8 is repaired when it is decoded; bytes ([`Raw`]) are kept.
//! - Integers of signed types are written in signed forms, others in unsigned ones. All forms are read.
//! - Structs are maps by field name. Arrays in place of structs, which Go decodes by position, are refused.
//! - Nil is accepted for every type, as its zero value. Empty lists, maps and bytes are written as nil.
//! - Some structs are written without their empty fields ([`encode()`]). A missing field has its zero value.
//! - Times are 15 raw bytes ([`Time`]).
//!
//! Decoding any bytes ends, without a panic, in memory proportional to the message ([`decode()`]). Objects have
//! no length in front of them; [`Scanner`] finds where they end while their bytes arrive.

mod decode;
mod encode;
mod head;
mod raw;
mod scan;
mod secret;
mod time;
mod value;

use std::fmt;

pub use decode::decode;
pub use encode::{Unencodable, encode, encode_onto};
pub use raw::Raw;
pub use scan::{Scanner, end_of};
pub use secret::Secret;
pub use time::Time;
pub use value::Value;

/// How deep lists and maps may lie in each other.
pub const MAX_DEPTH: usize = 64;

/// Why bytes are not the message that they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A byte that cannot begin an object.
    InvalidByte(u8),
    /// More bytes than are allowed.
    TooLong,
    /// Deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The bytes end before the object does.
    Truncated,
    /// Bytes follow the object.
    TrailingBytes,
    /// Decoding it would take far more memory than its bytes justify.
    OverBudget,
    /// Not of the declared type; in words.
    InvalidType(String),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::InvalidByte(mark) => {
                write!(f, "byte {mark:#04x} cannot begin a msgpack object")
            }
            Malformed::TooLong => f.write_str("longer than a message may be"),
            Malformed::TooDeep => write!(f, "deeper than {MAX_DEPTH} levels"),
            Malformed::Truncated => f.write_str("it is truncated"),
            Malformed::TrailingBytes => f.write_str("bytes follow it"),
            Malformed::OverBudget => f.write_str("decoding it would take too much memory"),
            Malformed::InvalidType(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Malformed {}
