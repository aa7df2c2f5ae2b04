//! A set of copies of a job's groups. A batch job may have tens of thousands, which end in about the order in which they
//! began: so the set holds runs of neighbours, and is written as runs where they are long.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::GroupName;

/// A run of at least so many neighbours is written as one; shorter ones one by one, as they always were.
const LONG: u32 = 64;

/// A set of copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copies {
    /// Of each group the runs, by their first: which is their last. Between two runs something is missing.
    runs: BTreeMap<GroupName, BTreeMap<u32, u32>>,
}

impl Copies {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether this copy of the group is among them.
    pub fn contains(&self, group: &GroupName, index: u32) -> bool {
        let runs = self.runs.get(group);
        let run = runs.and_then(|runs| runs.range(..=index).next_back());
        run.is_some_and(|(_, last)| *last >= index)
    }

    /// Adds a copy of the group.
    pub fn insert(&mut self, group: GroupName, index: u32) {
        self.insert_run(group, index, index);
    }

    fn insert_run(&mut self, group: GroupName, first: u32, last: u32) {
        let runs = self.runs.entry(group).or_default();
        let (mut first, mut last) = (first, last);
        // Those that overlap or touch it become one with it.
        while let Some((from, to)) = runs.range(..=last.saturating_add(1)).next_back()
            && to.saturating_add(1) >= first
        {
            let from = *from;
            (first, last) = (first.min(from), last.max(*to));
            runs.remove(&from);
        }
        runs.insert(first, last);
    }
}

impl FromIterator<(GroupName, u32)> for Copies {
    fn from_iter<I: IntoIterator<Item = (GroupName, u32)>>(all: I) -> Copies {
        let mut copies = Copies::default();
        for (group, index) in all {
            copies.insert(group, index);
        }
        copies
    }
}

/// A run as it is written: of one copy the group and its index, else the first index and the last.
struct Written<'a>(&'a GroupName, u32, u32);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Written(group, first, last) = self;
        match first == last {
            true => (group, first).serialize(to),
            false => (group, first, last).serialize(to),
        }
    }
}

impl Serialize for Copies {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let written = self.runs.iter().flat_map(|(group, runs)| {
            runs.iter().flat_map(move |(first, last)| {
                let is_long = last - first >= LONG - 1;
                let run = is_long.then_some(Written(group, *first, *last));
                let ones = (*first..=*last).filter(move |_| !is_long);
                let ones = ones.map(move |index| Written(group, index, index));
                run.into_iter().chain(ones)
            })
        });
        to.collect_seq(written)
    }
}

/// A run as it is read.
struct Run(GroupName, u32, u32);

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Run, D::Error> {
        from.deserialize_tuple(2, RunVisitor)
    }
}

struct RunVisitor;

impl<'de> Visitor<'de> for RunVisitor {
    type Value = Run;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group, an index, and the last one if there are several")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Run, A::Error> {
        let lacks = |at| Error::invalid_length(at, &self);
        let group = seq.next_element()?.ok_or_else(|| lacks(0))?;
        let first: u32 = seq.next_element()?.ok_or_else(|| lacks(1))?;
        let last: u32 = seq.next_element()?.unwrap_or(first);
        Ok(Run(group, first.min(last), last.max(first)))
    }
}

impl<'de> Deserialize<'de> for Copies {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Copies, D::Error> {
        let mut copies = Copies::default();
        for Run(group, first, last) in Vec::<Run>::deserialize(from)? {
            copies.insert_run(group, first, last);
        }
        Ok(copies)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// In whatever order copies are added, the set has those and no others.
    #[test]
    fn set_has_what_was_added_in_any_order() {
        let group = GroupName::from("g");
        for step in [1_u32, 3, 7, 11, 97] {
            let (mut copies, mut expected) = (Copies::default(), BTreeSet::new());
            for turn in 0..150 {
                let index = turn * step % 199;
                copies.insert(group.clone(), index);
                expected.insert(index);
                copies.insert(group.clone(), index);
                for index in 0..201 {
                    let (found, there) =
                        (copies.contains(&group, index), expected.contains(&index));
                    assert_eq!(found, there, "{index}");
                }
            }
        }
        assert!(!Copies::default().contains(&group, 0));
    }
}
