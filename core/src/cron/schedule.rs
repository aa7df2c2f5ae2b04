//! The times of a periodic job: several expressions in one zone.

use super::zone::ZoneOffsets;
use super::{Expression, Mistake};
use crate::model::policy::PeriodicConfig;

/// The most expressions of one job.
pub const MAX_EXPRESSIONS: usize = 64;

/// When a periodic job is launched: whenever one of its expressions fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    expressions: Vec<Expression>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// A time, in seconds since 1970.
    At(i64),
    /// Nothing before this second, up to which the zone is known.
    NotBefore(i64),
    /// Nothing any more.
    Never,
}

/// An expression that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadExpression {
    /// Which of `crons`; none if it is `cron`.
    pub nth: Option<usize>,
    /// What is wrong.
    pub mistake: Mistake,
}

impl Schedule {
    /// Reads the expressions of a job.
    ///
    /// # Errors
    /// Those that cannot be read.
    pub fn of(periodic: &PeriodicConfig) -> Result<Schedule, Vec<BadExpression>> {
        let (mut expressions, mut bad) = (Vec::new(), Vec::new());
        for (nth, text) in lines(periodic).take(MAX_EXPRESSIONS) {
            match Expression::parse(text) {
                Ok(expression) => expressions.push(expression),
                Err(mistake) => bad.push(BadExpression { nth, mistake }),
            }
        }
        match bad.is_empty() {
            true => Ok(Schedule { expressions }),
            false => Err(bad),
        }
    }

    /// Whether no date of the calendar fits.
    pub fn never_comes(&self) -> bool {
        self.expressions
            .iter()
            .all(|one| one.first(i64::MIN / 2).is_none())
    }

    /// The first time after a second.
    pub fn next(&self, zone: &ZoneOffsets, after: i64) -> Next {
        let after = after.saturating_add(1);
        let mut comes_later = false;
        for stretch in zone.stretches().filter(|one| one.until > after) {
            let from = after.max(stretch.from).saturating_add(stretch.offset);
            let found = self.expressions.iter().filter_map(|one| one.first(from));
            let earliest = found.min().map(|local| local - stretch.offset);
            // Where clocks are set back, local times come again that were the last.
            comes_later = earliest.is_some();
            if let Some(at) = earliest.filter(|at| *at < stretch.until) {
                return Next::At(at);
            }
        }
        match comes_later || zone.until <= after {
            true => Next::NotBefore(zone.until),
            false => Next::Never,
        }
    }

    /// The latest time up to `to` and after `after`.
    pub fn latest(&self, zone: &ZoneOffsets, after: i64, to: i64) -> Option<i64> {
        for stretch in zone.stretches().rev() {
            if stretch.from > to {
                continue;
            }
            if stretch.until <= after {
                break;
            }
            let to = to
                .min(stretch.until.saturating_sub(1))
                .saturating_add(stretch.offset);
            let found = self.expressions.iter().filter_map(|one| one.last(to));
            let at = found.max().map(|local| local - stretch.offset);
            if let Some(at) = at.filter(|at| *at >= stretch.from) {
                return Some(at).filter(|at| *at > after);
            }
        }
        None
    }

    /// Every time after `after` and up to `to`, in order. For short whiles: there may be one each second.
    pub fn between(&self, zone: &ZoneOffsets, after: i64, to: i64) -> Vec<i64> {
        let mut times = Vec::new();
        let mut last = after;
        while let Next::At(at) = self.next(zone, last)
            && at <= to
        {
            times.push(at);
            last = at;
        }
        times
    }
}

/// The expressions of a job as they are written, and which of `crons` they are.
pub fn lines(periodic: &PeriodicConfig) -> impl Iterator<Item = (Option<usize>, &str)> {
    let one = Some(periodic.spec.as_str()).filter(|spec| !spec.is_empty());
    let many = periodic.specs.iter().map(String::as_str);
    let many = many.enumerate().map(|(nth, spec)| (Some(nth), spec));
    one.map(|spec| (None, spec)).into_iter().chain(many)
}
