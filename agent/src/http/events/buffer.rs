//! The last steps that changed something, for readers that come later or are slow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::agent::View;
use drover_core::store::Batch;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::changes::Changes;
use super::node::NodeWatch;
use super::render::Step;
use crate::config::client::ClientConfig;

/// How many steps are kept.
const MOST_STEPS: usize = 100;
/// How many changes of them, whatever the number of steps.
const MOST_CHANGES: usize = 10_000;
/// How many bytes of JSON of them.
const MOST_BYTES: usize = 32 << 20;

/// What it costs to send something to one reader, about.
const COST_OF_READER: Duration = Duration::from_micros(20);
/// How long steps are gathered for a reader at most.
const MOST_GATHERED: Duration = Duration::from_millis(25);

/// What happened, and who waits for more. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    /// The number of the next step.
    next: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    steps: VecDeque<Arc<Step>>,
    /// The number of the first of them.
    first: u64,
    changes: usize,
}

impl Default for Events {
    fn default() -> Events {
        Events(Arc::new(Shared {
            kept: Mutex::default(),
            next: watch::Sender::new(0),
        }))
    }
}

impl Events {
    /// What takes note of commits, where the core lives. The node is shown with this version of Nomad, and as it is
    /// configured.
    pub fn recorder(
        &self,
        nomad_version: &str,
        client: &ClientConfig,
    ) -> impl FnMut(View<'_>, &Batch) + Send + use<> {
        let events = self.clone();
        let mut changes = Changes::new(NodeWatch::new(nomad_version, client));
        move |view, batch| {
            if let Some(step) = changes.of(view, batch) {
                events.add(step);
            }
        }
    }

    pub(super) fn add(&self, step: Step) {
        let mut kept = self.kept();
        kept.changes += step.len();
        kept.steps.push_back(Arc::new(step));
        while kept.is_too_much() {
            kept.drop_oldest();
        }
        let next = kept.first + kept.steps.len() as u64;
        drop(kept);
        self.0.next.send_replace(next);
    }

    /// Who reads from the first step that is kept and is not before this index.
    pub(super) fn read(&self, index: u64) -> Reader {
        let kept = self.kept();
        let before = kept.steps.iter().take_while(|step| step.index() < index);
        Reader {
            at: kept.first + before.count() as u64,
            changes: self.0.next.subscribe(),
            events: self.clone(),
            woken: Instant::now(),
        }
    }

    /// For how long the steps for a reader are gathered.
    fn pause(&self) -> Duration {
        let readers = u32::try_from(self.0.next.receiver_count()).unwrap_or(u32::MAX);
        let pause = COST_OF_READER.saturating_mul(readers).min(MOST_GATHERED);
        // A clock's tick is a millisecond: few readers wait for nothing.
        if pause < Duration::from_millis(1) {
            Duration::ZERO
        } else {
            pause
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_too_much(&self) -> bool {
        let bytes = || self.steps.iter().map(|step| step.bytes()).sum::<usize>();
        let many = self.steps.len() > MOST_STEPS || self.changes > MOST_CHANGES;
        self.steps.len() > 1 && (many || bytes() > MOST_BYTES)
    }

    fn drop_oldest(&mut self) {
        if let Some(step) = self.steps.pop_front() {
            self.first += 1;
            self.changes -= step.len();
        }
    }
}

/// What a reader finds.
pub(super) enum Next {
    /// The next step.
    Step(Arc<Step>),
    /// It was dropped. What is kept begins with this index.
    Lost { from: u64 },
    /// There is none yet.
    Later,
}

/// Who reads.
#[derive(Debug)]
pub(super) struct Reader {
    events: Events,
    changes: watch::Receiver<u64>,
    /// The number of the step that it reads next.
    at: u64,
    /// When it last found that there was more.
    woken: Instant,
}

impl Reader {
    pub(super) fn next(&mut self) -> Next {
        // Noted before looking: a step that comes in between is seen by `changed`.
        self.changes.borrow_and_update();
        let kept = self.events.kept();
        let Some(at) = self.at.checked_sub(kept.first) else {
            let from = kept.steps.front().map_or(0, |step| step.index());
            return Next::Lost { from };
        };
        let step = usize::try_from(at).ok().and_then(|at| kept.steps.get(at));
        match step.cloned() {
            None => Next::Later,
            Some(step) => {
                self.at += 1;
                Next::Step(step)
            }
        }
    }

    /// Waits for another step. `false` if there will be none.
    ///
    /// What follows soon after the last is gathered, the longer the more readers there are: a flood of steps then
    /// reaches all of them in a few pieces, instead of each step in a piece of its own. A step after a
    /// silence goes out at once.
    pub(super) async fn changed(&mut self) -> bool {
        if self.changes.changed().await.is_err() {
            return false;
        }
        sleep_until(self.woken + self.events.pause()).await;
        self.woken = Instant::now();
        true
    }
}
