//! A stream of reports from outside: opened, listened to, and opened again when it ends.
//!
//! Nobody outside is trusted to answer: a stream that reports nothing after it was opened is given
//! up, one that ends is opened again, and one that ends again and again is waited for longer each
//! time. Reports of a stream that was given up are stale.

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::op::Op;
use crate::operations::{Owner, Purpose};
use crate::time::{Instant, Span};

/// The first pause before a stream is opened again that ended soon after the last time.
const FIRST_PAUSE: Span = Span::secs(5);

/// The longest pause.
const LONGEST_PAUSE: Span = Span::secs(120);

/// A stream that lived so long works: that it ended says nothing of the next one.
const STEADY: Span = Span::secs(60);

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// Opened, and nothing was heard yet.
    Opening(Op),
    /// It speaks.
    Open(Op),
    /// It is opened again then.
    Resting(Instant),
}

/// What is said of a stream that was opened and said nothing.
pub const SILENT: &str = "it sends nothing";

/// How far a stream is, for people to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was opened, and nothing was heard yet.
    Opening,
    /// It speaks.
    Open,
    /// It is opened again then.
    Resting(Instant),
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stream {
    state: State,
    /// How often it was opened since it last worked.
    tries: u32,
    /// When this one was first heard.
    reported_at: Option<Instant>,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            state: State::Resting(Instant(0)),
            tries: 0,
            reported_at: None,
        }
    }
}

impl Stream {
    /// It is opened now; returns the number that its news have to bear.
    pub fn open(&mut self, cx: &mut Cx<'_>, purpose: Purpose) -> Op {
        let op = cx.operation(Owner::Machine, purpose, cx.config.timeouts.first_report);
        self.state = State::Opening(op);
        self.tries = self.tries.saturating_add(1);
        self.reported_at = None;
        op
    }

    /// Whether news with this number are of the stream that is listened to.
    pub fn is(&self, op: Op) -> bool {
        match self.state {
            State::Opening(awaited) | State::Open(awaited) => awaited == op,
            State::Resting(_) => false,
        }
    }

    /// Something was heard.
    pub fn note_report(&mut self, cx: &Cx<'_>) {
        if let State::Opening(op) = self.state {
            self.state = State::Open(op);
            self.reported_at = Some(cx.now.at);
        }
    }

    /// It is over. Opened again at once if it worked until now, else after a pause that grows.
    pub fn ended(&mut self, cx: &mut Cx<'_>) {
        if let State::Opening(op) | State::Open(op) = self.state {
            cx.shared.operations.end(op);
        }
        let worked =
            (self.reported_at).is_some_and(|reported_at| cx.now.at - reported_at >= STEADY);
        if worked {
            self.tries = 0;
        }
        let pause = match self.tries {
            0 => Span::ZERO,
            tries => {
                let pause = FIRST_PAUSE.0.saturating_mul(1 << (tries - 1).min(10));
                cx.jittered(Span(pause.min(LONGEST_PAUSE.0)))
            }
        };
        self.state = State::Resting(cx.now.at + pause);
        self.reported_at = None;
    }

    /// The operation of which the first report are awaited, if they are.
    pub fn awaited(&self) -> Option<Op> {
        match self.state {
            State::Opening(op) => Some(op),
            State::Open(_) | State::Resting(_) => None,
        }
    }

    /// Whether it is to be opened now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.rests_until().is_some_and(|until| until <= now)
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Opening(_) => Phase::Opening,
            State::Open(_) => Phase::Open,
            State::Resting(until) => Phase::Resting(until),
        }
    }

    /// When it is opened again, if it is not open.
    pub fn rests_until(&self) -> Option<Instant> {
        match self.state {
            State::Resting(until) => Some(until),
            State::Opening(_) | State::Open(_) => None,
        }
    }
}
