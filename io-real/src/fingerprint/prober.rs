//! Asks a probe by name, where blocking hurts nobody.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::fingerprint::Fingerprint;
use drover_core::op::Failure;

use super::{Context, PROBES};
use crate::gate::Gate;

/// Asks probes. Cheap to clone; the clones are the same prober.
#[derive(Clone)]
pub struct Prober {
    context: Arc<Context>,
    gate: Gate,
    /// Those that look at this moment.
    looking: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Prober {
    /// Asks about the machine of `context`, and lets in as many as `gate` does.
    pub fn new(context: Context, gate: Gate) -> Prober {
        Prober {
            context: Arc::new(context),
            gate,
            looking: Arc::default(),
        }
    }

    /// Asks a probe. If this is dropped the probe looks on, and its answer is nobody's.
    ///
    /// # Errors
    /// There is none of that name; it could not find out; or it was asked before and still looks:
    /// one that hangs takes one thread and not more.
    pub async fn ask(&self, name: &str) -> Result<Fingerprint, Failure> {
        let Some(probe) = PROBES.iter().find(|probe| probe.name == name) else {
            return Err(Failure::fatal(format!("there is no probe {name:?}")));
        };
        let Some(turn) = Turn::take(&self.looking, probe.name) else {
            return Err(Failure::recoverable(format!(
                "probe {name:?} still runs since it was asked before; \
                 check what it reads: something there hangs"
            )));
        };
        let context = Arc::clone(&self.context);
        let work = move || {
            let answer = probe.query(&context);
            drop(turn);
            answer
        };
        match self.gate.run(work).await {
            Ok(answer) => Ok(answer?),
            Err(error) => Err(Failure::recoverable(format!(
                "probe {name:?} broke off: {error}"
            ))),
        }
    }
}

/// A probe's turn. While it is held nobody else has one.
struct Turn {
    looking: Arc<Mutex<BTreeSet<&'static str>>>,
    name: &'static str,
}

impl Turn {
    fn take(looking: &Arc<Mutex<BTreeSet<&'static str>>>, name: &'static str) -> Option<Turn> {
        locked(looking).insert(name).then(|| Turn {
            looking: Arc::clone(looking),
            name,
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.looking).remove(self.name);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody panics while holding it, and if: a set is never half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
