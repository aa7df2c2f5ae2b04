//! The flight recorder: what the core is told, in a bounded ring of files.
//!
//! Beside the core it does next to nothing: it copies an input and its effects (pointers, mostly) and
//! hands them over once in a turn of the loop. A thread of its own hides secrets, encodes and
//! writes. Nothing waits for that thread: where it cannot keep up, steps are left out and the
//! recording says so; where the disk says no, recording ends with one warning.
//!
//! Nothing is synced: a crash of the agent costs the steps of the last few milliseconds, a crash
//! of the machine more.

mod pack;
mod queue;
mod ring;
mod writer;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::store::Saved;
use drover_core::time::Now;

use queue::{Item, Queue};
use ring::Ring;
use writer::Writer;

/// How long the end of the agent waits for the last steps to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The core's side of the recorder.
#[derive(Debug)]
pub struct Recorder {
    queue: Option<Arc<Queue>>,
    /// What happened since the last hand-over.
    fresh: Vec<Item>,
    /// Whether steps were left out, and no snapshot followed yet.
    gap: bool,
}

impl Recorder {
    /// A recorder that does nothing.
    pub fn off() -> Recorder {
        Recorder {
            queue: None,
            fresh: Vec::new(),
            gap: false,
        }
    }

    /// A recorder into the directory `dir`, of which it never fills more than `size` bytes. What
    /// other recorders left there counts, and the oldest of it goes first.
    ///
    /// # Errors
    /// The directory cannot be read, or there is no thread.
    pub fn open(dir: OwnedFd, size: u64) -> std::io::Result<Recorder> {
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(queue.clone(), Ring::open(dir, size)?);
        thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.run())?;
        Ok(Recorder {
            queue: Some(queue),
            fresh: Vec::new(),
            gap: false,
        })
    }

    /// The agent is restored from this.
    pub fn begin(&mut self, config: &Config, saved: &Saved, now: Now) {
        if self.is_on() {
            let begin = Box::new((config.clone(), saved.clone(), now));
            self.fresh.push(Item::Begin(begin));
        }
    }

    /// The core is told this, or that its time has come.
    pub fn step(&mut self, now: Now, input: Option<&Input>) {
        if self.is_on() && !self.gap {
            self.fresh.push(Item::Step(now, input.cloned()));
        }
    }

    /// The core asks for this.
    pub fn effect(&mut self, effect: &Effect) {
        if self.is_on() && !self.gap {
            self.fresh.push(Item::Effect(effect.clone()));
        }
    }

    /// Hands over what happened, up to the end of a step.
    pub fn hand_over(&mut self, agent: &Agent, now: Now) {
        let Some(queue) = &self.queue else { return };
        if queue.is_over() {
            self.fresh = Vec::new();
            return;
        }
        if self.gap {
            if queue.is_roomy() {
                self.fresh.push(snapshot(agent, now, true));
                self.gap = !queue.put(&mut self.fresh);
            }
            return;
        }
        if queue.wants_snapshot() {
            self.fresh.push(snapshot(agent, now, false));
        }
        if !self.fresh.is_empty() {
            self.gap = !queue.put(&mut self.fresh);
        }
    }

    fn is_on(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.is_over())
    }
}

fn snapshot(agent: &Agent, now: Now, gap: bool) -> Item {
    Item::Snapshot {
        agent: Box::new(agent.clone()),
        now,
        gap,
    }
}

/// The last steps are the most interesting ones.
impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.put(&mut self.fresh);
            queue.end(LAST_WORDS);
        }
    }
}
