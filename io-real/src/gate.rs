//! How much work that blocks is done at a time.
//!
//! Hundreds of tasks may start or end at once. Were each given a thread, these would spend their
//! time on waking up and on waiting for the same locks of the kernel. So only a few are let in at
//! a time; but nobody waits long for one that hangs: it then does not count any more.
//!
//! What hangs keeps its thread: for seconds, while a shim does not answer, or for ever, on a disk that is
//! gone. The threads of the runtime are 512, for everybody. So each gate has threads of its own, more than
//! there are tasks on a machine: hundreds of hanging shims take none from files, requests or statistics.
//! A thread that has nothing to do ends after a second.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle, spawn, spawn_blocking};
use tokio::time::timeout;

use crate::abort_on_drop::AbortOnDrop;

/// How many are let in for each processor: some of the work waits for a process or the disk.
const PER_PROCESSOR: usize = 4;

/// How long work counts. Most of it takes a millisecond; what takes this long hangs.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The most threads of a gate. All but a few of them hang.
const THREADS: usize = 8192;

/// How long a thread waits for work.
const IDLE: Duration = Duration::from_secs(1);

/// A gate. Cheap to clone; the clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    places: Semaphore,
    /// Only for its threads. None if there cannot be one: then the caller's have to do.
    threads: Option<Runtime>,
}

impl Default for Gate {
    fn default() -> Gate {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Gate::of(processors * PER_PROCESSOR)
    }
}

impl Gate {
    fn of(places: usize) -> Gate {
        let threads = Builder::new_current_thread()
            .max_blocking_threads(THREADS)
            .thread_keep_alive(IDLE)
            .thread_name("gate")
            .build();
        Gate(Arc::new(Inner {
            places: Semaphore::new(places),
            threads: threads.ok(),
        }))
    }

    /// Does work that blocks where it hurts nobody, in the order in which it is asked for.
    ///
    /// # Errors
    /// The work panicked, or the runtime ends.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let gate = self.clone();
        // Whoever waits in the queue is given a place even while its caller polls something else. If only the caller
        // could use that place, and waits for another of this gate itself, nobody would get one ever again.
        AbortOnDrop(spawn(async move { gate.run_in_turn(work).await })).await?
    }

    async fn run_in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // Never closed: it fails never, and if it did, the work would be done all the same.
        let place = self.0.places.acquire().await;
        let mut done = self.begin(work);
        match timeout(TIMEOUT, &mut done).await {
            Ok(result) => result,
            Err(_) => {
                drop(place);
                done.await
            }
        }
    }

    fn begin<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        // What the work spawns belongs to the caller's runtime: that of the gate only has threads.
        let caller = Handle::current();
        let work = move || {
            let _entered = caller.enter();
            work()
        };
        match &self.0.threads {
            Some(threads) => threads.spawn_blocking(work),
            None => spawn_blocking(work),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            // What hangs is not waited for.
            threads.shutdown_background();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn hanging_work_does_not_block_others() {
        let gate = Gate::of(1);
        let (end, ended) = mpsc::channel::<()>();
        let hung = gate.clone();
        let hung = tokio::spawn(async move { hung.run(move || ended.recv()).await });
        tokio::task::yield_now().await;
        assert_eq!(gate.run(|| 7).await.unwrap(), 7);
        drop(end);
        assert!(hung.await.unwrap().unwrap().is_err());
    }

    /// Over 2,000 launches that ended within a moment were never destroyed: those that watched them had waited for so
    /// long that they looked after their shims, by the same gate, and did not poll what had a place.
    #[tokio::test]
    async fn work_of_a_caller_waiting_for_the_gate_does_not_deadlock() {
        let gate = Gate::of(1);
        let (end, ended) = mpsc::channel::<()>();
        let first = gate.clone();
        let first = tokio::spawn(async move { first.run(move || ended.recv()).await });
        tokio::task::yield_now().await;
        let mut queued = pin!(gate.run(|| 1));
        assert!(queued.as_mut().now_or_never().is_none());
        let other = gate.run(|| 2);
        drop(end);
        let other = timeout(Duration::from_secs(20), other).await;
        assert_eq!(other.unwrap().unwrap(), 2);
        assert_eq!(queued.await.unwrap(), 1);
        assert!(first.await.unwrap().unwrap().is_err());
    }

    #[tokio::test]
    async fn task_spawned_by_work_runs_beside_its_caller() {
        let spawned = Gate::of(1).run(|| tokio::spawn(async { 7 })).await.unwrap();
        assert_eq!(
            timeout(Duration::from_secs(20), spawned)
                .await
                .unwrap()
                .unwrap(),
            7
        );
    }
}
