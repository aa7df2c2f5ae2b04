//! Dice: numbers that follow from a seed, a label and how often that was asked for, for whoever makes up
//! worlds before they begin.

use std::collections::BTreeMap;
use std::hash::Hasher;

use crate::hash::{StateHasher, scramble};

/// The numbers of a seed.
#[derive(Clone, Debug, Default)]
pub struct Dice {
    seed: u64,
    seen: BTreeMap<u64, u32>,
}

impl Dice {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Dice {
        Dice {
            seed,
            seen: BTreeMap::new(),
        }
    }

    /// A number for `entity`; the next time it is another one. Of seed 0 all are 0.
    pub fn pick(&mut self, label: &str, entity: &str) -> u64 {
        match self.seed {
            0 => 0,
            _ => {
                let (key, _) = self.key(label, entity);
                self.number(key)
            }
        }
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize, label: &str, entity: &str) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        if n == 1 {
            return 0;
        }
        usize::try_from(self.pick(label, entity) % n).unwrap_or(0)
    }

    /// One of these; `None` only if there is none.
    pub fn one_of<T: Copy>(&mut self, of: &[T], label: &str, entity: &str) -> Option<T> {
        let at = self.below(of.len(), label, entity);
        of.get(at).copied()
    }

    /// The key of the next number for `entity`, and the how-manieth it is.
    pub(crate) fn key(&mut self, label: &str, entity: &str) -> (u64, u32) {
        let place = place(label, entity);
        let occurrence = self.seen.entry(place).or_default();
        *occurrence += 1;
        (key(place, *occurrence), *occurrence)
    }

    /// The number of a key.
    pub(crate) fn number(&self, key: u64) -> u64 {
        scramble(key ^ scramble(self.seed))
    }

    /// How many numbers there were for `entity`.
    pub(crate) fn seen(&self, label: &str, entity: &str) -> u32 {
        let seen = self.seen.get(&place(label, entity)).copied();
        seen.unwrap_or_default()
    }
}

fn place(label: &str, entity: &str) -> u64 {
    let mut hash = StateHasher::default();
    hash.write(label.as_bytes());
    hash.write_u64(u64::MAX);
    hash.write(entity.as_bytes());
    hash.finish()
}

/// The key of the `occurrence`-th number for `entity`.
pub(crate) fn key_of(label: &str, entity: &str, occurrence: u32) -> u64 {
    key(place(label, entity), occurrence)
}

fn key(place: u64, occurrence: u32) -> u64 {
    scramble(place.wrapping_add(u64::from(occurrence).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
