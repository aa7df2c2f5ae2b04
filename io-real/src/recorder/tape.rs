//! What the core's thread writes down, and how it is read: numbers in a row, and beside them what is
//! not made of numbers.
//!
//! Each thing that happens has a head (what it is, how many numbers it takes), its time, the numbers of
//! its input, and one for each effect. The time is how far both clocks moved since the thing before, in
//! one number; where that is too far, or nothing came before, it is two, the clocks themselves, and the
//! second one stands behind the input. Numbers are written to where they are read, and nothing is read
//! before it is whole.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::input::Input;
use drover_core::record::Mark;
use drover_core::record::mark::Kind;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Timestamp};

use super::page::Page;
use super::said::{self, MOST, Numbers, Said};

/// One more number, in a head; the lowest seven bits say what it is, the next one that its clocks are
/// whole.
const WHOLE_CLOCKS: u64 = 1 << 7;
const ONE_NUMBER: u64 = 1 << 8;

/// How many numbers a thing takes at most, but for its effects.
const STEP: usize = 2 + MOST;

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

/// There is no room on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageIsFull;

/// What happened since the last hand-over, and where it is written.
#[derive(Debug)]
pub(super) struct Tape {
    page: Arc<Page>,
    /// How much of the page may be read.
    handed: usize,
    /// Where the head of what happened last stands, or would.
    head: usize,
    /// Where the next number goes: behind the head while that is not written.
    at: usize,
    /// What the head is to say, but for the numbers.
    what: u64,
    /// When it happened.
    last: Now,
    beside: Vec<Beside>,
}

impl Tape {
    /// Begins on an empty page.
    pub(super) fn new(page: Arc<Page>) -> Tape {
        Tape {
            page,
            handed: 0,
            head: 0,
            at: 0,
            what: 0,
            last: Now::default(),
            beside: Vec::new(),
        }
    }

    /// The core is told something, or that its time has come. Something was [pushed](Tape::push)
    /// before, and whoever reads this has read that.
    #[inline]
    pub(super) fn step(&mut self, now: Now, input: Option<&Input>) -> Result<(), PageIsFull> {
        self.close();
        let places = self.page.places::<STEP>(self.at);
        let Some([_, clocks, places @ ..]) = places else {
            return Err(PageIsFull);
        };
        let (said, taken) = match input {
            None => (Said::Timeout, 0),
            Some(input) => said::write(places, input),
        };
        let (at, wall) = passed(self.last, now);
        clocks.store(at | wall << 32, Ordering::Relaxed);
        self.last = now;
        self.what = said as u64;
        self.at += 2 + taken;
        if (at | wall) >> 32 != 0 {
            self.clocks_are_whole(now);
        }
        if let (Said::Other, Some(input)) = (said, input) {
            self.keep(input);
        }
        Ok(())
    }

    /// Something happens that lies beside the numbers.
    #[cold]
    pub(super) fn push(&mut self, now: Now, beside: Beside) {
        self.close();
        self.last = now;
        self.what = Said::Other as u64;
        self.at += 2;
        self.clocks_are_whole(now);
        self.beside.push(beside);
    }

    /// An effect of what happened last.
    #[inline]
    pub(super) fn effect(&mut self, mark: Mark) -> Result<(), PageIsFull> {
        let Mark { kind, fingerprint } = mark;
        let number = (kind as u64) << Mark::BITS | fingerprint;
        if !self.page.put(self.at, number) {
            return Err(PageIsFull);
        }
        self.at += 1;
        Ok(())
    }

