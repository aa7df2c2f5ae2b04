//! Ending by force: asked for until the driver says that nothing is alive any more.
//!
//! The question is asked again after a pause that grows, also when the task counts as dead: one
//! attempt with a deadline would leave processes behind.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::effect::DriverEffect;
use crate::ids::{LaunchId, TaskKey};
use crate::op::{Awaited, Op};
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
    Asked(Awaited),
    /// The last try failed; the next one comes then.
    Pausing(Instant),
}

impl Destroyer {
    /// Asks the driver, unless it was asked already. What was decided before is saved first, so
    /// that a launch's end is never forgotten with its remains.
    pub fn begin(&mut self, cx: &mut Cx<'_>, driver: &Arc<str>, key: &TaskKey, launch: LaunchId) {
        if self.step != Step::Idle {
            return;
        }
        let awaited = cx.awaited(cx.config.patience.destroy);
        self.step = Step::Asked(awaited);
        let effect = DriverEffect::Destroy {
            op: awaited.op,
            launch,
        };
        cx.drive_after_save(driver, key, effect);
    }

    /// Whether `op` is the try that is awaited.
    pub fn awaits(&self, op: Op) -> bool {
        matches!(self.step, Step::Asked(awaited) if awaited.op == op)
    }

    /// Nothing of the launch is alive: a further try that did not leave yet is not needed.
    pub fn succeeded(&self, cx: &mut Cx<'_>) {
        if let Step::Asked(awaited) = self.step {
            cx.shared.ledger.withdraw(awaited.op);
        }
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
    pub fn deadline(&self) -> Option<Instant> {
        match self.step {
            Step::Idle => None,
            Step::Asked(awaited) => Some(awaited.deadline),
            Step::Pausing(until) => Some(until),
        }
    }

    /// The try `op` left the agent: the driver's time begins now.
    pub fn left(&mut self, cx: &Cx<'_>, op: Op) {
        if let Step::Asked(awaited) = &mut self.step
            && awaited.op == op
        {
            awaited.deadline = cx.now.at + cx.config.patience.destroy;
        }
    }

    /// While the store cannot write, the driver was not asked yet, and is given its time later.
    pub fn wait_for_the_store(&mut self, cx: &Cx<'_>) {
        if let Step::Asked(awaited) = &mut self.step
            && awaited.deadline <= cx.now.at
            && cx.shared.ledger.holds(awaited.op)
        {
            awaited.deadline = cx.now.at + cx.config.patience.destroy;
        }
    }

    /// A try that is overdue has failed; a pause that is over ends.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        match self.step {
            Step::Asked(awaited) if awaited.deadline <= cx.now.at => {
                cx.count_overdue();
                self.failed(cx, "the driver did not answer".to_owned());
            }
            Step::Pausing(until) if until <= cx.now.at => self.step = Step::Idle,
            Step::Idle | Step::Asked(_) | Step::Pausing(_) => {}
        }
    }
}
