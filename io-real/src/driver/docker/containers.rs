//! The containers that run, as far as they are known: which launch is whose, and where it is measured.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::ids::{LaunchId, TaskKey};
use tokio::sync::watch;
use tokio::time::timeout;

use super::usage;
use crate::stats::StatsSource;

/// One that was started.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) task: TaskKey,
    pub(super) id: String,
    pub(super) stats: Option<StatsSource>,
    /// The bytes of memory that it may use; 0 for no limit.
    pub(super) memory_limit: u64,
    /// The engine's set of cores for it, if it shares them with others.
    pub(super) shared_cores: Option<String>,
    /// Whether all of its output is written.
    pub(super) drained: watch::Receiver<bool>,
}

/// The kernel killed something of a container for its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Oom {
    /// How many bytes were used at most, if that was still to be seen.
    pub(super) most: Option<u64>,
}

/// Those that were started and are not destroyed.
#[derive(Default)]
pub(super) struct Containers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    known: BTreeMap<LaunchId, Known>,
    ids: BTreeMap<String, LaunchId>,
    /// Those of which the kernel killed something for its memory, and how much of that they used at most, if it was
    /// still to be seen.
    oom: BTreeMap<LaunchId, Option<u64>>,
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

    /// Those that share their cores: the engine's ids and sets.
    pub(super) fn sharing(&self) -> Vec<(LaunchId, String, String)> {
        let inner = self.inner();
        let all = inner.known.iter();
        all.filter_map(|(launch, known)| {
            Some((*launch, known.id.clone(), known.shared_cores.clone()?))
        })
        .collect()
    }

    /// Notes that a container was moved to this set of cores.
    pub(super) fn note_cores(&self, launch: LaunchId, set: &str) {
        if let Some(known) = self.inner().known.get_mut(&launch) {
            known.shared_cores = Some(set.to_owned());
        }
    }

    /// Whose a container is. Others are none of our business.
    pub(super) fn launch_of(&self, id: &str) -> Option<LaunchId> {
        self.inner().ids.get(id).copied()
    }

    /// Notes that the kernel killed something of a container. Its group goes with the container, so it is looked at
    /// now.
    pub(super) fn note_oom(&self, id: &str) {
        let mut inner = self.inner();
        if let Some(launch) = inner.ids.get(id).copied() {
            let known = inner.known.get(&launch);
            let most = known.and_then(|known| usage::most_memory(known.stats.as_ref()?));
            inner.oom.insert(launch, most);
        }
    }

    /// How the memory of a container came to an end, if it did.
    pub(super) fn oom(&self, launch: LaunchId) -> Option<Oom> {
        let most = self.inner().oom.get(&launch).copied();
        most.map(|most| Oom { most })
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
