//! The flight recorder: the core's inputs, in a bounded ring of files (mode 0600).
//!
//! Beside the core it does little: it copies each input, counts effects and takes a pointer to what is
//! saved, and hands them over once in a turn of the loop ([`queue`]). A thread of its own hides secrets,
//! hashes, encodes and writes ([`writer`]); now and then it asks for a copy of the whole state, to hash it
//! or to begin a new file with it. Nothing waits for that thread: where it cannot keep up, steps are left
//! out and the next segment says `gap`; where the disk says no, recording ends with one warning. A
//! state that takes more than half of `-recording-size` ends the recording too.
//!
//! Nothing is synced: a crash of the agent costs the steps of the last few milliseconds, a crash of
//! the machine more. What it costs is in `io-real/benches/recorder.rs`.

mod queue;
mod ring;
mod writer;

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::Effect;
use drover_core::store::Saved;
use drover_core::time::Now;

use queue::{Sender, What, queue};
use ring::Ring;
use writer::Writer;

/// How long the end of the agent waits for the last steps to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

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
            queue.push(now, What::Begin(Box::new((config.clone(), saved.clone()))));
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
    pub fn hand_over(&mut self, agent: &Agent, more: bool) {
        if let Some(queue) = &mut self.queue
            && queue.hand_over(agent, more).is_err()
        {
            self.queue = None;
        }
    }
}

/// The last steps are the most interesting ones.
impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.end(FLUSH_TIMEOUT);
        }
    }
}
