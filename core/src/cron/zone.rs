//! What the clocks of a time zone show: their distance from UTC, and when it changes. The core has no list of
//! zones; whoever drives it reports what it asks for.

use serde::{Deserialize, Serialize};

/// The most changes that are taken of one zone.
pub const MAX_CHANGES: usize = 512;

/// The furthest that a zone may be from UTC, in seconds.
const FURTHEST: i32 = 26 * 3600;

/// The local time of a zone from one second to another. All times are seconds since 1970 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ZoneOffsets {
    /// The first second that is told of.
    pub from: i64,
    /// The first that is not any more.
    pub until: i64,
    /// How far local time is ahead of UTC at first, in seconds.
    pub first: i32,
    /// When that changes, and to what; in order.
    pub changes: Vec<(i64, i32)>,
}

/// A while in which a zone's offset does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The first second.
    pub(super) from: i64,
    /// The first that is not in it.
    pub(super) until: i64,
    pub(super) offset: i64,
}

impl ZoneOffsets {
    /// UTC, for ever.
    pub fn utc() -> ZoneOffsets {
        ZoneOffsets {
            from: i64::MIN,
            until: i64::MAX,
            first: 0,
            changes: Vec::new(),
        }
    }

    /// Whether it tells of this second.
    pub fn covers(&self, at: i64) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// Whether this can be true.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self) -> Result<(), String> {
        let mut changes = self.changes.iter();
        if self.changes.len() > MAX_CHANGES {
            return Err(format!("it tells of more than {MAX_CHANGES} changes"));
        }
        let offsets = changes.clone().map(|(_, offset)| *offset);
        let far = |offset: i32| offset.unsigned_abs() > FURTHEST.unsigned_abs();
        if core::iter::once(self.first).chain(offsets).any(far) {
            return Err("it is more than a day from UTC".to_owned());
        }
        let mut before = self.from;
        let ordered = changes.all(|(at, _)| core::mem::replace(&mut before, *at) <= *at);
        if !ordered || before >= self.until {
            return Err("its times are not in order".to_owned());
        }
        Ok(())
    }

    /// How far local time is ahead of UTC at a second, if that is known.
    pub fn offset(&self, at: i64) -> Option<i64> {
        let mut stretches = self.stretches();
        let found = stretches.find(|one| (one.from..one.until).contains(&at))?;
        Some(found.offset)
    }

    /// The stretches between changes, in order.
    pub(super) fn stretches(&self) -> impl DoubleEndedIterator<Item = Stretch> {
        let begins = core::iter::once((self.from, self.first)).chain(self.changes.iter().copied());
        let begins: Vec<(i64, i32)> = begins.collect();
        let ends: Vec<i64> = (begins.iter().skip(1).map(|(at, _)| *at))
            .chain([self.until])
            .collect();
        begins
            .into_iter()
            .zip(ends)
            .map(|((from, offset), until)| Stretch {
                from,
                until,
                offset: i64::from(offset),
            })
    }
}

/// Whether a zone is UTC, as one that is not named is: it needs no looking up.
pub fn is_utc(name: &str) -> bool {
    name.is_empty() || name == "UTC"
}
