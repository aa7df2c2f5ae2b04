//! Whose logs there are.

use std::sync::Arc;

use drover_core::agent::{AllocView, View};
use drover_core::ids::{AllocId, GroupName, JobKey, TaskName};
use drover_core::task::runner::TaskRunner;
use drover_core::text::glob_match;

use crate::agent_handle::{AgentHandle, AgentStopped};

/// A task whose logs are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) alloc: AllocId,
    pub(super) alloc_name: Arc<str>,
    pub(super) job: JobKey,
    pub(super) group: GroupName,
    pub(super) task: TaskName,
    /// How large a file of its logs may be, in bytes.
    pub(super) max_file_size: u64,
}

/// A task that has written logs, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) source: Source,
    /// Whether it writes nothing any more.
    pub(super) is_over: bool,
}

/// All tasks that were started, of jobs that these patterns mean; of all jobs if there are none.
///
/// # Errors
/// The agent has stopped.
pub(super) async fn all(
    agent: &AgentHandle,
    jobs: Arc<[String]>,
) -> Result<Vec<Found>, AgentStopped> {
    agent
        .ask(move |view: View<'_>| {
            let meant = |id: &str| jobs.is_empty() || jobs.iter().any(|it| glob_match(it, id));
            let allocs = view.allocs();
            let allocs = allocs.filter(|alloc| meant(&alloc.record().job.id));
            allocs.flat_map(of_alloc).collect()
        })
        .await
}

fn of_alloc(alloc: AllocView<'_>) -> Vec<Found> {
    let started = |task: &&TaskRunner| task.state().started_at.is_some();
    let tasks = alloc.tasks().iter().filter(started);
    let found = tasks.map(|task| {
        let record = alloc.record();
        let logs = task.spec().task().log_config.unwrap_or_default();
        let megabytes = u64::try_from(logs.max_file_size_mb).unwrap_or(0);
        Found {
            source: Source {
                alloc: record.id,
                alloc_name: record.name.clone(),
                job: record.job.clone(),
                group: record.group.clone(),
                task: task.spec().key.task.clone(),
                max_file_size: megabytes.saturating_mul(1 << 20),
            },
            is_over: record.finished || task.is_dead(),
        }
    });
    found.collect()
}