    /// What happened last is whole.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.at > self.head {
            let taken = count(self.at - self.head);
            self.page.put(self.head, self.what + taken * ONE_NUMBER);
            self.head = self.at;
        }
    }

    /// How many numbers are not handed over.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.at - self.handed
    }

    /// Whether something lies beside them.
    #[inline]
    pub(super) fn has_beside(&self) -> bool {
        !self.beside.is_empty()
    }

    /// Whether there is room for a step, without its effects.
    pub(super) fn is_roomy(&self) -> bool {
        self.at + STEP <= self.page.room()
    }

    /// What lies beside the numbers of all that is whole.
    pub(super) fn take_beside(&mut self) -> std::vec::Drain<'_, Beside> {
        let is_open = self.at > self.head;
        let is_beside = self.what % WHOLE_CLOCKS == Said::Other as u64;
        let whole = self.beside.len() - usize::from(is_open && is_beside);
        self.beside.drain(..whole)
    }

    /// Lets all that is whole be read.
    #[inline]
    pub(super) fn hand_over(&mut self) {
        self.page.publish(self.head);
        self.handed = self.head;
    }

    /// Goes on with an empty page, which has room for what is not whole and more.
    pub(super) fn turn(&mut self, page: Arc<Page>) {
        self.hand_over();
        self.at = page.take_over(&self.page, self.head, self.at);
        (self.page, self.handed, self.head) = (page, 0, 0);
    }

    /// How many numbers what is not whole takes so far.
    pub(super) fn open(&self) -> usize {
        self.at - self.head
    }

    /// Forgets what was not handed over.
    pub(super) fn forget(&mut self) {
        (self.head, self.at) = (self.handed, self.handed);
        self.beside.clear();
    }

    #[cold]
    fn clocks_are_whole(&mut self, now: Now) {
        self.what |= WHOLE_CLOCKS;
        self.page.put(self.head + 1, now.at.0);
        self.page.put(self.at, now.wall.0.cast_unsigned());
        self.at += 1;
    }

    #[cold]
    fn keep(&mut self, input: &Input) {
        self.beside.push(Beside::Input(Box::new(input.clone())));
    }
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(0)
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
            if length == 0 {
                return Err(Nonsense.into());
            }
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
    let clocks = numbers.next()?;
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
    let now = match head & WHOLE_CLOCKS {
        0 => after(last, clocks),
        _ => Now {
            at: Instant(clocks),
            wall: Timestamp(numbers.next()?.cast_signed()),
        },
    };
    let marks = core::iter::from_fn(|| numbers.next()).map(mark);
    let marks = marks.collect::<Option<Vec<Mark>>>()?;
    Some((now, what, marks))
}

/// How far both clocks moved is one number.
fn after(last: Now, clocks: u64) -> Now {
    let (at, wall) = (clocks & u64::from(u32::MAX), clocks >> 32);
    Now {
        at: Instant(last.at.0.wrapping_add(at)),
        wall: Timestamp(last.wall.0.wrapping_add(wall.cast_signed())),
    }
}

fn mark(both: u64) -> Option<Mark> {
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
    fn read(tape: &mut Tape, from: usize, reader: &mut Reader) -> (usize, Vec<(Now, usize)>) {
        tape.close();
        reader.beside.extend(tape.take_beside());
        tape.hand_over();
        let to = tape.page.read(from, &mut reader.numbers);
        let mut all = Vec::new();
        let read = reader.read(|now, _, marks| {
            all.push((now, marks.len()));
            Ok::<(), Nonsense>(())
        });
        assert_eq!(read, Ok(()));
        (to, all)
    }

    /// Clocks that stand, run, jump and go back; also where a gap is between two hand-overs.
    #[test]
    fn times_are_read_as_they_were_written() {
        let begin = || Beside::Input(Box::new(Input::Shutdown(ShutdownMode::KeepTasks)));
        let far = 1 << 32;
        let mut tape = Tape::new(Arc::new(Page::new()));
        let (mut reader, mut from) = (Reader::default(), 0);
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
                assert_eq!(tape.step(*now, None), Ok(()));
                let (kind, fingerprint) = (Kind::Index, 7);
                assert_eq!(tape.effect(Mark { kind, fingerprint }), Ok(()));
            }
            let expected: Vec<(Now, usize)> = turn
                .iter()
                .enumerate()
                .map(|(nth, now)| (*now, usize::from(nth > 0)))
                .collect();
            let (to, all) = read(&mut tape, from, &mut reader);
            from = to;
            assert_eq!(all, expected);
            // Nobody reads this.
            assert_eq!(tape.step(at(99, 99), None), Ok(()));
            tape.forget();
        }
    }
}
