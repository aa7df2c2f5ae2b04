//! The way to the end: for good, or to start again.
//!
//! A driver that never answers a stop is not noticed as such: the grace ends the wait, and force
//! follows.

use super::runner::{Kill, Phase, Stop, TaskRunner};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect, request};
use crate::ids::LaunchId;
use crate::model::event::{EventType, TaskEvent};
use crate::operations::Purpose;
use crate::time::Span;

/// How long a task runs on for servers that do not answer that its services are gone.
const PATIENCE: Span = Span::secs(5);

impl TaskRunner {
    /// The task shall end for good. Asking again changes nothing.
    pub fn kill(&mut self, cx: &mut Cx<'_>, kill: Kill) {
        if self.kill.is_some() || self.is_dead() {
            return;
        }
        if self.record.state.finished_at.is_none() {
            let event = TaskEvent::killing(cx.now.wall, self.grace(cx), kill.reason.as_deref());
            self.push(
                cx,
                if kill.fails {
                    event.fails_task()
                } else {
                    event
                },
            );
        }
        let with_delay = !kill.at_once;
        self.kill = Some(kill);
        let grace = self.grace(cx);
        match &self.phase {
            Phase::Waiting | Phase::Pausing(_) => self.set_dead(cx),
            Phase::Preparing(pipeline) => match pipeline.awaited() {
                None => self.set_dead(cx),
                Some(op) => {
                    let limit = cx.config.timeouts.hook;
                    cx.shared.operations.shorten_deadline(cx.now.at, op, limit);
                    cx.send(Effect::Hook(HookEffect::Cancel { op }));
                }
            },
            // What never left never happens.
            Phase::Starting(op) if cx.withdraw(*op) => self.unlaunch(cx),
            // A driver that hangs gets as long as a process would.
            Phase::Starting(op) | Phase::Recovering(op) => {
                cx.shared.operations.shorten_deadline(cx.now.at, *op, grace);
            }
            Phase::Running => self.begin_stop(cx, with_delay),
            Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Dead(_) => {}
        }
    }

    /// The start that was decided never left the agent: it is as if it had not been decided.
    fn unlaunch(&mut self, cx: &mut Cx<'_>) {
        self.edit().launch = None;
        self.set_dead(cx);
    }

    /// The group of this task ends, though its own turn to end may come later: a start that did
    /// not leave the agent yet never leaves. One that left goes its way.
    pub fn take_back_start(&mut self, cx: &mut Cx<'_>) {
        let Phase::Starting(op) = &self.phase else {
            return;
        };
        if !cx.withdraw(*op) {
            return;
        }
        let record = self.edit();
        record.launch = None;
        record.restarting = false;
        record.unhealthy = false;
        self.phase = Phase::Waiting;
        self.save(cx);
    }

    /// The task shall end and start again, at no cost to its budget. `false` if it does not run.
    pub fn restart(&mut self, cx: &mut Cx<'_>, reason: &str) -> bool {
        self.end_to_restart(cx, reason, false)
    }

    /// The task shall end and start again as its restart policy says, because a check of it fails. One that ends
    /// anyway goes its way.
    pub fn restart_unhealthy(&mut self, cx: &mut Cx<'_>, reason: &str) {
        if matches!(self.phase, Phase::Running) && !self.is_ending() {
            self.end_to_restart(cx, reason, true);
        }
    }

    fn end_to_restart(&mut self, cx: &mut Cx<'_>, reason: &str, unhealthy: bool) -> bool {
        let runs = match &self.phase {
            Phase::Running | Phase::Starting(_) | Phase::Recovering(_) => true,
            Phase::Waiting
            | Phase::Preparing(_)
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => false,
        };
        if !runs || self.kill.is_some() {
            return false;
        }
        let event = TaskEvent::new(EventType::RestartSignaled, cx.now.wall, reason)
            .detail("restart_reason", reason);
        let record = self.edit();
        record.restarting = true;
        record.unhealthy = unhealthy;
        self.push(cx, event);
        if matches!(self.phase, Phase::Running) {
            self.begin_stop(cx, false);
        }
        true
    }

    pub(super) fn grace(&self, cx: &Cx<'_>) -> Span {
        self.spec.kill_timeout(cx.config.max_kill_timeout)
    }

    /// Asks the running process to end, after its shutdown delay if it is for good.
    pub(super) fn begin_stop(&mut self, cx: &mut Cx<'_>, with_delay: bool) {
        self.forget_scripts(cx);
        let delay = self.spec.task().shutdown_delay;
        if with_delay && !delay.is_zero() {
            let message = format!("Waiting for shutdown_delay of {delay} before killing the task.");
            self.event(cx, EventType::WaitingShutdownDelay, &message);
            self.phase = Phase::Delaying(cx.now.at + delay);
            return;
        }
        self.ask_to_stop(cx);
    }

    /// It waits for its shutdown delay no longer, nor will it once its start is answered.
    pub fn end_delay(&mut self, cx: &mut Cx<'_>) {
        if let Some(kill) = &mut self.kill {
            kill.at_once = true;
        }
        if matches!(self.phase, Phase::Delaying(_)) {
            self.ask_to_stop(cx);
        }
    }

    /// Asks it to end when its services are gone at the servers of the cluster: nobody is sent to one that ends.
    pub(super) fn ask_to_stop(&mut self, cx: &mut Cx<'_>) {
        let key = &self.spec.key;
        match cx.shared.announced.may_have(key) {
            true => self.phase = Phase::Deregistering(cx.now.at + PATIENCE),
            false => self.send_stop(cx),
        }
    }

    /// Its services may be gone at the servers. Returns whether it was asked to end for that.
    pub fn end_deregistered(&mut self, cx: &mut Cx<'_>) -> bool {
        let waits = matches!(self.phase, Phase::Deregistering(_));
        let over = waits && !cx.shared.announced.holds_up(&self.spec.key);
        if over {
            self.send_stop(cx);
        }
        over
    }

    pub(super) fn send_stop(&mut self, cx: &mut Cx<'_>) {
        let Some(launch) = self.launch_id() else {
            return;
        };
        let grace = self.grace(cx);
        let op = self.operation(cx, Purpose::Stop, grace);
        let signal = self.spec.task().kill_signal.clone();
        let effect = request::Stop {
            op,
            launch,
            signal,
            grace,
        };
        cx.drive_after_save(&self.spec.driver, &self.spec.key, effect);
        self.phase = Phase::Stopping(Stop::Asked(op));
    }

    fn launch_id(&self) -> Option<LaunchId> {
        self.record.launch.as_ref().map(|launch| launch.id)
    }

    /// A kill ends even if the driver does not: what is left stays remembered and is tried on.
    pub(super) fn stop_waiting_for_destroy(&mut self, cx: &mut Cx<'_>) {
        let Phase::Cleaning(destroyer) = &self.phase else {
            return;
        };
        if self.kill.is_none() || !destroyer.gave_up() {
            return;
        }
        let destroyer = destroyer.clone();
        let why = destroyer.last_error.clone().unwrap_or_default();
        let event = TaskEvent::new(EventType::Killed, cx.now.wall, &why).detail("kill_error", &why);
        self.push(cx, event);
        self.set_dead(cx);
        self.phase = Phase::Dead(destroyer);
    }
}
