//! How often each property had something to check.

use super::Property;

/// A counter for each property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached([u64; Property::ALL.len()]);

impl Default for Reached {
    fn default() -> Reached {
        Reached([0; Property::ALL.len()])
    }
}

impl Reached {
    pub(super) fn note(&mut self, property: Property) {
        self.0[property as usize] += 1;
    }

    pub(super) fn of(&self, property: Property) -> u64 {
        self.0[property as usize]
    }
}
