//! Where long answers are made: on few threads, which give way to all others. Whoever asks for much waits for those who
//! ask for little, also where every core is busy.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, spawn_blocking};

/// How many long answers are made at a time.
const THREADS: usize = 2;

/// By how much the threads give way.
const NICE: i32 = 5;

/// After how long without work they end.
const IDLE: Duration = Duration::from_secs(10);

/// Does it aside. What comes of it is awaited by the handle.
pub(super) fn spawn<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    static THREADS_ASIDE: OnceLock<Option<Runtime>> = OnceLock::new();
    match THREADS_ASIDE.get_or_init(threads) {
        Some(threads) => threads.spawn_blocking(work),
        None => spawn_blocking(work),
    }
}

/// A runtime of which only the threads for what blocks are used.
fn threads() -> Option<Runtime> {
    let give_way = || {
        // Without it they only give way less.
        let _ = rustix::process::nice(NICE);
    };
    let built = Builder::new_current_thread()
        .max_blocking_threads(THREADS)
        .thread_keep_alive(IDLE)
        .thread_name("aside")
        .on_thread_start(give_way)
        .build();
    built.ok()
}
