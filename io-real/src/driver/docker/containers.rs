//! The containers that run, as far as they are known: which launch is whose, and where it is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::ids::{LaunchId, TaskKey};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::stats::StatsSource;

/// One that was started.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) task: TaskKey,
    pub(super) id: String,
    pub(super) stats: Option<StatsSource>,
    /// The bytes of memory that it may use; 0 for no limit.
    pub(super) memory_limit: u64,
    /// Whether all of its output is written.
    pub(super) drained: watch::Receiver<bool>,
}

/// Those that were started and are not destroyed.
#[derive(Default)]
pub(super) struct Containers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    known: BTreeMap<LaunchId, Known>,
    ids: BTreeMap<String, LaunchId>,
    /// Those of which the kernel killed something for its memory.
    oom: BTreeSet<LaunchId>,
}

impl Containers {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, launch: LaunchId, known: Known) {
        let mut inner = self.inner();
        inner.ids.insert(known.id.clone(), launch);
        inner.known.insert(launch, known);
    }

    pub(super) fn get(&self, launch: LaunchId) -> Option<Known> {
        self.inner().known.get(&launch).cloned()
    }

    pub(super) fn launches(&self) -> Vec<LaunchId> {
        self.inner().known.keys().copied().collect()
    }

    /// Whose a container is. Others are none of our business.
    pub(super) fn launch_of(&self, id: &str) -> Option<LaunchId> {
        self.inner().ids.get(id).copied()
    }

    pub(super) fn note_oom(&self, id: &str) {
        let mut inner = self.inner();
        if let Some(launch) = inner.ids.get(id).copied() {
            inner.oom.insert(launch);
        }
    }

    pub(super) fn had_oom(&self, launch: LaunchId) -> bool {
        self.inner().oom.contains(&launch)
    }

    pub(super) fn remove(&self, launch: LaunchId) {
        let mut inner = self.inner();
        if let Some(known) = inner.known.remove(&launch) {
            inner.ids.remove(&known.id);
        }
        inner.oom.remove(&launch);
    }
}

impl Known {
    /// Waits until all of its output is written, but not for ever.
    pub(super) async fn drained(&self, limit: Duration) {
        let mut drained = self.drained.clone();
        // Whoever writes is gone: nothing more is written.
        let _ = timeout(limit, drained.wait_for(|drained| *drained)).await;
    }
}
