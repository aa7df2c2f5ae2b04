//! Logs of tasks, sent elsewhere: read from the files that shims write, in the order of each stream.
//!
//! **The files are the buffer.** No more is in memory than one batch and the beginnings of lines; while a destination
//! is away nothing is read. What the files lost meanwhile, because newer ones took their place, is reported in a line of
//! its own. How far each stream is sent is written down seldom ([`cursors`]), and when the agent ends: after a crash, what
//! was sent since is sent again.
//!
//! **Nothing is polled.** The kernel notifies of changes in directories of logs ([`watch`]), the core of new tasks.
//! An agent whose configuration names no destination does nothing of this.
//!
//! [`stream`] reads, [`lines`] cuts, [`sink`] has the protocols, [`follow`] is the loop of one destination.

mod cursors;
mod follow;
mod lines;
mod settings;
mod sink;
mod source;
mod stream;
mod watch;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch as signal};
use tokio::time::timeout;

use crate::agent_handle::AgentHandle;
use crate::small_files::SmallFiles;
use cursors::Cursors;
use follow::{Follower, Parts};
use sink::{Common, Sink};

pub use settings::{Address, Destination, ForwardSettings, facility};

/// The most bytes of a file of cursors.
const MAX_FILE: u64 = 64 << 20;
/// How long the end of the agent waits for what is being sent.
const END: Duration = Duration::from_secs(2);

/// Everything that sends logs elsewhere.
#[derive(Debug, Default)]
pub struct Forwarders {
    end: signal::Sender<bool>,
    /// Says when they have ended; none if there are none.
    ended: Option<oneshot::Receiver<()>>,
    counts: ForwardCounts,
}

/// What became of the logs. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ForwardCounts(Arc<Vec<(String, Arc<Counts>)>>);

#[derive(Debug, Default)]
pub(crate) struct Counts {
    lines: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

/// What became of the logs for one destination since the agent started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardMetrics {
    /// The destination's name.
    pub name: String,
    /// How many lines were taken.
    pub lines: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How often sending failed.
    pub failures: u64,
    /// How many lines were refused for good.
    pub refused: u64,
    /// How many bytes at most were removed before they were sent.
    pub lost: u64,
}

impl Forwarders {
    /// Begins to send, on a thread of its own: disks and much text hold up nobody else. `home` is a directory for how
    /// far logs were sent; `node` is this node's name.
    ///
    /// # Errors
    /// The directory cannot be made, or the thread not be started.
    pub fn start(
        settings: Vec<ForwardSettings>,
        agent: &AgentHandle,
        home: &dyn Fn() -> io::Result<OwnedFd>,
        node: &str,
    ) -> io::Result<Forwarders> {
        if settings.is_empty() {
            return Ok(Forwarders::default());
        }
        let (mut all, mut counts) = (Vec::new(), Vec::new());
        for one in settings {
            let (cursors, is_new) = Cursors::open(SmallFiles::new(home()?, MAX_FILE), &one.name);
            let own = Arc::new(Counts::default());
            counts.push((one.name.clone(), own.clone()));
            all.push(Parts {
                agent: agent.clone(),
                jobs: one.jobs.into(),
                sink: Sink::new(&one.to),
                common: Common {
                    node: node.to_owned(),
                    labels: one.labels,
                },
                counts: own,
                name: one.name,
                cursors,
                is_new,
            });
        }
        let (end, to_end) = signal::channel(false);
        let (over, ended) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("log-forward".to_owned());
        thread.spawn(move || {
            runtime.block_on(async {
                let run = |parts| tokio::spawn(run(parts, to_end.clone()));
                let running: Vec<_> = all.into_iter().map(run).collect();
                for one in running {
                    // One that panics said so.
                    let _ = one.await;
                }
            });
            // A name that is looked up for ever must not be waited for.
            runtime.shutdown_background();
            drop(over);
        })?;
        Ok(Forwarders {
            end,
            ended: Some(ended),
            counts: ForwardCounts(Arc::new(counts)),
        })
    }

    /// What became of the logs.
    pub fn counts(&self) -> ForwardCounts {
        self.counts.clone()
    }

    /// Ends, and notes how far logs were sent.
    pub async fn end(&mut self) {
        self.end.send_replace(true);
        if let Some(ended) = self.ended.take() {
            // Too late or not: it says nothing else.
            let _ = timeout(END, ended).await;
        }
    }
}

async fn run(parts: Parts, end: signal::Receiver<bool>) {
    Follower::new(parts).run(end).await;
}

impl ForwardCounts {
    /// For each destination.
    pub fn metrics(&self) -> Vec<ForwardMetrics> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let metrics = self.0.iter().map(|(name, counts)| ForwardMetrics {
            name: name.clone(),
            lines: read(&counts.lines),
            bytes: read(&counts.bytes),
            failures: read(&counts.failures),
            refused: read(&counts.refused),
            lost: read(&counts.lost),
        });
        metrics.collect()
    }
}
