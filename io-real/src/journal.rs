//! The agent's log of what happens to tasks and allocations: a line for each start, end, restart and
//! failure, for who had to give way to whom, and for what is garbage-collected, with whose it is in
//! fields of its own.
//!
//! Texts that come from tasks, drivers or addresses of artifacts may hold secrets, so of such events
//! only the kind is logged; the API shows them whole.

use drover_core::agent::View;
use drover_core::effect::{HookEffect, Notification};
use drover_core::ids::TaskKey;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::work::HookWork;
use tracing::{debug, info, warn};

/// The longest text of an event that is logged.
const MOST: usize = 300;

/// How much a kind of event matters to who runs the agent.
enum Weight {
    /// Somebody may have to do something.
    Failure,
    /// What a node is for.
    Life,
    /// A step on the way.
    Step,
}

/// Logs what is told of a task.
pub(crate) fn log_notification(view: View<'_>, notification: &Notification) {
    match notification {
        Notification::Event(task, event) => log(view, task, event),
        // Whoever sends it says so.
        Notification::Notice(_) | Notification::Index(_) => {}
    }
}

/// Logs work that is about a whole allocation.
pub(crate) fn hook(view: View<'_>, effect: &HookEffect) {
    let HookEffect::Run {
        alloc,
        work: HookWork::RemoveAllocDir(_),
        ..
    } = effect
    else {
        return;
    };
    match view.alloc(*alloc) {
        Some(known) => {
            let (job, group) = (&known.record().job.id, &known.record().group);
            info!(%job, %group, %alloc, "garbage-collecting the allocation");
        }
        None => info!(%alloc, "garbage-collecting the allocation"),
    }
}

fn log(view: View<'_>, key: &TaskKey, event: &TaskEvent) {
    let TaskKey { alloc, task } = key;
    let known = view.alloc(*alloc);
    let record = known.as_ref().map(|known| known.record());
    let job = record
        .map(|record| record.job.id.to_string())
        .unwrap_or_default();
    let group = record
        .map(|record| record.group.to_string())
        .unwrap_or_default();
    let kind = event.kind.as_str();
    let text = match event.kind {
        EventType::HookFailed => hook_failure(&event.display_message),
        kind if is_ours(kind) => shown(&event.display_message),
        _ => "",
    };
    let by = record.and_then(|record| record.preempted_by);
    if let (EventType::Killing, Some(by)) = (event.kind, by) {
        info!(%job, %group, %alloc, %task, preempted_by = %by, event = kind, "evicted: {text}");
        return;
    }
    match weight(event) {
        Weight::Failure => warn!(%job, %group, %alloc, %task, event = kind, "{text}"),
        Weight::Life => info!(%job, %group, %alloc, %task, event = kind, "{text}"),
        Weight::Step => debug!(%job, %group, %alloc, %task, event = kind, "{text}"),
    }
}

fn weight(event: &TaskEvent) -> Weight {
    match event.kind {
        EventType::SetupFailure
        | EventType::DriverFailure
        | EventType::FailedValidation
        | EventType::NotRestarting
        | EventType::FailedArtifactDownload
        | EventType::HookFailed
        | EventType::FailedRestoring
        | EventType::AllocUnhealthy => Weight::Failure,
        _ if event.fails_task => Weight::Failure,
        EventType::Started
        | EventType::Terminated
        | EventType::Killing
        | EventType::Killed
        | EventType::Restarting
        | EventType::RestartSignaled
        | EventType::Signaling
        | EventType::SiblingFailed
        | EventType::LeaderDead
        | EventType::MainDead
        | EventType::DiskExceeded => Weight::Life,
        EventType::Received
        | EventType::TaskSetup
        | EventType::DownloadingArtifacts
        | EventType::Driver
        | EventType::HookMessage
        | EventType::WaitingShutdownDelay
        | EventType::Template => Weight::Step,
    }
}

/// Whether the text of such an event is made by the agent alone.
fn is_ours(kind: EventType) -> bool {
    match kind {
        EventType::Received
        | EventType::Started
        | EventType::Terminated
        | EventType::Killing
        | EventType::Killed
        | EventType::Restarting
        | EventType::NotRestarting
        | EventType::RestartSignaled
        | EventType::Signaling
        | EventType::TaskSetup
        | EventType::SiblingFailed
        | EventType::LeaderDead
        | EventType::MainDead
        | EventType::FailedRestoring
        | EventType::WaitingShutdownDelay
        | EventType::AllocUnhealthy
        | EventType::DiskExceeded => true,
        EventType::SetupFailure
        | EventType::DriverFailure
        | EventType::FailedValidation
        | EventType::DownloadingArtifacts
        | EventType::FailedArtifactDownload
        | EventType::Driver
        | EventType::HookFailed
        | EventType::HookMessage
        | EventType::Template => false,
    }
}

/// Beginnings of what is said of hooks whose failures the agent puts into its own words. Those of others may have
/// what a template or a script says.
const OWN_FAILURES: [&str; 6] = [
    "devices: ",
    "dispatch_payload: ",
    "identity: ",
    "task_dir: ",
    "volumes: ",
    "No new token for identity ",
];

/// Why a hook failed, or where that is said.
fn hook_failure(text: &str) -> &str {
    let is_ours = OWN_FAILURES.iter().any(|own| text.starts_with(own));
    match is_ours {
        true => shown(text),
        false if text.starts_with("template: ") => "template: the events of the task say why",
        false => "the events of the task say why",
    }
}

fn shown(text: &str) -> &str {
    let end = text
        .char_indices()
        .nth(MOST)
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::hook_failure;

    #[test]
    fn cause_of_failed_hook_is_logged_unless_it_may_hold_secrets() {
        let full = "task_dir: no space left on device";
        assert_eq!(hook_failure(full), full);
        for text in [
            "template: line 1: \"hunter2\" is no number",
            "script hunter2 failed",
        ] {
            assert!(!hook_failure(text).contains("hunter2"), "{text}");
        }
    }
}
