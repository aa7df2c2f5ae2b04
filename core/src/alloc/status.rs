//! The status of an allocation, from the states of its tasks.

use crate::model::alloc::{ClientStatus, TaskLife, TaskState};

/// The status and its reason. The first rule that fits holds, over all tasks, also those before
/// and after the main ones.
pub(super) fn of_tasks<'a>(
    tasks: impl Iterator<Item = &'a TaskState> + Clone,
) -> (ClientStatus, &'static str) {
    let any = |what: fn(&TaskState) -> bool| tasks.clone().any(what);
    if any(|task| task.state == TaskLife::Dead && task.failed) {
        (ClientStatus::Failed, "Failed tasks")
    } else if any(|task| task.state == TaskLife::Running) {
        (ClientStatus::Running, "Tasks are running")
    } else if any(|task| task.state == TaskLife::Pending) {
        (ClientStatus::Pending, "No tasks have started")
    } else {
        (ClientStatus::Complete, "All tasks have completed")
    }
}
