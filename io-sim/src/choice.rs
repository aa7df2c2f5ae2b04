//! Keyed choices: what chance decides is a hash of the seed and of what is being decided, not the
//! next number of one stream. Taking one task out of a scenario leaves the rest as it was, which
//! is what makes a failing run small. A run is its seed plus what overrides it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::{Dice, key_of};
use crate::point::Point;

/// One decision: the n-th one (from 1) for `entity` at `point`, and what was decided. 0 is always
/// what does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is decided.
    pub point: Point,
    /// For whom.
    pub entity: String,
    /// The how-manieth time.
    pub occurrence: u32,
    /// The decision.
    pub value: u64,
}

impl Choice {
    fn key(&self) -> u64 {
        key_of(self.point.name(), &self.entity, self.occurrence)
    }

    /// Whether the same is decided.
    pub(crate) fn is_at(&self, other: &Choice) -> bool {
        (self.point, &self.entity, self.occurrence)
            == (other.point, &other.entity, other.occurrence)
    }
}

/// What is decided otherwise than the seed says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// Whether everything that is not chosen here does no harm.
    pub rest_benign: bool,
    /// What is chosen.
    pub chosen: Vec<Choice>,
}

/// Decides by seed, point, entity and how often that was decided before.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    dice: Dice,
    benign: bool,
    overrides: BTreeMap<u64, u64>,
    log: Option<Vec<Choice>>,
    consulted: Option<Vec<Choice>>,
}

impl Choices {
    /// The choices of a seed. Seed 0 is the benign world: every choice is 0.
    pub fn new(seed: u64) -> Choices {
        Choices {
            dice: Dice::new(seed),
            benign: seed == 0,
            ..Choices::default()
        }
    }

    /// The same, except where `overrides` says otherwise.
    #[must_use]
    pub fn with(mut self, overrides: &Overrides) -> Choices {
        self.benign |= overrides.rest_benign;
        let chosen = overrides.chosen.iter();
        self.overrides = chosen.map(|choice| (choice.key(), choice.value)).collect();
        self
    }

    /// From now on, remembers every decision that may do harm.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The decisions that may have done harm, if they were remembered.
    pub fn log(&self) -> &[Choice] {
        self.log.as_deref().unwrap_or_default()
    }

    /// From now on, decides as `chosen` says and does no harm otherwise, and remembers which yes
    /// or no was asked for.
    pub(crate) fn watch(&mut self, chosen: &[Choice]) {
        self.benign = true;
        self.overrides = chosen
            .iter()
            .map(|choice| (choice.key(), choice.value))
            .collect();
        self.consulted = Some(Vec::new());
    }

    /// Which yes or no was asked for since.
    pub(crate) fn consulted(&self) -> &[Choice] {
        self.consulted.as_deref().unwrap_or_default()
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize, point: Point, entity: &str) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        if n == 1 {
            return 0;
        }
        let value = self.decide(point, entity, |number| number % n);
        // An override may come from a world with more to choose from.
        usize::try_from(value.min(n - 1)).unwrap_or(0)
    }

    /// One of these; the first is the one that does no harm.
    ///
    /// `None` only if there is none.
    pub fn one_of<T: Copy>(&mut self, of: &[T], point: Point, entity: &str) -> Option<T> {
        let at = self.below(of.len(), point, entity);
        of.get(at).copied()
    }

    /// Whether something happens that happens in `permille` of the cases.
    pub fn chance(&mut self, permille: u16, point: Point, entity: &str) -> bool {
        let permille = u64::from(permille);
        self.consult(point, entity);
        self.decide(point, entity, |number| {
            u64::from(number % 1000 < permille && permille > 0)
        }) != 0
    }

    /// One of two; the first does no harm.
    pub(crate) fn either(&mut self, point: Point, entity: &str) -> bool {
        self.consult(point, entity);
        self.below(2, point, entity) == 1
    }

    fn consult(&mut self, point: Point, entity: &str) {
        if let Some(consulted) = &mut self.consulted {
            consulted.push(Choice {
                point,
                entity: entity.to_owned(),
                occurrence: self.dice.seen(point.name(), entity) + 1,
                value: 0,
            });
        }
    }

    fn decide(&mut self, point: Point, entity: &str, reduce: impl FnOnce(u64) -> u64) -> u64 {
        let (key, occurrence) = self.dice.key(point.name(), entity);
        let value = match self.overrides.get(&key) {
            Some(value) => *value,
            None if self.benign => 0,
            None => reduce(self.dice.number(key)),
        };
        if let Some(log) = &mut self.log
            && value != 0
        {
            log.push(Choice {
                point,
                entity: entity.to_owned(),
                occurrence,
                value,
            });
        }
        value
    }
}
