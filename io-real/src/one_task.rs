//! A place for one task at a time.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::task::AbortHandle;

/// The task that was begun here last. The next one ends it, and so does dropping this.
#[derive(Debug, Default)]
pub(crate) struct OneTask(Mutex<Option<AbortHandle>>);

impl OneTask {
    /// Begins this, and ends what was begun before.
    pub(crate) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(work).abort_handle();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = last.replace(task) {
            before.abort();
        }
    }
}

impl Drop for OneTask {
    fn drop(&mut self) {
        let last = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            last.abort();
        }
    }
}
