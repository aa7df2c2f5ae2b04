//! Searches: of everything that could happen now, a search picks one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use drover_core::time::Instant;

use crate::choice::Choices;
use crate::point::Point;

/// Ranks lie below this.
const RANKS: usize = 1 << 16;

/// How the next one is picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Search {
    /// First come, first served.
    First,
    /// Each input draws a rank when it comes into being, and the lowest of those that are ready
    /// goes first: any order is possible.
    #[default]
    Seeds,
    /// Probabilistic concurrency testing (Burckhardt and others, 2010): each entity has a random
    /// priority, the highest of those that are ready goes first, and at `depth - 1` random steps
    /// of the first `steps` the one whose turn it is falls below all others.
    ///
    /// A bug that needs `d` ordered events, in a run of `k` steps over `n` entities, is found by
    /// one run with `depth` = d and `steps` = k with a probability of at least 1 / (n * k^(d-1)).
    /// Bugs in Nomad rarely need more than three.
    Pct {
        /// How many ordered events the bug needs that is looked for.
        depth: u32,
        /// How long runs are, in steps.
        steps: u32,
    },
}

/// Something that could happen now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a, T> {
    pub(crate) what: T,
    /// Since when it could happen.
    pub(crate) at: Instant,
    /// The how-manieth it is of all that could at the same time.
    pub(crate) number: u64,
    pub(crate) rank: u32,
    /// Whom it is about.
    pub(crate) entity: &'a str,
}

/// The search and what it remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) search: Search,
    priorities: BTreeMap<String, u64>,
    changes: Vec<u64>,
    fallen: u64,
    steps: u64,
}

/// Priorities that were given at the beginning lie below this; who fell lies above it.
const FALLEN: u64 = 1 << 32;

impl Scheduler {
    pub(crate) fn new(search: Search, choices: &mut Choices) -> Scheduler {
        let mut changes = Vec::new();
        if let Search::Pct { depth, steps } = search {
            for number in 1..depth {
                let steps = usize::try_from(steps).unwrap_or(usize::MAX);
                let at = choices.below(steps, Point::PriorityChange, &number.to_string());
                changes.extend((at > 0).then_some(at as u64));
            }
        }
        Scheduler {
            search,
            changes,
            ..Scheduler::default()
        }
    }

    /// The rank of something new.
    pub(crate) fn rank(&self, choices: &mut Choices, entity: &str) -> u32 {
        match self.search {
            Search::Seeds => choices.below(RANKS, Point::Order, entity) as u32,
            Search::First | Search::Pct { .. } => 0,
        }
    }

    /// Whose turn it is.
    pub(crate) fn pick<'a, T: Copy>(
        &mut self,
        choices: &mut Choices,
        candidates: impl Iterator<Item = Candidate<'a, T>>,
    ) -> Option<T> {
        let mut first: Option<((u64, Instant, u64), Candidate<'a, T>)> = None;
        for candidate in candidates {
            let order = self.order(choices, &candidate);
            if first.as_ref().is_none_or(|(least, _)| order < *least) {
                first = Some((order, candidate));
            }
        }
        let (_, first) = first?;
        self.steps += 1;
        if self.changes.contains(&self.steps) {
            self.fallen += 1;
            let lowest = FALLEN + self.fallen;
            self.priorities.insert(first.entity.to_owned(), lowest);
        }
        Some(first.what)
    }

    fn order<T>(&mut self, choices: &mut Choices, of: &Candidate<'_, T>) -> (u64, Instant, u64) {
        let order = match self.search {
            Search::First => 0,
            Search::Seeds => u64::from(of.rank),
            Search::Pct { .. } => self.priority(choices, of.entity),
        };
        (order, of.at, of.number)
    }

    fn priority(&mut self, choices: &mut Choices, entity: &str) -> u64 {
        if let Some(priority) = self.priorities.get(entity) {
            return *priority;
        }
        let priority = choices.below(RANKS, Point::Priority, entity) as u64;
        self.priorities.insert(entity.to_owned(), priority);
        priority
    }
}
