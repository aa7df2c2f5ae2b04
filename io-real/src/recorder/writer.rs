//! The recorder's thread: hides secrets, hashes, encodes, writes.

use std::io;

use drover_core::agent::Agent;
use drover_core::time::Now;
use drover_recorder::file::Members;
use drover_recorder::redact::{How, TokenKey};
use drover_recorder::{ContentHash, FORMAT, Header, Outcome, Start, Step, file};

use super::queue::{Item, Receiver, What};
use super::ring::{Ring, RingError};
use crate::{facts, memory};

/// Lines are gathered up to this many bytes before they are written.
const AT_ONCE: usize = 256 * 1024;

/// The state is hashed after so many bytes of steps: some, and more for each allocation, so that however
/// large it is, a step pays no more for the copy.
const FIRST: usize = 16 * 1024;
const FOR_EACH_ALLOC: usize = 16 * 1024;

/// The thread's state.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Receiver,
    ring: Ring,
    how: How,
    life: String,
    /// The steps of this life so far, also those that were left out.
    steps: u64,
    lines: Vec<u8>,
    members: Members,
    /// After how many bytes of steps the state is hashed again.
    until_hash: usize,
    /// Whether the state is asked for and did not come yet.
    asked: bool,
    /// Whether steps are left out since the last one that was written.
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
            lines: Vec::new(),
            members: Members::default(),
            until_hash: FIRST,
            asked: false,
            gap: false,
        }
    }

    /// Writes until the end, or until it cannot.
    pub(super) fn run(mut self) {
        let mut items = Vec::new();
        while self.queue.take(&mut items) {
            let written = items.drain(..).try_for_each(|item| self.item(item));
            if let Err(error) = written.and_then(|()| self.flush()) {
                tracing::warn!("the recording ends here: {error}");
                break;
            }
        }
        self.queue.give_up();
    }

    fn item(&mut self, item: Item) -> Result<(), RingError> {
        let Item { now, agent, .. } = item;
        let commit = item.commit.as_ref();
        let outcome = Outcome {
            effects: item.effects,
            commit: commit.map(|(id, batch)| ContentHash::of_commit(*id, batch)),
            state: None,
        };
        match item.what {
            What::Begin(begin) => {
                let (config, saved) = *begin;
                let start = Start::Restore {
                    config: Box::new(config),
                    saved: Box::new(saved),
                    now,
                    outcome,
                };
                self.begin(start)?;
            }
            What::Step(input) => {
                self.steps += 1;
                let state = agent.as_deref().map(ContentHash::of);
                let outcome = Outcome { state, ..outcome };
                self.step(&Step {
                    now,
                    input,
                    outcome,
                })?;
            }
            What::Gap(steps) => {
                self.steps += steps;
                self.gap = true;
            }
        }
        match agent {
            Some(agent) => self.state(agent, now),
            None => Ok(()),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), RingError> {
        let before = self.lines.len();
        file::line(&mut self.lines, step, self.how).map_err(io::Error::from)?;
        let added = self.lines.len() - before;
        self.until_hash = self.until_hash.saturating_sub(added);
        match self.lines.len() > AT_ONCE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// The state came that was asked for.
    fn state(&mut self, agent: Box<Agent>, now: Now) -> Result<(), RingError> {
        self.flush()?;
        self.asked = false;
        self.until_hash = FIRST + FOR_EACH_ALLOC * agent.view().allocs().count();
        if self.gap || self.ring.is_enough() {
            self.begin(Start::Snapshot { agent, now })?;
        }
        memory::give_back();
        Ok(())
    }

    /// A new segment begins.
    fn begin(&mut self, start: Start) -> Result<(), RingError> {
        self.flush()?;
        let header = Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            life: self.life.clone(),
            step: self.steps,
            gap: core::mem::take(&mut self.gap),
            start,
        };
        self.ring.begin(&file::member_of(&header, self.how)?)
    }

    fn flush(&mut self) -> Result<(), RingError> {
        if !self.lines.is_empty() {
            let mut bytes = Vec::new();
            self.members.append(&mut bytes, &self.lines)?;
            self.lines.clear();
            self.gap |= !self.ring.append(&bytes)?;
        }
        if !self.asked && (self.gap || self.ring.is_enough() || self.until_hash == 0) {
            self.asked = true;
            self.queue.want_state();
        }
        Ok(())
    }
}
