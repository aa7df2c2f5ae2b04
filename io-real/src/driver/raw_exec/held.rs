//! The launches of the driver, and which holder reports the end of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::ids::LaunchId;

use super::machine::Shim;
use crate::shim::Live;

/// What is known of a launch.
#[cfg_attr(test, derive(Debug))]
enum Entry<S> {
    /// It is being started, or looked for.
    Starting {
        /// By so many at once.
        starts: u32,
        /// Somebody destroys it: its shim gets no successor.
        ending: bool,
    },
    /// It was destroyed while it was being started or looked for: whoever does that cleans up.
    Doomed { starts: u32 },
    /// Its shim runs, or did.
    Running {
        live: Arc<S>,
        /// Its end was told, or will be by whoever destroys it.
        is_reported: bool,
        /// The core has heard of its end.
        is_received: bool,
        /// Somebody destroys it: its shim gets no successor.
        ending: bool,
        /// A successor of its shim is being begun.
        is_replaced: bool,
    },
}

/// The launches in hand.
///
/// A launch's end is told once: by who watches it, or by who destroys it, whichever asks first.
#[cfg_attr(test, derive(Debug))]
pub(super) struct Held<S = Live>(Mutex<BTreeMap<LaunchId, Entry<S>>>);

impl<S> Default for Held<S> {
    fn default() -> Held<S> {
        Held(Mutex::default())
    }
}

impl<S: Shim> Held<S> {
    #[cfg_attr(test, track_caller)]
    fn entries(&self) -> MutexGuard<'_, BTreeMap<LaunchId, Entry<S>>> {
        #[cfg(test)]
        super::races::step_here();
        // Nothing that holds the lock can panic half way.
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(test)]
        super::races::note(&*entries);
        entries
    }

    /// Whether this launch is in hand at all.
    #[cfg(test)]
    pub(super) fn holds(&self, launch: LaunchId) -> bool {
        self.entries().contains_key(&launch)
    }

    /// Notes that a start begins, or a search. One that is in hand already stays as it is.
    pub(super) fn begin(&self, launch: LaunchId) {
        let starting = Entry::Starting {
            starts: 0,
            ending: false,
        };
        match self.entries().entry(launch).or_insert(starting) {
            Entry::Starting { starts, .. } | Entry::Doomed { starts } => *starts += 1,
            Entry::Running { .. } => {}
        }
    }

    /// Notes that a start succeeded, or that a running launch was found. `None`: it was destroyed
    /// meanwhile, and is forgotten now.
    pub(super) fn take(&self, launch: LaunchId, live: S) -> Option<Arc<S>> {
        let mut entries = self.entries();
        let ending = match entries.get(&launch) {
            Some(Entry::Doomed { .. }) => {
                end_start(&mut entries, launch);
                return None;
            }
            Some(Entry::Starting { ending, .. } | Entry::Running { ending, .. }) => *ending,
            None => false,
        };
        let live = Arc::new(live);
        let live_entry = Entry::Running {
            live: live.clone(),
            is_reported: false,
            is_received: false,
            ending,
            is_replaced: false,
        };
        entries.insert(launch, live_entry);
        Some(live)
    }

    /// Notes that a start failed, or that a launch that was looked for does not run. True if it was destroyed
    /// meanwhile, or is just being.
    pub(super) fn start_failed(&self, launch: LaunchId) -> bool {
        end_start(&mut self.entries(), launch)
    }

    /// Puts a successor in the place of a shim that was killed. Given back: the launch is being
    /// destroyed meanwhile, or was.
    pub(super) fn replace(&self, launch: LaunchId, replacement: S) -> Result<Arc<S>, S> {
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
            Some(Entry::Running { .. } | Entry::Starting { .. } | Entry::Doomed { .. }) | None => {
                Err(replacement)
            }
        }
    }

    /// Notes that a launch is about to be destroyed. True as long as a successor of its shim is being begun, which
    /// whoever destroys it would not see.
    pub(super) fn forbid_replacement(&self, launch: LaunchId) -> bool {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running {
                ending,
                is_replaced,
                ..
            }) => {
                *ending = true;
                *is_replaced
            }
            Some(Entry::Starting { ending, .. }) => {
                *ending = true;
                false
            }
            Some(Entry::Doomed { .. }) | None => false,
        }
    }

    /// Notes that a launch is being destroyed. The launch, if its shim runs or did.
    pub(super) fn begin_end(&self, launch: LaunchId) -> Option<Arc<S>> {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running { live, ending, .. }) => {
                *ending = true;
                Some(live.clone())
            }
            Some(Entry::Starting { ending, .. }) => {
                *ending = true;
                None
            }
            Some(Entry::Doomed { .. }) | None => None,
        }
    }

    /// The launch, if its shim runs or did.
    pub(super) fn live(&self, launch: LaunchId) -> Option<Arc<S>> {
        match self.entries().get(&launch) {
            Some(Entry::Running { live, .. }) => Some(live.clone()),
            Some(Entry::Starting { .. } | Entry::Doomed { .. }) | None => None,
        }
    }

    /// Whether a shim that was killed gets a successor: the launch's end is still to be told, and nobody
    /// destroys it. Nobody does then until [`Held::end_replacement`].
    pub(super) fn begin_replacement(&self, launch: LaunchId) -> bool {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running {
                is_reported: false,
                ending: false,
                is_replaced,
                ..
            }) => {
                *is_replaced = true;
                true
            }
            Some(Entry::Running { .. } | Entry::Starting { .. } | Entry::Doomed { .. }) | None => {
                false
            }
        }
    }

    /// Notes that a successor runs, or that there is none.
    pub(super) fn end_replacement(&self, launch: LaunchId) {
        if let Some(Entry::Running { is_replaced, .. }) = self.entries().get_mut(&launch) {
            *is_replaced = false;
        }
    }

    /// Asks for the right to tell the end of a launch, which only one gets. Who hears `true` tells it.
    pub(super) fn claim_report(&self, launch: LaunchId) -> bool {
        match self.entries().get_mut(&launch) {
            Some(Entry::Running { is_reported, .. }) => !std::mem::replace(is_reported, true),
            Some(Entry::Starting { .. } | Entry::Doomed { .. }) | None => false,
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
            Some(Entry::Starting { .. } | Entry::Doomed { .. }) | None => true,
        }
    }

    /// Notes that a launch was destroyed.
    pub(super) fn destroyed(&self, launch: LaunchId) {
        let mut entries = self.entries();
        match entries.get_mut(&launch) {
            Some(Entry::Starting { starts, .. }) => {
                let starts = *starts;
                entries.insert(launch, Entry::Doomed { starts });
            }
            Some(Entry::Doomed { .. }) | None => {}
            Some(Entry::Running { .. }) => {
                entries.remove(&launch);
            }
        }
    }
}

/// One start of a launch is over, and did not lead to a shim in hand. True if the launch was destroyed meanwhile, or is
/// just being.
fn end_start<S>(entries: &mut BTreeMap<LaunchId, Entry<S>>, launch: LaunchId) -> bool {
    let (starts, ending) = match entries.get_mut(&launch) {
        // Another start of the same launch succeeded: that one stays.
        Some(Entry::Running { .. }) | None => return false,
        Some(Entry::Starting { starts, ending }) => (starts, *ending),
        Some(Entry::Doomed { starts }) => (starts, true),
    };
    *starts = starts.saturating_sub(1);
    if *starts == 0 {
        entries.remove(&launch);
    }
    ending
}
