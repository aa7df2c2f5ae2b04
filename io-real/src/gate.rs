//! How much work that blocks is done at a time.
//!
//! Hundreds of tasks may start or end at once. Were each given a thread, these would spend their
//! time on waking up and on waiting for the same locks of the kernel. So only a few are let in at
//! a time; but nobody waits long for one that hangs: it then does not count any more.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// How many are let in for each processor: some of the work waits for a process or the disk.
const PER_PROCESSOR: usize = 4;

/// How long work counts. Most of it takes a millisecond; what takes this long hangs.
const PATIENCE: Duration = Duration::from_millis(50);

/// A gate. Cheap to clone; the clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Gate {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Gate(Arc::new(Semaphore::new(processors * PER_PROCESSOR)))
    }
}

impl Gate {
    /// Does work that blocks where it hurts nobody, in the order in which it is asked for.
    ///
    /// # Errors
    /// The work panicked, or the runtime ends.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // Never closed: it fails never, and if it did, the work would be done all the same.
        let place = self.0.acquire().await;
        let mut done = spawn_blocking(work);
        match timeout(PATIENCE, &mut done).await {
            Ok(result) => result,
            Err(_) => {
                drop(place);
                done.await
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_hangs_delays_nobody_for_long() {
        let gate = Gate(Arc::new(Semaphore::new(1)));
        let (end, ended) = mpsc::channel::<()>();
        let hung = gate.clone();
        let hung = tokio::spawn(async move { hung.run(move || ended.recv()).await });
        tokio::task::yield_now().await;
        assert_eq!(gate.run(|| 7).await.unwrap(), 7);
        drop(end);
        assert!(hung.await.unwrap().unwrap().is_err());
    }
}
