//! What is remembered of a periodic job's launches, so that none happens twice and none is forgotten.
//!
//! Two things are kept apart, because wall clocks may be set. Up to when the clock was followed: what lies before
//! is launched no more, unless the clock is set back to it. And which times are over for good, whatever the clock
//! does: they were launched, or not launched for a reason of the job's.

use serde::{Deserialize, Serialize};

use crate::time::{SECOND, Timestamp};

/// How many separate stretches of times are remembered; the two oldest become one then.
const KEPT_STRETCHES: usize = 16;

/// The launches of a periodic job. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PeriodicRecord {
    /// Up to which second the clock was followed.
    pub followed: i64,
    /// The first and the last time of each stretch in which every time is over. In order.
    pub over: Vec<(i64, i64)>,
    /// What became of the latest time that was considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Considered>,
    /// The state's index of its last change.
    pub modify_index: u64,
}

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Considered {
    /// The time.
    pub time: i64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What becomes of a time of a periodic job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A job was made for it.
    Launched,
    /// An earlier launch was not over, and they must not overlap.
    Overlapping,
    /// The agent or the machine was not there, and the job wants nothing that was missed.
    Missed,
    /// There are too many children.
    TooMany,
}

impl Outcome {
    /// In a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Launched => "launched",
            Outcome::Overlapping => "skipped: an earlier launch was not over",
            Outcome::Missed => "skipped: missed",
            Outcome::TooMany => "skipped: too many launches are not over or kept",
        }
    }
}

impl PeriodicRecord {
    /// Whether a time is over for good.
    pub fn is_over(&self, time: i64) -> bool {
        self.stretch_of(time).is_some()
    }

    /// The first and the last time of the stretch that a time is in.
    pub fn stretch_of(&self, time: i64) -> Option<(i64, i64)> {
        let mut over = self.over.iter().copied();
        over.find(|(first, last)| (*first..=*last).contains(&time))
    }

    /// The clock was followed up to a second, and no time lies between that and what was followed before.
    pub fn follow(&mut self, second: i64) {
        if self.is_over(self.followed) {
            self.end(self.followed, second);
        }
        self.followed = second;
    }

    /// A time is over; so are all others since `since`.
    pub fn end(&mut self, since: i64, time: i64) {
        let first = self.stretch_of(since).map_or(time, |(first, _)| first);
        self.over.push((first.min(time), time));
        self.over.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (first, last) in core::mem::take(&mut self.over) {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                Some(_) | None => merged.push((first, last)),
            }
        }
        while merged.len() > KEPT_STRETCHES {
            let (first, _) = merged.remove(0);
            if let Some(next) = merged.first_mut() {
                next.0 = first;
            }
        }
        self.over = merged;
    }
}

/// The second of a moment.
pub fn second_of(moment: Timestamp) -> i64 {
    moment.0.div_euclid(SECOND)
}

/// The moment at which a second begins.
pub fn moment_of(second: i64) -> Timestamp {
    Timestamp(second.saturating_mul(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launched_times_become_stretches() {
        let mut record = PeriodicRecord::default();
        record.end(0, 10);
        record.end(10, 20);
        assert_eq!(record.over, [(10, 20)], "nothing lies between them");
        record.end(25, 40);
        assert_eq!(record.over, [(10, 20), (40, 40)], "something was missed");
        // The clock was set back behind the first.
        record.end(4, 5);
        record.end(5, 12);
        assert_eq!(record.over, [(5, 20), (40, 40)]);
        record.followed = 40;
        record.follow(43);
        record.end(43, 50);
        assert_eq!(record.over, [(5, 20), (40, 50)], "nothing lay between them");
        for far in 0..40 {
            record.end(0, 1000 + far * 10);
        }
        assert_eq!(record.over.len(), KEPT_STRETCHES);
        assert!(
            [5, 20, 40, 1000, 1390]
                .iter()
                .all(|time| record.is_over(*time))
        );
        assert!(!record.is_over(4) && !record.is_over(1391));
    }
}
