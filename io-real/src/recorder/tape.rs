//! What the core's thread writes down, and how it is read: numbers in a row, and beside them what is
//! not made of numbers.
//!
//! Each thing that happens has a head (what it is, how many effects followed, how many numbers it
//! takes), two clocks, the numbers of its input, and one for each effect.

use std::collections::VecDeque;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::input::Input;
use drover_core::record::Mark;
use drover_core::record::mark::Kind;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Timestamp};

use super::said::{self, Numbers, Said};

/// One more effect, and one more number, in a head; the lowest eight bits say what it is.
const ONE_EFFECT: u64 = 1 << 8;
const ONE_NUMBER: u64 = 1 << 32;

/// How many numbers are many: no more than fit well into the fastest memory.
const LONG: usize = 512;

/// What does not consist of numbers.
#[derive(Debug)]
pub(super) enum Beside {
    /// An agent is restored.
    Begin(Box<(Config, Saved)>),
    /// A new segment begins here; `gap` says that steps before it are missing.
    Snapshot { agent: Box<Agent>, gap: bool },
    /// An input.
    Input(Box<Input>),
}

/// What happened since the last hand-over.
#[derive(Debug, Default)]
pub(super) struct Tape {
    pub(super) numbers: Vec<u64>,
    pub(super) beside: Vec<Beside>,
    /// Where the head of what happened last stands.
    head: usize,
}

impl Tape {
    /// The core is told something, or that its time has come.
    #[inline]
    pub(super) fn step(&mut self, now: Now, input: Option<&Input>) {
        self.begin(now);
        let said = match input {
            None => Said::Timeout,
            Some(input) => match said::write(&mut self.numbers, input) {
                Said::Other => self.keep(Beside::Input(Box::new(input.clone()))),
                said => said,
            },
        };
        self.close(said);
    }

    /// Something happens that lies beside the numbers.
    pub(super) fn push(&mut self, now: Now, beside: Beside) {
        self.begin(now);
        let said = self.keep(beside);
        self.close(said);
    }

    /// An effect of what happened last.
    #[inline]
    pub(super) fn effect(&mut self, mark: Mark) {
        let Mark { kind, fingerprint } = mark;
        if let Some(head) = self.numbers.get_mut(self.head) {
            *head += ONE_EFFECT + ONE_NUMBER;
            self.numbers.push((kind as u64) << Mark::BITS | fingerprint);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether it holds so much that it should not wait for more.
    pub(super) fn is_long(&self) -> bool {
        self.numbers.len() >= LONG || !self.beside.is_empty()
    }

    /// Forgets everything; the room that it took stays.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.beside.clear();
    }

    #[inline]
    fn begin(&mut self, now: Now) {
        self.head = self.numbers.len();
        let (at, wall) = (now.at.0, now.wall.0.cast_unsigned());
        self.numbers.extend_from_slice(&[0, at, wall]);
    }

    #[inline]
    fn close(&mut self, said: Said) {
        let taken = self.numbers.len() - self.head;
        if let Some(head) = self.numbers.get_mut(self.head) {
            *head = said as u64 + u64::try_from(taken).unwrap_or(0) * ONE_NUMBER;
        }
    }

    #[cold]
    fn keep(&mut self, beside: Beside) -> Said {
        self.beside.push(beside);
        Said::Other
    }
}

/// What came over from the core and was not read yet.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) numbers: Vec<u64>,
    pub(super) beside: VecDeque<Beside>,
}

/// What happened.
#[derive(Debug)]
pub(super) enum What {
    /// The core was told this; nothing if its time had come.
    Step(Option<Box<Input>>),
    /// See [`Beside::Begin`].
    Begin(Box<(Config, Saved)>),
    /// See [`Beside::Snapshot`].
    Snapshot { agent: Box<Agent>, gap: bool },
}

/// The numbers make no sense, which would be a mistake of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

impl Reader {
    /// Hands everything that is whole to `take`, in its order, with the marks of what followed.
    pub(super) fn read<E: From<Nonsense>>(
        &mut self,
        mut take: impl FnMut(Now, What, Vec<Mark>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut from = 0;
        while let Some(head) = self.numbers.get(from) {
            let length = usize::try_from(head / ONE_NUMBER).map_err(|_| Nonsense)?;
            let Some(numbers) = self.numbers.get(from..from + length) else {
                // The rest of it is not there yet.
                break;
            };
            let (now, what, marks) = thing(numbers, &mut self.beside).ok_or(Nonsense)?;
            take(now, what, marks)?;
            from += length;
        }
        self.numbers.drain(..from);
        Ok(())
    }
}

fn thing(numbers: &[u64], beside: &mut VecDeque<Beside>) -> Option<(Now, What, Vec<Mark>)> {
    let mut numbers = Numbers(numbers.iter());
    let head = numbers.next()?;
    let now = Now {
        at: Instant(numbers.next()?),
        wall: Timestamp(numbers.next()?.cast_signed()),
    };
    let said = Said::ALL.get(usize::try_from(head % ONE_EFFECT).ok()?)?;
    let what = match said {
        Said::Timeout => What::Step(None),
        Said::Other => match beside.pop_front()? {
            Beside::Input(input) => What::Step(Some(input)),
            Beside::Begin(begin) => What::Begin(begin),
            Beside::Snapshot { agent, gap } => What::Snapshot { agent, gap },
        },
        said => What::Step(Some(Box::new(numbers.input(*said)?))),
    };
    let effects = head % ONE_NUMBER / ONE_EFFECT;
    let marks = (0..effects).map(|_| mark(&mut numbers));
    let marks = marks.collect::<Option<Vec<Mark>>>()?;
    Some((now, what, marks))
}

fn mark(numbers: &mut Numbers<'_>) -> Option<Mark> {
    let both = numbers.next()?;
    let kind = usize::try_from(both >> Mark::BITS).ok()?;
    Some(Mark {
        kind: *Kind::ALL.get(kind)?,
        fingerprint: both & ((1 << Mark::BITS) - 1),
    })
}
