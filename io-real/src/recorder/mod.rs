//! The flight recorder: what the core is told, in a bounded ring of files (mode 0600).
//!
//! Beside the core it does next to nothing: it writes down what an input says as numbers
//! ([`said`]), and a few more for each effect ([`drover_core::record::mark`]), and hands them over
//! once in a turn of the loop. A thread of its own hides secrets, encodes and writes. Nothing waits
//! for that thread: where it cannot keep up, steps are left out and the next segment says `gap`;
//! where the disk says no, recording ends with one warning. A state that takes more than half of
//! `-recording-size` ends the recording too (about 1.5 KB for each task).
//!
//! Nothing is synced: a crash of the agent costs the steps of the last few milliseconds, a crash of
//! the machine more.
//!
//! **Why it is cheap.** A step is ten numbers: how far the clocks moved, those of the input if it
//! is one of the answers that come with every start and end of a task (any other is copied whole),
//! and a mark for each effect. The core writes them where they are read, into pages of 16 KiB
//! ([`page`]): what is whole may be read, so a lock is taken once a page, and while more inputs
//! wait, nothing is handed over before a KiB is full. The reader had each page before, so the
//! processor is asked for its memory a step or two before it is written: waiting for it costs more
//! than writing. Nothing is allocated on one thread and freed on the other. The recorder's thread
//! sleeps 20 ms between looks, so that a busy core wakes nobody; when nothing comes for that long,
//! it sleeps until it is woken. `io-real/benches/recorder.rs` has what it costs.

mod pack;
mod page;
mod queue;
mod ring;
mod said;
mod tape;
mod writer;

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::store::Saved;
use drover_core::time::Now;

use queue::{Answer, Sender, queue};
use ring::Ring;
use tape::Beside;
use writer::Writer;

/// How long the end of the agent waits for the last steps to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The core's side of the recorder.
#[derive(Debug)]
pub struct Recorder {
    /// None where nothing is recorded.
    queue: Option<Sender>,
}

impl Recorder {
    /// A recorder that does nothing.
    pub fn off() -> Recorder {
        Recorder { queue: None }
    }

    /// A recorder into the directory `dir`, of which it never fills more than `size` bytes. What
    /// other recorders left there counts, and the oldest of it goes first.
    ///
    /// # Errors
    /// The directory cannot be read, or there is no thread.
    pub fn open(dir: OwnedFd, size: u64) -> std::io::Result<Recorder> {
        let (queue, to_write) = queue();
        let writer = Writer::new(to_write, Ring::open(dir, size)?);
        thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.run())?;
        Ok(Recorder { queue: Some(queue) })
    }

    /// The agent is restored from this.
    pub fn begin(&mut self, config: &Config, saved: &Saved, now: Now) {
        if let Some(queue) = &mut self.queue {
            let begin = Box::new((config.clone(), saved.clone()));
            queue.push(now, Beside::Begin(begin));
        }
    }

    /// The core is told this, or that its time has come.
    #[inline]
    pub fn step(&mut self, now: Now, input: Option<&Input>) {
        if let Some(queue) = &mut self.queue {
            queue.step(now, input);
        }
    }

    /// The core asks for this.
    #[inline]
    pub fn effect(&mut self, effect: &Effect) {
        if let Some(queue) = &mut self.queue {
            queue.effect(effect);
        }
    }

    /// Hands over what happened, up to the end of a step. Where `more` is to come at once, it may
    /// wait for that.
    #[inline]
    pub fn hand_over(&mut self, agent: &Agent, now: Now, more: bool) {
        if let Some(queue) = &mut self.queue {
            match queue.hand_over(more) {
                Answer::Taken => {}
                answer => self.answered(answer, agent, now),
            }
        }
    }

    /// What is rare at a hand-over.
    #[cold]
    fn answered(&mut self, answer: Answer, agent: &Agent, now: Now) {
        match (answer, &mut self.queue) {
            (Answer::Snapshot { gap }, Some(queue)) => {
                let agent = Box::new(agent.clone());
                queue.push(now, Beside::Snapshot { agent, gap });
                queue.hand_over(false);
            }
            (Answer::Over, _) => self.queue = None,
            (Answer::Taken | Answer::Snapshot { .. }, _) => {}
        }
    }
}

/// The last steps are the most interesting ones.
impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.hand_over(false);
            queue.end(LAST_WORDS);
        }
    }
}
