//! What every part of the world goes by: time, chance, and what is on its way to the agent or happens later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::config::Timeouts;
use drover_core::op::Op;
use drover_core::time::{Instant, Now, Span, Timestamp};

use crate::check::Violation;
use crate::choice::Choices;
use crate::faults::{Fault, Faults};
use crate::inbox::{Delivery, Inbox, Source};
use crate::later::{Due, Later};
use crate::names::Names;
use crate::point::Point;
use crate::search::Scheduler;
use crate::trace::{Column, Trace, Way};

/// The boot clock when a machine has just started.
pub(crate) const BOOTED: Instant = Instant(1_000_000_000);

/// Time, chance, and what is on its way.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What chance decides.
    pub choices: Choices,
    /// What goes wrong.
    pub faults: Faults,
    /// What happened.
    pub trace: Trace,
    /// What everything is called.
    pub names: Names,
    pub(crate) scheduler: Scheduler,
    pub(crate) at: Instant,
    /// Time since the beginning, whatever the clocks say.
    pub(crate) elapsed: Span,
    pub(crate) wall_offset: i64,
    /// Whether the agent is to be called back because the wall clock was set.
    pub(crate) clock_was_set: bool,
    /// How often the wall's clock went otherwise than time.
    pub(crate) wall_jumps: u32,
    pub(crate) converging: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) life: u64,
    pub(crate) inbox: Inbox,
    pub(crate) later: BTreeMap<(Instant, u64), Due>,
    pub(crate) last_number: u64,
    /// What the agent that lives does not await any more.
    pub(crate) cancelled: BTreeSet<Op>,
    pub(crate) broken: Option<Violation>,
    /// Whose answers are slow, and until when, since the beginning.
    pub(crate) slow: (BTreeSet<Arc<str>>, Span),
}

impl Scene {
    pub(crate) fn new(seed: u64, timeouts: Timeouts) -> Scene {
        Scene {
            choices: Choices::new(seed),
            faults: Faults::none(),
            trace: Trace::default(),
            names: Names::default(),
            scheduler: Scheduler::default(),
            at: BOOTED,
            elapsed: Span::ZERO,
            wall_offset: 1_700_000_000_000_000_000,
            clock_was_set: false,
            wall_jumps: 0,
            converging: false,
            timeouts,
            life: 0,
            inbox: Inbox::default(),
            later: BTreeMap::new(),
            last_number: 0,
            cancelled: BTreeSet::new(),
            broken: None,
            slow: (BTreeSet::new(), Span::ZERO),
        }
    }

    /// The clocks.
    pub fn now(&self) -> Now {
        let at = i64::try_from(self.at.0).unwrap_or(i64::MAX);
        let wall = Timestamp(self.wall_offset.saturating_add(at));
        Now { at: self.at, wall }
    }

    /// Time passes, up to `to`.
    pub(crate) fn advance(&mut self, to: Instant) {
        self.elapsed.0 += (to - self.at).0;
        self.at = self.at.max(to);
    }

    /// The wall clock jumps.
    pub fn jump_wall(&mut self, by: Span) {
        self.wall_offset = self.wall_offset.saturating_add(by.0);
        self.wall_jumps += 1;
        self.clock_was_set = true;
        self.note(|| (Column::Agent, format!("the wall clock jumps by {by}")));
    }

    pub(crate) fn note(&mut self, write: impl FnOnce() -> (Column, String)) {
        self.trace.write(self.elapsed, Way::World, write);
    }

    pub(crate) fn violated(&mut self, invariant: &'static str, detail: String) {
        self.broken.get_or_insert(Violation { invariant, detail });
    }

    /// Whether `fault` happens to `entity` now.
    pub(crate) fn fires(&mut self, fault: Fault, entity: &str) -> bool {
        let fires = !self.converging && self.faults.fires(&mut self.choices, fault, entity);
        if fires {
            let write = || (Column::named(entity), format!("{fault}"));
            self.trace.write(self.elapsed, Way::Fault, write);
        }
        fires
    }

    /// How long something takes that the core awaits for `timeout`.
    pub(crate) fn latency(&mut self, entity: &str, timeout: Span) -> Span {
        let near = [
            Span::ZERO,
            Span::ZERO,
            Span::ZERO,
            Span::millis(1),
            Span::secs(1),
        ];
        let far = [
            Span(timeout.0 - 1),
            timeout,
            Span(timeout.0 + 1),
            Span::secs(3600),
        ];
        let grid: &[Span] = if self.converging {
            &near[..4]
        } else if self.is_slow(entity) || self.fires(Fault::SlowAnswer, entity) {
            &far
        } else {
            &near
        };
        let span = self.choices.one_of(grid, Point::Latency, entity);
        span.unwrap_or(Span::ZERO)
    }

    fn is_slow(&self, entity: &str) -> bool {
        let (who, until) = &self.slow;
        self.elapsed < *until && who.contains(entity)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Says `input`, which is about `entity`, to the agent from `at` on.
    pub(crate) fn deliver(&mut self, source: Source, at: Instant, entity: &Arc<str>, input: Input) {
        let delivery = Delivery {
            at,
            number: self.number(),
            rank: self.scheduler.rank(&mut self.choices, entity),
            entity: Arc::clone(entity),
            input,
        };
        self.inbox.push(source, delivery);
    }

    /// Says `input`, in answer to `op`, to the agent that asked.
    pub(crate) fn answer(
        &mut self,
        life: u64,
        op: Op,
        entity: &Arc<str>,
        timeout: Span,
        input: Input,
    ) {
        if life != self.life {
            return;
        }
        let at = self.at + self.latency(entity, timeout);
        if self.fires(Fault::DoubledAnswer, entity) {
            let again = self.at + self.latency(entity, timeout);
            self.deliver(Source::Answer(op, 1), again, entity, input.clone());
        }
        self.deliver(Source::Answer(op, 0), at, entity, input);
    }

    /// Does `what`, which is about `entity`, after `delay`.
    pub(crate) fn after(&mut self, delay: Span, entity: &Arc<str>, what: Later) {
        let due = Due {
            life: self.life,
            rank: self.scheduler.rank(&mut self.choices, entity),
            entity: Arc::clone(entity),
            what,
        };
        let number = self.number();
        self.later.insert((self.at + delay, number), due);
    }

    /// The machine starts again: the boot clock begins anew, and nothing goes on.
    pub(crate) fn rebooted(&mut self) {
        self.later.clear();
        let wall = self.now().wall;
        self.at = BOOTED;
        self.wall_offset = wall.0 - 1_000_000_000;
    }
}
