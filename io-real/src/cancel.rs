//! Cancelling work that is under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use drover_core::op::Op;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::watch;

/// One piece of work, and the processes that do it.
#[derive(Debug)]
pub(crate) struct Cancel {
    /// The processes that live, each the first of its group; and whether they shall end.
    live: Mutex<(Vec<Pid>, bool)>,
    cancellation: watch::Sender<bool>,
}

/// What is under way, by the number under which it was asked for.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<BTreeMap<Op, Arc<Cancel>>>);

impl UnderWay {
    /// Makes known that `op` is under way, so that it can be cancelled from now on.
    pub(crate) fn begin(&self, op: Op) -> Arc<Cancel> {
        self.lock().entry(op).or_default().clone()
    }

    /// Ends `op` soon, if it is under way. Its answer still comes.
    pub(crate) fn cancel(&self, op: Op) {
        if let Some(cancel) = self.lock().get(&op) {
            cancel.cancel();
        }
    }

    /// It is over.
    pub(crate) fn ended(&self, op: Op) {
        self.lock().remove(&op);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Op, Arc<Cancel>>> {
        self.0.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel {
            live: Mutex::default(),
            cancellation: watch::Sender::new(false),
        }
    }
}

impl Cancel {
    /// Ends it, now and whatever of it would begin later.
    pub(crate) fn cancel(&self) {
        let mut live = self.lock();
        live.1 = true;
        live.0.iter().for_each(|pid| end(*pid));
        drop(live);
        self.cancellation.send_replace(true);
    }

    /// Whether it is to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().1
    }

    /// Waits until it is to end.
    pub(crate) async fn cancelled(&self) {
        // It cannot be dropped while it is borrowed.
        let _ = self
            .cancellation
            .subscribe()
            .wait_for(|cancellation| *cancellation)
            .await;
    }

    /// This process, which nobody has waited for, belongs to it.
    pub(crate) fn began(&self, pid: Pid) {
        let mut live = self.lock();
        live.0.push(pid);
        if live.1 {
            end(pid);
        }
    }

    /// This process is over, and is waited for as soon as nobody sends it anything any more.
    pub(crate) fn ended<T>(&self, pid: Pid, wait: impl FnOnce() -> T) -> T {
        let mut live = self.lock();
        live.0.retain(|other| *other != pid);
        wait()
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Pid>, bool)> {
        self.live.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

/// Ends a process that nobody has waited for, and what it started.
pub(crate) fn end(pid: Pid) {
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL);
}
