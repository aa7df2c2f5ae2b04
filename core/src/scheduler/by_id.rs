//! Lists of allocations, sorted by id.

use std::collections::BTreeSet;

use super::snapshot::AllocState;
use crate::ids::AllocId;
use crate::store::record::AllocRecord;

/// Something that is found by the id of an allocation.
pub(super) trait ById: Copy {
    /// Its id.
    fn id(&self) -> AllocId;
}

impl ById for &AllocRecord {
    fn id(&self) -> AllocId {
        self.id
    }
}

impl ById for AllocState<'_> {
    fn id(&self) -> AllocId {
        self.record.id
    }
}

/// The allocation of this id.
pub(super) fn find<T: ById>(sorted: &[T], id: AllocId) -> Option<&T> {
    let found = sorted.binary_search_by_key(&id, T::id);
    found.ok().and_then(|at| sorted.get(at))
}

/// The allocations of these ids.
pub(super) fn find_all<T: ById>(sorted: &[T], ids: &BTreeSet<AllocId>) -> Vec<T> {
    // Of a job that has most of them, to look each up is dearer than to go through all.
    if ids.len() < sorted.len() / 8 {
        return ids
            .iter()
            .filter_map(|id| find(sorted, *id).copied())
            .collect();
    }
    let mut ids = ids.iter().peekable();
    let mut found = Vec::with_capacity(ids.len());
    for alloc in sorted {
        while ids.next_if(|id| **id < alloc.id()).is_some() {}
        if ids.next_if(|id| **id == alloc.id()).is_some() {
            found.push(*alloc);
        }
    }
    found
}
