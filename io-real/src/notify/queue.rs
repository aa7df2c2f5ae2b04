//! What waits for one target.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::model::notice::Notice;
use tokio::sync::Notify;

/// How many notices wait for one target. The oldest goes for a new one.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    notices: VecDeque<Arc<Notice>>,
    /// How many did not fit, ever.
    dropped: u64,
    /// How many of these were not reported to the target yet.
    unreported: u64,
}

impl Queue {
    pub(super) fn push(&self, notice: Arc<Notice>) {
        let mut waiting = self.lock();
        if waiting.notices.len() >= MOST {
            waiting.notices.pop_front();
            waiting.dropped += 1;
            waiting.unreported += 1;
        }
        waiting.notices.push_back(notice);
        drop(waiting);
        self.changed.notify_one();
    }

    /// The next one, which waits no longer.
    pub(super) async fn next(&self) -> Arc<Notice> {
        loop {
            let next = self.lock().notices.pop_front();
            match next {
                Some(notice) => return notice,
                // One that came since is not missed: its permit is kept.
                None => self.changed.notified().await,
            }
        }
    }

    /// How many were dropped that were not reported yet; the caller reports them.
    pub(super) fn take_unreported(&self) -> u64 {
        std::mem::take(&mut self.lock().unreported)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(super) fn len(&self) -> usize {
        self.lock().notices.len()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
