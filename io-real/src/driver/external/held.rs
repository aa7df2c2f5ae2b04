//! The launches of a plugin, and which holder reports the end of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use tokio::sync::watch;

/// How far a launch is, and whether somebody destroys it.
#[derive(Debug)]
enum Entry {
    /// It is being started; it is to be destroyed after that.
    Starting { doomed: bool },
    /// It was started.
    Running {
        /// Its end, as soon as it is known.
        end: watch::Sender<Option<ExitResult>>,
        /// Whoever destroys it says how it ended.
        taken: bool,
    },
}

/// The launches in hand. The end of each is told once: by who waits for it, or by who destroys it.
#[derive(Debug, Default)]
pub(in crate::driver) struct Held(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<LaunchId, Entry>,
    /// What must not start, or not again.
    never: BTreeSet<LaunchId>,
}

impl Held {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a start begins. False if it must not.
    pub(in crate::driver) fn begin(&self, launch: LaunchId) -> bool {
        let mut inner = self.inner();
        let first = inner.never.insert(launch);
        if first {
            let entry = Entry::Starting { doomed: false };
            inner.entries.insert(launch, entry);
        }
        first
    }

    /// Notes that a start ended without a task. True if it was to be destroyed.
    pub(in crate::driver) fn start_failed(&self, launch: LaunchId) -> bool {
        let entry = self.inner().entries.remove(&launch);
        matches!(entry, Some(Entry::Starting { doomed: true }))
    }

    /// Notes that a task runs. False if it was destroyed meanwhile, and is to be destroyed again.
    pub(in crate::driver) fn runs(&self, launch: LaunchId) -> bool {
        let mut inner = self.inner();
        inner.never.insert(launch);
        if let Some(Entry::Starting { doomed: true }) = inner.entries.get(&launch) {
            inner.entries.remove(&launch);
            return false;
        }
        let (end, taken) = (watch::Sender::new(None), false);
        inner.entries.insert(launch, Entry::Running { end, taken });
        true
    }

    /// Notes that it never starts.
    pub(in crate::driver) fn never(&self, launch: LaunchId) {
        self.inner().never.insert(launch);
    }

    /// Whether it is being started, or was and is not destroyed yet.
    pub(in crate::driver) fn is_in_hand(&self, launch: LaunchId) -> bool {
        self.inner().entries.contains_key(&launch)
    }

    /// Whether it was started, and its end is not known.
    pub(in crate::driver) fn is_running(&self, launch: LaunchId) -> bool {
        match self.inner().entries.get(&launch) {
            Some(Entry::Running { end, .. }) => end.borrow().is_none(),
            Some(Entry::Starting { .. }) | None => false,
        }
    }

    /// Waits until its end is known, or nothing is to be known of it any more.
    pub(in crate::driver) async fn until_ended(&self, launch: LaunchId) {
        let end = match self.inner().entries.get(&launch) {
            Some(Entry::Running { end, .. }) => end.subscribe(),
            Some(Entry::Starting { .. }) | None => return,
        };
        let mut end = end;
        // The sender is gone: it was destroyed.
        let _ = end.wait_for(Option::is_some).await;
    }

    /// Notes how it ended. True if that is to be told by the caller.
    pub(in crate::driver) fn ended(&self, launch: LaunchId, result: &ExitResult) -> bool {
        let inner = self.inner();
        let Some(Entry::Running { end, taken }) = inner.entries.get(&launch) else {
            return false;
        };
        let first = end.send_replace(Some(result.clone())).is_none();
        first && !taken
    }

    /// Takes over to tell the end. `None` if there is no end to be told: it never ran, it was told
    /// already, or it is being started, and destroyed after that.
    pub(in crate::driver) fn take(
        &self,
        launch: LaunchId,
    ) -> Option<watch::Receiver<Option<ExitResult>>> {
        let mut inner = self.inner();
        inner.never.insert(launch);
        match inner.entries.get_mut(&launch)? {
            Entry::Starting { doomed } => {
                *doomed = true;
                None
            }
            Entry::Running { end, taken } => {
                if end.borrow().is_some() && !*taken {
                    return None;
                }
                *taken = true;
                Some(end.subscribe())
            }
        }
    }

    /// Gives back what was taken: it could not be destroyed. The end, if it is to be told now.
    pub(in crate::driver) fn give_back(&self, launch: LaunchId) -> Option<ExitResult> {
        let mut inner = self.inner();
        match inner.entries.get_mut(&launch)? {
            Entry::Starting { .. } => None,
            Entry::Running { end, taken } => {
                let was_taken = std::mem::take(taken);
                end.borrow().clone().filter(|_| was_taken)
            }
        }
    }

    /// Lets go of what was destroyed.
    pub(in crate::driver) fn remove(&self, launch: LaunchId) {
        let mut inner = self.inner();
        if let Some(Entry::Running { .. }) = inner.entries.get(&launch) {
            inner.entries.remove(&launch);
        }
    }

    /// Forgets it altogether.
    pub(in crate::driver) fn forget(&self, launch: LaunchId) {
        let mut inner = self.inner();
        inner.entries.remove(&launch);
        inner.never.remove(&launch);
    }
}
