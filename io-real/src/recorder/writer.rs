//! The recorder's thread: hides secrets, encodes, writes.

use std::io;

use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{FORMAT, Header, Mark, Start, Step, seal};
use drover_core::time::Now;

use super::pack::pack;
use super::queue::Receiver;
use super::ring::{Ring, RingError};
use super::tape::{Nonsense, Reader, What};
use crate::{facts, memory};

/// Frames are gathered up to this many bytes before they are written.
const AT_ONCE: usize = 256 * 1024;

/// The thread's state.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Receiver,
    ring: Ring,
    how: How,
    life: String,
    /// The steps of this life so far, also those that were left out.
    steps: u64,
    frames: Vec<u8>,
    /// Whether a new segment is asked for and did not come yet.
    asked: bool,
    /// Whether frames were left out since the last one.
    gap: bool,
}

impl Writer {
    pub(super) fn new(queue: Receiver, ring: Ring) -> Writer {
        Writer {
            queue,
            ring,
            how: How::Token(TokenKey::new(facts::random())),
            life: format!("{:016x}", facts::random() >> 64),
            steps: 0,
            frames: Vec::new(),
            asked: false,
            gap: false,
        }
    }

    /// Writes until the end, or until it cannot.
    pub(super) fn run(mut self) {
        let mut reader = Reader::default();
        while self.queue.take(&mut reader) {
            let written = reader.read(|now, what, marks| self.write(now, what, marks));
            if let Err(error) = written.and_then(|()| self.flush()) {
                tracing::warn!("the recording ends here: {error}");
                break;
            }
        }
        self.queue.give_up();
    }

    fn write(&mut self, now: Now, what: What, marks: Vec<Mark>) -> Result<(), RingError> {
        match what {
            What::Step(input) => {
                self.steps += 1;
                let input = input.map(|input| *input);
                self.step(&Step { now, input, marks })
            }
            What::Begin(begin) => {
                let (config, saved) = *begin;
                let start = Start::Restore {
                    config: Box::new(config),
                    saved: Box::new(saved),
                    now,
                    marks,
                };
                self.begin(self.header(false, start))
            }
            What::Snapshot { agent, gap } => {
                let start = Start::Snapshot { agent, now };
                self.begin(self.header(gap, start))
            }
        }
    }

    fn header(&self, gap: bool, start: Start) -> Header {
        Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            life: self.life.clone(),
            step: self.steps,
            gap,
            start,
        }
    }

    /// A new segment begins.
    fn begin(&mut self, mut header: Header) -> Result<(), RingError> {
        self.flush()?;
        header.gap |= self.gap;
        let shown = Redacted::new(&header, self.how);
        let packed = pack(serde_json::to_value(shown).map_err(io::Error::from)?).to_string();
        self.seal(packed.as_bytes());
        let frame = core::mem::take(&mut self.frames);
        self.ring.begin(&frame)?;
        // The whole state was written down, in several copies.
        drop((header, packed, frame));
        memory::give_back();
        (self.asked, self.gap) = (false, false);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), RingError> {
        let text = serde_json::to_vec(&Redacted::new(step, self.how)).map_err(io::Error::from)?;
        self.seal(&text);
        if self.frames.len() > AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn seal(&mut self, text: &[u8]) {
        self.frames.extend_from_slice(seal::head(text).as_bytes());
        self.frames.extend_from_slice(text);
        self.frames.push(b'\n');
    }

    fn flush(&mut self) -> Result<(), RingError> {
        self.gap |= !self.ring.append(&self.frames)?;
        self.frames.clear();
        if (self.gap || self.ring.is_enough()) && !self.asked {
            self.asked = true;
            self.queue.want_snapshot();
        }
        Ok(())
    }
}

impl From<Nonsense> for RingError {
    fn from(_: Nonsense) -> Self {
        RingError::Io(io::Error::other(
            "what the core's thread wrote down makes no sense",
        ))
    }
}
