//! Times, as Go encodes them: version, seconds since the year 1, nanoseconds, zone.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Seconds from the beginning of the year 1 to that of 1970.
const EPOCH: i64 = 62_135_596_800;

/// A time. The zone affects only how it is displayed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since the year 1; 0 means "never".
    seconds: i64,
    nanoseconds: u32,
    /// Minutes east of Greenwich; -1: UTC.
    zone: i16,
    /// Seconds in addition, for historic zones.
    zone_seconds: i8,
}

impl Time {
    /// "Never".
    pub const ZERO: Time = Time {
        seconds: 0,
        nanoseconds: 0,
        zone: -1,
        zone_seconds: 0,
    };

    /// A time in UTC from nanoseconds since 1970.
    pub fn from_unix_nanos(nanos: i64) -> Time {
        let (seconds, rest) = (
            nanos.div_euclid(1_000_000_000),
            nanos.rem_euclid(1_000_000_000),
        );
        Time {
            seconds: seconds + EPOCH,
            nanoseconds: rest as u32,
            ..Time::ZERO
        }
    }

    /// Nanoseconds since 1970. `None`: "never", or out of range.
    pub fn unix_nanos(self) -> Option<i64> {
        if self.seconds == 0 {
            return None;
        }
        let seconds = self
            .seconds
            .checked_sub(EPOCH)?
            .checked_mul(1_000_000_000)?;
        seconds.checked_add(i64::from(self.nanoseconds))
    }

    /// Decodes 15 bytes, or 16 of version 2.
    fn from_bytes(bytes: &[u8]) -> Option<Time> {
        let (&version, rest) = bytes.split_first()?;
        let (seconds, rest) = rest.split_first_chunk()?;
        let (nanoseconds, rest) = rest.split_first_chunk()?;
        let (zone, rest) = rest.split_first_chunk()?;
        let zone_seconds = match (version, rest) {
            (1, []) => 0,
            (2, [seconds]) => *seconds as i8,
            _ => return None,
        };
        Some(Time {
            seconds: i64::from_be_bytes(*seconds),
            nanoseconds: u32::from_be_bytes(*nanoseconds),
            zone: i16::from_be_bytes(*zone),
            zone_seconds,
        })
    }
}

impl Default for Time {
    fn default() -> Time {
        Time::ZERO
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unix_nanos() {
            Some(nanos) => write!(f, "{nanos} ns"),
            None => f.write_str("never"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = [0; 16];
        let odd = self.zone_seconds != 0;
        bytes[0] = if odd { 2 } else { 1 };
        bytes[1..9].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[9..13].copy_from_slice(&self.nanoseconds.to_be_bytes());
        bytes[13..15].copy_from_slice(&self.zone.to_be_bytes());
        bytes[15] = self.zone_seconds as u8;
        serializer.serialize_bytes(&bytes[..if odd { 16 } else { 15 }])
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time of 15 bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Time, E> {
                match bytes {
                    [] => Ok(Time::ZERO),
                    _ => {
                        Time::from_bytes(bytes).ok_or_else(|| E::invalid_length(bytes.len(), &self))
                    }
                }
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
