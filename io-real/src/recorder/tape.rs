//! What the core's thread writes down, and how it is read: numbers in a row, and beside them what is
//! not made of numbers.
//!
//! Each thing that happens has a head (what it is, how many effects followed, how many numbers it
//! takes), its time, the numbers of its input, and one for each effect. The time is how far both
//! clocks moved since the thing before, in one number; where that is too far, or nothing came before,
//! it is two numbers, the clocks themselves.

use std::collections::VecDeque;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::input::Input;
use drover_core::record::Mark;
use drover_core::record::mark::Kind;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Timestamp};

use super::said::{self, Numbers, Said};

/// One more effect, and one more number, in a head; the lowest seven bits say what it is, the next
/// one that its clocks are whole.
const WHOLE_CLOCKS: u64 = 1 << 7;
const ONE_EFFECT: u64 = 1 << 8;
const ONE_NUMBER: u64 = 1 << 32;

/// How many numbers are many: no more than fit well into the fastest memory.
const LONG: usize = 128;

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
    /// When it happened.
    last: Now,
}

impl Tape {
    /// The core is told something, or that its time has come. Something was [pushed](Tape::push)
    /// before, and whoever reads this has read that.
    #[inline]
    pub(super) fn step(&mut self, now: Now, input: Option<&Input>) {
        let clocks = self.begin(now);
        let said = match input {
            None => Said::Timeout,
            Some(input) => match said::write(&mut self.numbers, input) {
                Said::Other => self.keep(Beside::Input(Box::new(input.clone()))),
                said => said,
            },
        };
        self.close(said, clocks);
    }

    /// Something happens that lies beside the numbers.
    pub(super) fn push(&mut self, now: Now, beside: Beside) {
        let clocks = self.begin_anew(now);
        let said = self.keep(beside);
        self.close(said, clocks);
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
        if !self.beside.is_empty() {
            self.beside.clear();
        }
    }

    /// Returns what the head says of the clocks.
    #[inline]
    fn begin(&mut self, now: Now) -> u64 {
        let (at, wall) = passed(self.last, now);
        if (at | wall) >> 32 != 0 {
            return self.begin_anew(now);
        }
        self.last = now;
        self.head = self.numbers.len();
        self.numbers.extend_from_slice(&[0, at | wall << 32]);
        0
    }

    #[cold]
    fn begin_anew(&mut self, now: Now) -> u64 {
        self.last = now;
        self.head = self.numbers.len();
        let (at, wall) = (now.at.0, now.wall.0.cast_unsigned());
        self.numbers.extend_from_slice(&[0, at, wall]);
        WHOLE_CLOCKS
    }

    #[inline]
    fn close(&mut self, said: Said, clocks: u64) {
        let taken = self.numbers.len() - self.head;
        if let Some(head) = self.numbers.get_mut(self.head) {
            *head = said as u64 + clocks + u64::try_from(taken).unwrap_or(0) * ONE_NUMBER;
        }
    }

    #[cold]
    fn keep(&mut self, beside: Beside) -> Said {
        self.beside.push(beside);
        Said::Other
    }
}

/// How far both clocks moved, the wall's forward or around.
#[inline]
fn passed(from: Now, to: Now) -> (u64, u64) {
    let wall = to.wall.0.wrapping_sub(from.wall.0).cast_unsigned();
    (to.at.0.wrapping_sub(from.at.0), wall)
}

/// What came over from the core and was not read yet.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) numbers: Vec<u64>,
    pub(super) beside: VecDeque<Beside>,
    /// When what was read last happened.
    last: Now,
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
            let thing = thing(numbers, self.last, &mut self.beside);
            let (now, what, marks) = thing.ok_or(Nonsense)?;
            self.last = now;
            take(now, what, marks)?;
            from += length;
        }
        self.numbers.drain(..from);
        Ok(())
    }
}

fn thing(
    numbers: &[u64],
    last: Now,
    beside: &mut VecDeque<Beside>,
) -> Option<(Now, What, Vec<Mark>)> {
    let mut numbers = Numbers(numbers.iter());
    let head = numbers.next()?;
    let now = clocks(&mut numbers, head & WHOLE_CLOCKS != 0, last)?;
    let said = Said::ALL.get(usize::try_from(head % WHOLE_CLOCKS).ok()?)?;
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

fn clocks(numbers: &mut Numbers<'_>, are_whole: bool, last: Now) -> Option<Now> {
    let first = numbers.next()?;
    let (at, wall) = match are_whole {
        true => (first, numbers.next()?.cast_signed()),
        false => (
            last.at.0.wrapping_add(first & u64::from(u32::MAX)),
            last.wall.0.wrapping_add((first >> 32).cast_signed()),
        ),
    };
    Some(Now {
        at: Instant(at),
        wall: Timestamp(wall),
    })
}

fn mark(numbers: &mut Numbers<'_>) -> Option<Mark> {
    let both = numbers.next()?;
    let kind = usize::try_from(both >> Mark::BITS).ok()?;
    Some(Mark {
        kind: *Kind::ALL.get(kind)?,
        fingerprint: both & ((1 << Mark::BITS) - 1),
    })
}

#[cfg(test)]
mod tests {
    use drover_core::input::ShutdownMode;

    use super::*;

    fn at(at: u64, wall: i64) -> Now {
        Now {
            at: Instant(at),
            wall: Timestamp(wall),
        }
    }

    /// What is read of what was written, piece by piece.
    fn read(tape: &mut Tape, reader: &mut Reader) -> Vec<(Now, usize)> {
        let mut all = Vec::new();
        reader.numbers.append(&mut tape.numbers);
        reader.beside.extend(tape.beside.drain(..));
        let read = reader.read(|now, _, marks| {
            all.push((now, marks.len()));
            Ok::<(), Nonsense>(())
        });
        assert_eq!(read, Ok(()));
        all
    }

    /// Clocks that stand, run, jump and go back; also where a gap is between two hand-overs.
    #[test]
    fn times_are_read_as_they_were_written() {
        let begin = || Beside::Input(Box::new(Input::Shutdown(ShutdownMode::KeepTasks)));
        let far = 1 << 32;
        let (mut tape, mut reader) = (Tape::default(), Reader::default());
        let times = [
            at(5, 1_700_000_000_000_000_000),
            at(5, 1_700_000_000_000_000_000),
            at(6, 1_700_000_000_000_000_009),
            at(
                6 + far - 1,
                1_700_000_000_000_000_009 + far.cast_signed() - 1,
            ),
            at(6 + far + far, 1_700_000_010_000_000_000),
            at(7 + far + far, 1_699_999_999_000_000_000),
            at(8 + far + far, 1_699_999_998_999_999_999),
            at(3, -1),
            at(u64::MAX, i64::MIN),
            at(0, i64::MAX),
        ];
        for turn in [&times[..4], &times[4..]] {
            tape.push(turn[0], begin());
            for now in &turn[1..] {
                tape.step(*now, None);
                tape.effect(Mark {
                    kind: Kind::Index,
                    fingerprint: 7,
                });
            }
            let expected: Vec<(Now, usize)> = turn
                .iter()
                .enumerate()
                .map(|(nth, now)| (*now, usize::from(nth > 0)))
                .collect();
            assert_eq!(read(&mut tape, &mut reader), expected);
            // Nobody reads this.
            tape.step(at(99, 99), None);
            tape.clear();
        }
    }
}
