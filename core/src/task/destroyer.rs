//! Ending by force: asked for until the driver says that nothing is alive any more.
//!
//! The question is asked again after a pause that grows, also when the task counts as dead: one
//! attempt with a deadline would leave processes behind.

use serde::{Deserialize, Serialize};

use super::spec::TaskSpec;
use crate::cx::Cx;
use crate::effect::request;
use crate::ids::{LaunchId, TaskKey};
use crate::ledger::Haste;
use crate::op::Op;
use crate::operations::{Operation, Owner, Purpose};
use crate::time::{Instant, Span};

/// After so many tries nobody waits for the end of a kill any longer; trying goes on.
pub const TRIES_BEFORE_GIVING_UP: u32 = 5;

const LONGEST_PAUSE: Span = Span::secs(30);

/// The tries to destroy one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Destroyer {
    tries: u32,
    step: Step,
    /// Why the last try failed.
    pub last_error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Step {
    /// Not asked yet.
    #[default]
    Idle,
    /// The driver works on it.
    Asked(Op),
    /// The last try failed; the next one comes then.
    Pausing(Instant),
}

impl Destroyer {
    /// Asks the driver, unless it was asked already. What was decided before is saved first, so
    /// that a launch's end is never forgotten with its remains.
    pub(super) fn begin(
        &mut self,
        cx: &mut Cx<'_>,
        spec: &TaskSpec,
        launch: LaunchId,
        haste: Haste,
    ) {
        if self.step != Step::Idle {
            return;
        }
        let owner = Owner::Task(spec.key.clone());
        let op = cx.operation(owner, Purpose::Destroy, cx.config.timeouts.destroy);
        self.step = Step::Asked(op);
        let effect = request::Destroy { op, launch };
        cx.drive_after_save_within(&spec.driver, &spec.key, effect, haste);
    }

    /// The try whose answer is awaited.
    pub(super) fn awaited(&self) -> Option<Op> {
        match self.step {
            Step::Asked(op) => Some(op),
            Step::Idle | Step::Pausing(_) => None,
        }
    }

    /// Nothing of the launch is alive: no other try counts any more, and one that did not leave yet is not
    /// needed.
    pub(super) fn succeeded(&self, cx: &mut Cx<'_>, key: &TaskKey) {
        if let Some(op) = self.awaited() {
            cx.withdraw(op);
        }
        let owner = Owner::Task(key.clone());
        let tries = |one: &Operation| one.owner == owner && one.purpose == Purpose::Destroy;
        cx.shared.operations.end_all(tries);
    }

    /// The awaited try failed: the next one comes after a pause that grows.
    pub fn failed(&mut self, cx: &mut Cx<'_>, why: String) {
        self.tries = self.tries.saturating_add(1);
        let pause = Span::secs(1 << self.tries.min(10)).min(LONGEST_PAUSE);
        self.step = Step::Pausing(cx.now.at + cx.jittered(pause));
        self.last_error = Some(why);
    }

    /// Whether so many tries failed that nobody should wait for this.
    pub fn gave_up(&self) -> bool {
        self.tries >= TRIES_BEFORE_GIVING_UP
    }

    /// When [`Destroyer::handle_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.step {
            Step::Idle | Step::Asked(_) => None,
            Step::Pausing(until) => Some(until),
        }
    }

    /// A pause that is over ends.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self.step {
            Step::Pausing(until) if until <= now => self.step = Step::Idle,
            Step::Idle | Step::Asked(_) | Step::Pausing(_) => {}
        }
    }
}
