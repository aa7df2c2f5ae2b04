//! What drivers that use shims share: the names of log files, and waiting for a shim's end.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use drover_core::ids::TaskKey;
use drover_core::model::task::LogConfig;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::gate::Gate;
use crate::shim::{Live, Logs, Outcome};

/// The names of a task's log files.
pub(super) struct LogNames {
    stdout: String,
    stderr: String,
}

impl LogNames {
    pub(super) fn of(task: &TaskKey) -> LogNames {
        LogNames {
            stdout: format!("{}.stdout", task.task),
            stderr: format!("{}.stderr", task.task),
        }
    }

    /// These files as a shim wants to hear of them.
    pub(super) fn logs<'a>(&'a self, dir: BorrowedFd<'a>, config: LogConfig) -> Logs<'a> {
        Logs {
            discarded: config.disabled,
            dir,
            stdout: &self.stdout,
            stderr: &self.stderr,
            max_files: u32::try_from(config.max_files.max(1)).unwrap_or(u32::MAX),
            max_file_size: file_size(config.max_file_size_mb),
        }
    }
}

fn file_size(megabytes: i64) -> u64 {
    u64::try_from(megabytes.max(1))
        .unwrap_or(1)
        .saturating_mul(1024 * 1024)
}

/// Waits until the shim of a launch is gone, and says what it left.
pub(super) async fn outcome(live: &Arc<Live>, gate: &Gate) -> io::Result<Outcome> {
    // SAFETY: the descriptor is the launch's pidfd, which it owns, never replaces, and closes
    // only when it is dropped; `Watched` keeps it alive for as long as this registration lives.
    let registered =
        unsafe { AsyncFd::register_with_interest(Watched(live.clone()), Interest::READABLE) };
    let watched = registered?;
    loop {
        let mut ready = watched.readable().await?;
        let live = live.clone();
        // Reading the record touches the disk.
        let outcome = gate.run(move || live.outcome()).await;
        if let Some(outcome) = outcome.unwrap_or_else(|lost| Err(io::Error::other(lost)))? {
            return Ok(outcome);
        }
        ready.clear_ready();
    }
}

/// Waits until the main process of a launch has ended, whatever its shim makes of that. Comes back at once
/// if that process cannot be watched.
pub(super) async fn task_ended(live: &Live) {
    let Ok(task) = live.open_task() else {
        return;
    };
    // SAFETY: the registration owns the descriptor, and nobody else has it.
    let watched = unsafe { AsyncFd::register_with_interest(task, Interest::READABLE) };
    if let Ok(watched) = watched {
        let _ = watched.readable().await;
    }
}

/// A launch as a descriptor that the runtime can wait for.
struct Watched(Arc<Live>);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
