//! The first bytes of an object: its type and its length.
//!
//! The scanner and the decoder share this code, so that they cannot disagree.

use super::Malformed;

/// The first bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Head {
    Nil,
    Bool(bool),
    Uint(u64),
    Int(i64),
    Float(f64),
    /// A string or bytes; so many bytes follow.
    Raw(usize),
    /// An extension, which servers do not write; so many bytes follow.
    Ext(usize),
    /// So many objects follow.
    List(usize),
    /// So many pairs of objects follow.
    Map(usize),
}

impl Head {
    /// Parses a head; returns it with its length in bytes. `None`: the bytes end within it.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let Some((&mark, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        let size = match mark {
            0xc4 | 0xc7 | 0xcc | 0xd0 | 0xd9 => 1,
            0xc5 | 0xc8 | 0xcd | 0xd1 | 0xda | 0xdc | 0xde => 2,
            0xc6 | 0xc9 | 0xca | 0xce | 0xd2 | 0xdb | 0xdd | 0xdf => 4,
            0xcb | 0xcf | 0xd3 => 8,
            0xc1 => return Err(Malformed::InvalidByte(mark)),
            _ => 0,
        };
        if size == 0 {
            return Ok(Some((Head::of(mark, 0)?, 1)));
        }
        let Some(number) = rest.get(..size) else {
            return Ok(None);
        };
        let number = number
            .iter()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        Ok(Some((Head::of(mark, number)?, 1 + size)))
    }

    /// The head with this first byte, and this number after it.
    #[inline]
    fn of(mark: u8, number: u64) -> Result<Head, Malformed> {
        let length = |extra: u64| usize::try_from(number + extra).map_err(|_| Malformed::TooLong);
        Ok(match mark {
            0x00..=0x7f => Head::Uint(u64::from(mark)),
            0x80..=0x8f => Head::Map(usize::from(mark & 0x0f)),
            0x90..=0x9f => Head::List(usize::from(mark & 0x0f)),
            0xa0..=0xbf => Head::Raw(usize::from(mark & 0x1f)),
            0xc0 => Head::Nil,
            0xc1 => return Err(Malformed::InvalidByte(mark)),
            0xc2 | 0xc3 => Head::Bool(mark == 0xc3),
            0xc4..=0xc6 | 0xd9..=0xdb => Head::Raw(length(0)?),
            // One byte more: the type of the extension.
            0xc7..=0xc9 => Head::Ext(length(1)?),
            0xca => Head::Float(f64::from(f32::from_bits(number as u32))),
            0xcb => Head::Float(f64::from_bits(number)),
            0xcc..=0xcf => Head::Uint(number),
            0xd0 => Head::Int(i64::from(number as i8)),
            0xd1 => Head::Int(i64::from(number as i16)),
            0xd2 => Head::Int(i64::from(number as i32)),
            0xd3 => Head::Int(number as i64),
            0xd4..=0xd8 => Head::Ext(1 + (1 << (mark - 0xd4))),
            0xdc | 0xdd => Head::List(length(0)?),
            0xde | 0xdf => Head::Map(length(0)?),
            0xe0..=0xff => Head::Int(i64::from(mark as i8)),
        })
    }

    /// How many bytes and how many objects follow.
    pub(crate) fn follows(self) -> (usize, u64) {
        match self {
            Head::Nil | Head::Bool(_) | Head::Uint(_) | Head::Int(_) | Head::Float(_) => (0, 0),
            Head::Raw(bytes) | Head::Ext(bytes) => (bytes, 0),
            Head::List(objects) => (0, objects as u64),
            Head::Map(pairs) => (0, 2 * pairs as u64),
        }
    }

    /// Its type, for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Head::Nil => "nil",
            Head::Bool(_) => "a truth value",
            Head::Uint(_) | Head::Int(_) => "an integer",
            Head::Float(_) => "a float",
            Head::Raw(_) => "a string",
            Head::Ext(_) => "an extension",
            Head::List(_) => "a list",
            Head::Map(_) => "a map",
        }
    }
}
