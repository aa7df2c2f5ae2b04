//! Which ended allocations are cleaned away: the oldest, and no more than needed.

use std::collections::BTreeSet;

use crate::ids::AllocId;
use crate::store::record::AllocRecord;

/// Chooses among the allocations of a node those to clean away so that `keep` ended ones are
/// left. Those that are being cleaned away already count as gone: one too many costs one.
pub fn surplus<'a>(allocs: impl Iterator<Item = &'a AllocRecord>, keep: usize) -> Vec<AllocId> {
    let ended: BTreeSet<(u64, AllocId)> = allocs
        .filter(|alloc| alloc.finished && !alloc.destroying)
        .map(|alloc| (alloc.modify_index, alloc.id))
        .collect();
    let too_many = ended.len().saturating_sub(keep);
    ended.into_iter().take(too_many).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(id: u128, destroying: bool) -> AllocRecord {
        let modify_index = u64::try_from(id).unwrap_or(0);
        AllocRecord {
            id: AllocId(id),
            finished: true,
            destroying,
            modify_index,
            ..Default::default()
        }
    }

    #[test]
    fn one_over_the_limit_costs_one_the_oldest() {
        let allocs = [ended(3, false), ended(1, false), ended(2, false)];
        assert_eq!(surplus(allocs.iter(), 2), [AllocId(1)]);
        let going = [ended(3, false), ended(1, true), ended(2, false)];
        assert_eq!(surplus(going.iter(), 2), [], "it is on its way already");
    }

    #[test]
    fn what_runs_is_never_cleaned_away() {
        let alive = AllocRecord {
            id: AllocId(1),
            ..Default::default()
        };
        assert_eq!(surplus([alive].iter(), 0), []);
    }
}
