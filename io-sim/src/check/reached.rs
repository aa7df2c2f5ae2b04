//! How often each property had something to look at.

use super::Property;

/// A counter for each property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached([u64; Property::ALL.len()]);

impl Default for Reached {
    fn default() -> Reached {
        Reached([0; Property::ALL.len()])
    }
}

impl Reached {
    pub(super) fn note(&mut self, property: Property) {
        self.0[property as usize] += 1;
    }

    /// How often `property` had something to look at.
    pub fn of(&self, property: Property) -> u64 {
        self.0[property as usize]
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Reached) {
        for (own, theirs) in self.0.iter_mut().zip(other.0) {
            *own += theirs;
        }
    }
}

impl IntoIterator for &Reached {
    type Item = (&'static str, u64);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    /// The properties that were looked at, by name.
    fn into_iter(self) -> Self::IntoIter {
        let looked = Property::ALL
            .iter()
            .map(|one| (one.name(), self.of(*one)))
            .filter(|(_, times)| *times > 0);
        looked.collect::<Vec<_>>().into_iter()
    }
}
