//! What a task is doing.

use std::sync::Arc;

use super::{RestartsLeft, TaskExplanation, Waiting, checks, wall};
use crate::agent::Agent;
use crate::agent::pending::{TaskWait, of_task};
use crate::alloc::runner::AllocRunner;
use crate::model::alloc::TaskLife;
use crate::model::event::{EventType, TaskEvent};
use crate::store::record::RestartBudget;
use crate::task::runner::TaskRunner;
use crate::time::{Now, Timestamp};

/// Of a task's events the one that led to the last, which says that it will be started again or not: the first
/// after its last run began, or after the last pause; if it never ran, the first that says more than what was done for
/// it. That its allocation is unhealthy follows from all that.
fn cause(events: &[Arc<TaskEvent>]) -> Option<&Arc<TaskEvent>> {
    let follows_from_it = |event: &Arc<TaskEvent>| event.kind == EventType::AllocUnhealthy;
    let own = events.iter().rposition(|event| !follows_from_it(event))?;
    let (last, before) = events.get(..=own)?.split_last()?;
    let follows = matches!(
        last.kind,
        EventType::Restarting | EventType::NotRestarting | EventType::Killed
    );
    let begins =
        |event: &Arc<TaskEvent>| matches!(event.kind, EventType::Started | EventType::Restarting);
    let first = match before.iter().rposition(begins) {
        Some(begun) => before.get(begun.checked_add(1)?)?,
        None => before.iter().find(|event| says_what_happened(event.kind))?,
    };
    follows.then_some(first)
}

/// Whether an event before a task's first run is more than a step on the way to it.
fn says_what_happened(kind: EventType) -> bool {
    match kind {
        EventType::Received
        | EventType::TaskSetup
        | EventType::DownloadingArtifacts
        | EventType::Driver
        | EventType::HookMessage
        | EventType::Template => false,
        EventType::SetupFailure
        | EventType::DriverFailure
        | EventType::FailedValidation
        | EventType::Started
        | EventType::Terminated
        | EventType::Killing
        | EventType::Killed
        | EventType::Restarting
        | EventType::NotRestarting
        | EventType::RestartSignaled
        | EventType::Signaling
        | EventType::FailedArtifactDownload
        | EventType::SiblingFailed
        | EventType::LeaderDead
        | EventType::MainDead
        | EventType::HookFailed
        | EventType::FailedRestoring
        | EventType::WaitingShutdownDelay
        | EventType::AllocUnhealthy
        | EventType::DiskExceeded => true,
    }
}

impl Agent {
    pub(super) fn explain_task(
        &self,
        now: Now,
        alloc: &AllocRunner,
        task: &TaskRunner,
    ) -> TaskExplanation {
        let state = task.state();
        let dead = state.state == TaskLife::Dead;
        let since = match state.state {
            TaskLife::Running => state.started_at,
            TaskLife::Dead => state.finished_at,
            TaskLife::Pending => None,
        };
        let last = state.events.last().cloned();
        let waiting = of_task(task).map(|wait| self.task_waits(now, task, wait));
        TaskExplanation {
            name: task.spec().key.task.clone(),
            state: state.state,
            failed: state.failed,
            since: since.or(last.as_ref().map(|event| event.time)),
            waiting: waiting.or_else(|| checks::restart_wait(now, alloc, task)),
            next: next(alloc, task),
            restarts: (!dead).then(|| restarts_left(task, now.wall)),
            last,
            cause: cause(&state.events).cloned(),
        }
    }

    fn task_waits(&self, now: Now, task: &TaskRunner, wait: TaskWait) -> Waiting {
        let what = match (wait, task.prestart_hook()) {
            (TaskWait::Services, _) => self.awaited_services(&task.spec().key),
            (TaskWait::Prestart, Some(hook)) => Some(format!("its prestart hook \"{hook}\"")),
            _ => None,
        };
        let what = what.unwrap_or_else(|| wait.to_string());
        let until = self.task_until(task);
        Waiting {
            what,
            until: until.map(|at| wall(now, at)),
            then: then(wait, until.is_some()).to_owned(),
        }
    }
}

/// What follows when a task's wait is over, which ends at a time or not.
fn then(wait: TaskWait, ends: bool) -> &'static str {
    match wait {
        TaskWait::Stage => "it is set up when the stages before its own are done",
        TaskWait::Services => "it starts; it waits as long as that takes",
        TaskWait::Identities => {
            "its setup goes on; servers that do not sign them are asked again, for as long as that takes"
        }
        TaskWait::Prestart if !ends => {
            "the next hook runs, and after the last one it starts; it waits as long as that takes"
        }
        TaskWait::Prestart => {
            "the next hook runs, and after the last one it starts; a hook that takes longer fails"
        }
        TaskWait::Start => "it runs; without an answer in time the start failed",
        TaskWait::Recovery => "it runs on if it is found, else its restart policy decides",
        TaskWait::ShutdownDelay => "it is asked to end",
        TaskWait::Deregistration => "it is asked to end, also if servers do not answer in time",
        TaskWait::Exit => "it is killed",
        TaskWait::Destroy => {
            "what follows its end is decided; a driver that is silent is asked again"
        }
        TaskWait::RestartDelay => "it starts again",
    }
}

/// What becomes of a task that waits for nothing.
fn next(alloc: &AllocRunner, task: &TaskRunner) -> &'static str {
    match task.state().state {
        TaskLife::Pending => "it starts after the other tasks ended",
        TaskLife::Running if alloc.is_ending() => {
            "it is asked to end when its turn comes: the leader is first, sidecars are last"
        }
        TaskLife::Running => "it runs until its process exits or it is asked to end",
        TaskLife::Dead if task.state().failed => {
            "it is not started again; the reschedule policy of its group decides what follows"
        }
        TaskLife::Dead => "it is done and not started again",
    }
}

fn restarts_left(task: &TaskRunner, now: Timestamp) -> RestartsLeft {
    let rules = task.spec().restart_rules();
    let RestartBudget { used, since, .. } = task.record().budget;
    let ends = since.map(|since| since + rules.interval);
    let renewed_at = ends.filter(|ends| now <= *ends && used > 0);
    let used = renewed_at.map_or(0, |_| used);
    RestartsLeft {
        attempts: rules.attempts,
        interval: rules.interval,
        left: rules.attempts.saturating_sub(used),
        renewed_at,
        mode: rules.mode,
    }
}
