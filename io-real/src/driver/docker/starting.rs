//! Starts that are under way: whoever destroys one ends it first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::ids::LaunchId;
use tokio::sync::watch;
use tokio::time::timeout;

/// The starts.
#[derive(Default)]
pub(super) struct Starts(Mutex<BTreeMap<LaunchId, Ends>>);

/// How one is given up, and how its end is awaited.
struct Ends {
    given_up: watch::Sender<bool>,
    over: watch::Receiver<()>,
}

/// A start that is under way, until it is dropped.
pub(super) struct Start {
    starts: Arc<Starts>,
    launch: LaunchId,
    given_up: watch::Receiver<bool>,
    _over: watch::Sender<()>,
}

impl Starts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<LaunchId, Ends>> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a start begins: before anything that comes later can be begun.
    pub(super) fn begin(self: &Arc<Self>, launch: LaunchId) -> Start {
        let (given_up, is_given_up) = watch::channel(false);
        let (over, is_over) = watch::channel(());
        let ends = Ends {
            given_up,
            over: is_over,
        };
        self.all().insert(launch, ends);
        Start {
            starts: self.clone(),
            launch,
            given_up: is_given_up,
            _over: over,
        }
    }

    /// Gives a start up, and waits until it is over. False if it is not within the limit.
    pub(super) async fn end(&self, launch: LaunchId, limit: Duration) -> bool {
        let over = self.all().get(&launch).map(|ends| {
            ends.given_up.send_replace(true);
            ends.over.clone()
        });
        let Some(mut over) = over else { return true };
        // It is an error when the other end is gone, and that is what is waited for.
        timeout(limit, over.changed()).await.is_ok()
    }
}

impl Start {
    /// Waits until it is given up.
    pub(super) async fn given_up(&self) {
        let mut given_up = self.given_up.clone();
        if given_up.wait_for(|given_up| *given_up).await.is_err() {
            core::future::pending::<()>().await;
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        *self.given_up.borrow()
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        self.starts.all().remove(&self.launch);
    }
}
