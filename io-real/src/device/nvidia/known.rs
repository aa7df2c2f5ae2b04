//! What is known of the GPUs between two questions: which there are, and what was measured of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use drover_core::device::reported_stats::ReportedInstance;

use super::gpu::{Gpu, Used};
use super::reported;
use crate::clock;
use crate::device::Measured;
use crate::stats::FRESH;

/// How long what was measured is shown if nothing newer is found out.
const SHOWN: Duration = Duration::from_secs(10);

/// What is known by now.
#[derive(Default)]
pub(super) struct Known(Mutex<State>);

#[derive(Default)]
struct State {
    /// The model of each GPU that may be handed out, by its id.
    gpus: BTreeMap<String, String>,
    /// What was measured of them, and when.
    measured: BTreeMap<String, (Instant, ReportedInstance)>,
}

impl Known {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These and no others may be handed out.
    pub(super) fn there_are(&self, gpus: &[Gpu]) {
        let names = gpus.iter().map(|gpu| (gpu.id.clone(), gpu.name.clone()));
        self.state().gpus = names.collect();
    }

    /// Whether none is known.
    pub(super) fn has_none(&self) -> bool {
        self.state().gpus.is_empty()
    }

    /// Whether a GPU is of this model.
    pub(super) fn has(&self, id: &str, model: &str) -> bool {
        let state = self.state();
        state.gpus.get(id).is_some_and(|known| known == model)
    }

    /// Those of these GPUs, or of all, of which nothing is known that is true enough.
    pub(super) fn stale(&self, ids: Option<&BTreeSet<String>>) -> Vec<String> {
        let state = self.state();
        let wanted = state.gpus.keys();
        let wanted = wanted.filter(|id| ids.is_none_or(|ids| ids.contains(*id)));
        wanted.filter(|id| !state.is_fresh(id)).cloned().collect()
    }

    /// Whether what was measured of a GPU is good enough.
    pub(super) fn is_fresh(&self, id: &str) -> bool {
        self.state().is_fresh(id)
    }

    /// What a GPU uses now; nothing if it does not say.
    pub(super) fn note(&self, id: &str, used: Option<&Used>) {
        let instance = used.map(|used| reported::instance(used, clock::now().wall));
        let mut state = self.state();
        match instance {
            Some(instance) => {
                let measured = (Instant::now(), instance);
                state.measured.insert(id.to_owned(), measured);
            }
            None => {
                state.measured.remove(id);
            }
        }
    }

    /// Whether something was told that is not true any more.
    pub(super) fn is_outdated(&self) -> bool {
        let state = self.state();
        let outdated = |(id, (at, _)): (&String, &(Instant, _))| {
            at.elapsed() >= SHOWN || !state.gpus.contains_key(id)
        };
        state.measured.iter().any(outdated)
    }

    /// Tells what was measured lately of GPUs that are still there.
    pub(super) fn report_stats(&self, to: &Measured) {
        let mut state = self.state();
        let State { gpus, measured } = &mut *state;
        measured.retain(|id, (at, _)| at.elapsed() < SHOWN && gpus.contains_key(id));
        let all = measured.iter().filter_map(|(id, (_, instance))| {
            let model = gpus.get(id)?;
            Some((id.as_str(), model.as_str(), instance))
        });
        if let Err(why) = to.report(reported::stats(all)) {
            tracing::warn!(why, "what was measured of GPUs cannot be so");
        }
    }
}

impl State {
    fn is_fresh(&self, id: &str) -> bool {
        let measured = self.measured.get(id);
        measured.is_some_and(|(at, _)| at.elapsed() < FRESH)
    }
}
