//! Locks on the directories of allocations: work in a directory excludes its removal, which comes
//! last.
//!
//! Work on a storage that hangs may be given up long before it ends. If the directory were removed
//! meanwhile, that work could make it again, and nobody would know of it any more. So a directory
//! is removed when nothing works in it any more, not even work that the core gave up long ago.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use drover_core::ids::AllocId;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Whose directories are worked in. Cheap to clone; the clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirLocks(Arc<Mutex<BTreeMap<AllocId, Weak<RwLock<()>>>>>);

impl DirLocks {
    /// Work begins: until it lets go of this, the directory is not removed.
    pub(crate) async fn work(&self, alloc: AllocId) -> OwnedRwLockReadGuard<()> {
        self.of(alloc).read_owned().await
    }

    /// Waits until nothing works there any more.
    pub(crate) async fn removal(&self, alloc: AllocId) -> OwnedRwLockWriteGuard<()> {
        self.of(alloc).write_owned().await
    }

    fn of(&self, alloc: AllocId) -> Arc<RwLock<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        let known = all.get(&alloc).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let new = Arc::default();
            all.insert(alloc, Arc::downgrade(&new));
            new
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn removal_waits_for_work_in_same_dir_only() {
        let dir_locks = DirLocks::default();
        let (one, other) = (AllocId(1), AllocId(2));
        let first = dir_locks.work(one).await;
        let second = dir_locks.work(one).await;
        let same = dir_locks.clone();
        let removal = tokio::spawn(async move { drop(same.removal(one).await) });
        yield_now().await;
        drop(first);
        yield_now().await;
        assert!(!removal.is_finished());
        drop(dir_locks.removal(other).await);
        drop(second);
        assert!(removal.await.is_ok());
    }
}
