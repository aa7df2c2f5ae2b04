//! Ending what is under way.

use std::sync::{Mutex, MutexGuard};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::watch;

/// One piece of work, and the processes that do it.
#[derive(Debug)]
pub(super) struct Cancel {
    /// The processes that live, each the first of its group; and whether they shall end.
    live: Mutex<(Vec<Pid>, bool)>,
    told: watch::Sender<bool>,
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel {
            live: Mutex::default(),
            told: watch::Sender::new(false),
        }
    }
}

impl Cancel {
    /// Ends it, now and whatever of it would begin later.
    pub(super) fn cancel(&self) {
        let mut live = self.lock();
        live.1 = true;
        live.0.iter().for_each(|pid| end(*pid));
        drop(live);
        self.told.send_replace(true);
    }

    /// Whether it is to end.
    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().1
    }

    /// Waits until it is to end.
    pub(super) async fn cancelled(&self) {
        // It cannot be dropped while it is borrowed.
        let _ = self.told.subscribe().wait_for(|told| *told).await;
    }

    /// This process, which nobody has waited for, belongs to it.
    pub(super) fn began(&self, pid: Pid) {
        let mut live = self.lock();
        live.0.push(pid);
        if live.1 {
            end(pid);
        }
    }

    /// This process is over, and is waited for as soon as nobody sends it anything any more.
    pub(super) fn ended<T>(&self, pid: Pid, wait: impl FnOnce() -> T) -> T {
        let mut live = self.lock();
        live.0.retain(|other| *other != pid);
        wait()
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Pid>, bool)> {
        self.live.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

/// Ends a process that nobody has waited for, and what it started.
pub(super) fn end(pid: Pid) {
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL);
}
