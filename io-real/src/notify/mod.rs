//! Telling operators: notices of the core, handed to web servers and programs of theirs.
//!
//! Each target has a queue and a task of its own, so that one that hangs, is away or floods us holds up
//! nobody else. A notice is tried again with growing pauses until it is taken, refused for good, or too old. Queues
//! are bounded: what does not fit is counted, and the next message says how many were missed.
//!
//! **After a restart.** The store is the queue that outlives the agent: at its start the agent reads off the
//! records what they say ([`Watch::restored`]), and sends what is not in the target's [`sent_notices::SentNotices`]. So
//! each notice is sent at least once; twice if the agent ended between sending it and saving that. Its `id` is the same then.

mod command;
mod message;
mod queue;
mod sent_notices;
mod settings;
mod target;
mod webhook;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drover_core::agent::View;
use drover_core::model::notice::Notice;
use drover_core::notice::Watch;
use drover_core::store::{Batch, Saved};

use crate::clock;
use crate::small_files::SmallFiles;
use queue::Queue;
use sent_notices::SentNotices;
use target::Target;

pub use command::helper::{HELPER, main as helper_main};
pub use message::NodeName;
pub use settings::{CommandSettings, TargetSettings, Way, WebhookSettings, check_template};

/// The most bytes of a file about sent notices.
const MAX_FILE: u64 = 256 << 10;

/// Whoever tells operators. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Notifier(Arc<Vec<Sender>>);

/// One target, as those see it who have something to tell.
#[derive(Debug)]
struct Sender {
    settings: TargetSettings,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
}

/// What became of the notices for one target since the agent started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

/// What became of the notices for one target since the agent started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetMetrics {
    /// The target's name.
    pub name: String,
    /// How many were taken.
    pub sent: u64,
    /// How often one was not taken, whatever became of it.
    pub failed: u64,
    /// How many were given up.
    pub given_up: u64,
    /// How many did not fit into the queue.
    pub dropped: u64,
    /// How many wait.
    pub waiting: usize,
}

impl Notifier {
    /// Begins to tell these targets, first of all what the store says and they were not told. `home` is a
    /// directory for what they were told. Also gives back what is to hear of commits.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn start(
        targets: Vec<TargetSettings>,
        home: &dyn Fn() -> io::Result<OwnedFd>,
        node: &NodeName,
        saved: &Saved,
    ) -> io::Result<(Notifier, impl FnMut(View<'_>, &Batch) + Send + use<>)> {
        let (mut watch, known) = match targets.is_empty() {
            true => (Watch::default(), Vec::new()),
            false => Watch::restored(saved),
        };
        let known: Vec<Arc<Notice>> = known.into_iter().map(Arc::new).collect();
        let mut senders = Vec::new();
        for settings in targets {
            let sent_notices = SentNotices::open(
                SmallFiles::new(home()?, MAX_FILE),
                &settings.name,
                clock::now().wall,
            );
            let (queue, counts) = (Arc::new(Queue::default()), Arc::new(Counts::default()));
            let wanted = known.iter().filter(|notice| settings.wants(notice));
            for notice in wanted.filter(|notice| !sent_notices.knows(notice)) {
                queue.push(notice.clone());
            }
            let target = Target {
                settings: settings.clone(),
                node: node.clone(),
                queue: queue.clone(),
                counts: counts.clone(),
                sent_notices,
            };
            tokio::spawn(target.run());
            senders.push(Sender {
                settings,
                queue,
                counts,
            });
        }
        let notifier = Notifier(Arc::new(senders));
        let to = notifier.clone();
        let listener = move |view: View<'_>, batch: &Batch| {
            for notice in watch.on_commit(view, batch) {
                to.notify(&Arc::new(notice));
            }
        };
        Ok((notifier, listener))
    }

    /// Whether there is no target.
    pub fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Queues a notice for each target that wants it. Waits for nobody.
    pub fn notify(&self, notice: &Arc<Notice>) {
        for sender in self.0.iter().filter(|it| it.settings.wants(notice)) {
            sender.queue.push(notice.clone());
        }
    }

    /// How it goes, for each target.
    pub fn metrics(&self) -> Vec<TargetMetrics> {
        let metrics = self.0.iter().map(|sender| TargetMetrics {
            name: sender.settings.name.clone(),
            sent: sender.counts.sent.load(Ordering::Relaxed),
            failed: sender.counts.failed.load(Ordering::Relaxed),
            given_up: sender.counts.given_up.load(Ordering::Relaxed),
            dropped: sender.queue.dropped(),
            waiting: sender.queue.len(),
        });
        metrics.collect()
    }
}
