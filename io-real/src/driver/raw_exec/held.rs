//! The launches of the driver, and which holder reports the end of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::ids::LaunchId;

use crate::shim::Live;

/// What is known of a launch.
enum Entry {
    /// It is being started.
    Starting,
    /// It was destroyed while it was being started: whoever starts it cleans up.
    Doomed,
    /// Its shim runs, or did.
    Running {
        live: Arc<Live>,
        /// Its end was told, or will be by whoever destroys it.
        is_reported: bool,
        /// The core has heard of its end.
        is_received: bool,
        /// Somebody destroys it: its shim gets no successor.
        ending: bool,
    },
}

/// The launches in hand.
///
/// A launch's end is told once: by who watches it, or by who destroys it, whichever asks first.
#[derive(Default)]
pub(super) struct Held(Mutex<BTreeMap<LaunchId, Entry>>);

impl Held {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<LaunchId, Entry>> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a start begins. One that is in hand already stays as it is.
    pub(super) fn begin(&self, launch: LaunchId) {
        self.entries().entry(launch).or_insert(Entry::Starting);
    }

    /// Notes that a start succeeded, or that a running launch was found. `None`: it was destroyed
    /// meanwhile, and is forgotten now.
    pub(super) fn take(&self, launch: LaunchId, live: Live) -> Option<Arc<Live>> {
        let mut entries = self.entries();
        if let Some(Entry::Doomed) = entries.get(&launch) {
            entries.remove(&launch);
            return None;
        }
        let live = Arc::new(live);
        let live_entry = Entry::Running {
            live: live.clone(),
            is_reported: false,
            is_received: false,
            ending: false,
        };
        entries.insert(launch, live_entry);
        Some(live)
    }

    /// Notes that a start failed. True if the launch was destroyed meanwhile.
    pub(super) fn start_failed(&self, launch: LaunchId) -> bool {
        let mut entries = self.entries();
        // Another start of the same launch may have succeeded: that one stays.
        match entries.get(&launch) {
            Some(Entry::Running { .. }) | None => false,
            Some(Entry::Starting) => {
                entries.remove(&launch);
                false
            }
            Some(Entry::Doomed) => {
                entries.remove(&launch);
                true
            }
        }
    }

    /// Puts a successor in the place of a shim that was killed. Given back: the launch is being
    /// destroyed meanwhile, or was.
    pub(super) fn replace(&self, launch: LaunchId, replacement: Live) -> Result<Arc<Live>, Live> {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running {
                live,
                is_reported: false,
                ending: false,
                ..
            }) => {
                *live = Arc::new(replacement);
                Ok(live.clone())
            }
            Some(Entry::Running { .. } | Entry::Starting | Entry::Doomed) | None => {
                Err(replacement)
            }
        }
    }

    /// Notes that a launch is being destroyed. The launch, if its shim runs or did.
    pub(super) fn begin_end(&self, launch: LaunchId) -> Option<Arc<Live>> {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running { live, ending, .. }) => {
                *ending = true;
                Some(live.clone())
            }
            Some(Entry::Starting | Entry::Doomed) | None => None,
        }
    }

    /// The launch, if its shim runs or did.
    pub(super) fn live(&self, launch: LaunchId) -> Option<Arc<Live>> {
        match self.entries().get(&launch) {
            Some(Entry::Running { live, .. }) => Some(live.clone()),
            Some(Entry::Starting | Entry::Doomed) | None => None,
        }
    }

    /// Whether a shim that was killed gets a successor: the launch's end is still to be told, and nobody
    /// destroys it.
    pub(super) fn needs_replacement(&self, launch: LaunchId) -> bool {
        let entries = self.entries();
        matches!(
            entries.get(&launch),
            Some(Entry::Running {
                is_reported: false,
                ending: false,
                ..
            })
        )
    }

    /// Asks for the right to tell the end of a launch, which only one gets. Who hears `true` tells it.
    pub(super) fn claim_report(&self, launch: LaunchId) -> bool {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running { is_reported, .. }) => !std::mem::replace(is_reported, true),
            Some(Entry::Starting | Entry::Doomed) | None => false,
        }
    }

    /// Notes that the core was told of its end.
    pub(super) fn note_received(&self, launch: LaunchId) {
        if let Some(Entry::Running { is_received, .. }) = self.entries().get_mut(&launch) {
            *is_received = true;
        }
    }

    /// Whether the core has heard of the end of a launch, or was answered that it is destroyed.
    pub(super) fn is_received(&self, launch: LaunchId) -> bool {
        match self.entries().get(&launch) {
            Some(Entry::Running { is_received, .. }) => *is_received,
            Some(Entry::Starting | Entry::Doomed) | None => true,
        }
    }

    /// Notes that a launch was destroyed.
    pub(super) fn destroyed(&self, launch: LaunchId) {
        let mut entries = self.entries();
        match entries.get_mut(&launch) {
            Some(entry @ Entry::Starting) => *entry = Entry::Doomed,
            Some(Entry::Doomed) | None => {}
            Some(Entry::Running { .. }) => {
                entries.remove(&launch);
            }
        }
    }
}
