//! The order in which the tasks of a group are ended: one piece of code for every reason.
//!
//! After the group's shutdown delay comes the leader, and the rest waits for its end; then the
//! others side by side; sidecars last. Poststop tasks are left alone, unless their allocation ran
//! out of its time.

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::model::task::Stage;
use crate::task::runner::{Kill, TaskRunner};
use crate::time::{Instant, Span};

/// A group that is being ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KillOrder {
    step: Step,
    reason: Option<String>,
    poststop_too: bool,
    /// Whether tasks do not wait for their shutdown delays.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(super) at_once: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Step {
    Delay(Instant),
    Leader,
    Others,
    Sidecars,
    Done,
}

impl KillOrder {
    /// Begins, with the group's shutdown delay unless it is zero.
    pub fn begin(cx: &Cx<'_>, delay: Span, reason: Option<String>, poststop_too: bool) -> Self {
        let step = if delay.is_zero() {
            Step::Leader
        } else {
            Step::Delay(cx.now.at + delay)
        };
        KillOrder {
            step,
            reason,
            poststop_too,
            at_once: false,
        }
    }

    /// Nothing waits for a shutdown delay from now on.
    pub(super) fn end_delay(&mut self) {
        self.at_once = true;
        if matches!(self.step, Step::Delay(_)) {
            self.step = Step::Leader;
        }
    }

    /// Goes as far as the tasks' ends allow. Returns whether anything follows from it: what was
    /// asked to end may be dead at once.
    pub fn advance(&mut self, cx: &mut Cx<'_>, tasks: &mut [TaskRunner]) -> bool {
        let dead = |tasks: &[TaskRunner]| tasks.iter().filter(|task| task.is_dead()).count();
        let dead_before = dead(tasks);
        if self.poststop_too {
            self.kill(cx, tasks, |task| task.spec().stage() == Stage::Poststop);
        }
        let before = self.step;
        loop {
            let next = match self.step {
                Step::Delay(until) if until <= cx.now.at => Step::Leader,
                Step::Delay(_) | Step::Done => break,
                Step::Leader => Step::Others,
                Step::Others => Step::Sidecars,
                Step::Sidecars => Step::Done,
            };
            let step = self.step;
            if !self.kill(cx, tasks, |task| Self::belongs(step, task)) {
                break;
            }
            self.step = next;
        }
        self.step != before || dead(tasks) != dead_before
    }

    fn belongs(step: Step, task: &TaskRunner) -> bool {
        let (leader, stage) = (task.spec().task().leader, task.spec().stage());
        if stage == Stage::Poststop {
            return false;
        }
        match step {
            Step::Delay(_) | Step::Done => false,
            Step::Leader => leader,
            Step::Others => !leader && !stage.is_sidecar(),
            Step::Sidecars => !leader && stage.is_sidecar(),
        }
    }

    /// Asks those that are meant to end, and returns whether all of them have.
    fn kill(
        &self,
        cx: &mut Cx<'_>,
        tasks: &mut [TaskRunner],
        meant: impl Fn(&TaskRunner) -> bool,
    ) -> bool {
        let mut all_dead = true;
        for task in tasks.iter_mut().filter(|task| meant(task)) {
            task.kill(
                cx,
                Kill {
                    reason: self.reason.clone(),
                    fails: false,
                    at_once: self.at_once,
                },
            );
            all_dead &= task.is_dead();
        }
        all_dead
    }

    /// When the group's shutdown delay is over.
    pub fn deadline(&self) -> Option<Instant> {
        match self.step {
            Step::Delay(until) => Some(until),
            Step::Leader | Step::Others | Step::Sidecars | Step::Done => None,
        }
    }
}
