//! The recorder's thread: hides secrets, encodes, writes.

use std::io;
use std::sync::Arc;

use drover_core::record::redact::{How, Redacted, TokenKey};
use drover_core::record::{FORMAT, Header, Mark, Start, Step, seal};

use super::pack::pack;
use super::queue::{Item, Queue};
use super::ring::{Ring, RingError};
use crate::facts;

/// Frames are gathered up to this many bytes before they are written.
const AT_ONCE: usize = 256 * 1024;

/// What the effects that come next belong to.
#[derive(Debug)]
enum Open {
    Nothing,
    Header(Header),
    Step(Step),
}

/// The thread's state.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    ring: Ring,
    how: How,
    life: String,
    /// The steps of this life so far, also those that were left out.
    steps: u64,
    open: Open,
    frames: Vec<u8>,
    /// Copies of inputs and effects that are not needed any more.
    spent: Vec<Item>,
    /// Whether a new segment is asked for and did not come yet.
    asked: bool,
    /// Whether frames were left out since the last one.
    gap: bool,
}

impl Writer {
    pub(super) fn new(queue: Arc<Queue>, ring: Ring) -> Writer {
        Writer {
            queue,
            ring,
            how: How::Token(TokenKey::new(facts::random())),
            life: format!("{:016x}", facts::random() >> 64),
            steps: 0,
            open: Open::Nothing,
            frames: Vec::new(),
            spent: Vec::new(),
            asked: false,
            gap: false,
        }
    }

    /// Writes until the end, or until it cannot.
    pub(super) fn run(mut self) {
        while let Some(items) = self.queue.take(&mut self.spent) {
            self.spent.clear();
            if let Err(error) = self.write_all(items) {
                tracing::warn!("the recording ends here: {error}");
                break;
            }
        }
        self.queue.give_up();
    }

    fn write_all(&mut self, items: Vec<Item>) -> Result<(), RingError> {
        for item in items {
            self.take(item)?;
        }
        self.close()?;
        self.flush()
    }

    fn take(&mut self, item: Item) -> Result<(), RingError> {
        match item {
            Item::Begin(begin) => {
                self.close()?;
                let (config, saved, now) = *begin;
                let start = Start::Restore {
                    config: Box::new(config),
                    saved: Box::new(saved),
                    now,
                    marks: Vec::new(),
                };
                self.open = Open::Header(self.header(false, start));
            }
            Item::Snapshot { agent, now, gap } => {
                self.close()?;
                let start = Start::Snapshot { agent, now };
                self.open = Open::Header(self.header(gap, start));
            }
            Item::Step(now, input) => {
                self.close()?;
                self.steps += 1;
                let marks = Vec::new();
                self.open = Open::Step(Step { now, input, marks });
            }
            Item::Effect(effect) => {
                if let Open::Step(Step { marks, .. })
                | Open::Header(Header {
                    start: Start::Restore { marks, .. },
                    ..
                }) = &mut self.open
                {
                    marks.push(Mark::of(&effect));
                }
                self.spent.push(Item::Effect(effect));
            }
        }
        Ok(())
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

    /// What was open is complete.
    fn close(&mut self) -> Result<(), RingError> {
        match core::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => Ok(()),
            Open::Step(step) => {
                self.frame(&step)?;
                self.spent.push(Item::Step(step.now, step.input));
                if self.frames.len() > AT_ONCE {
                    self.flush()?;
                }
                Ok(())
            }
            Open::Header(mut header) => {
                self.flush()?;
                header.gap |= self.gap;
                let shown = Redacted::new(&header, self.how);
                let packed = pack(serde_json::to_value(shown).map_err(io::Error::from)?);
                self.seal(packed.to_string().as_bytes());
                let frame = core::mem::take(&mut self.frames);
                self.ring.begin(&frame)?;
                (self.asked, self.gap) = (false, false);
                Ok(())
            }
        }
    }

    fn frame(&mut self, step: &Step) -> Result<(), RingError> {
        let text = serde_json::to_vec(&Redacted::new(step, self.how)).map_err(io::Error::from)?;
        self.seal(&text);
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
