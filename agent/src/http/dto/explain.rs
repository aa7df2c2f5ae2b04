//! What jobs, allocations and tasks are doing, and why.

use drover_core::agent::{
    AllocExplanation, JobExplanation, RestartsLeft, TaskExplanation, Waiting,
};
use drover_core::model::policy::RestartMode;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::TaskEventDto;

/// Something that is awaited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WaitingDto {
    /// What, and who holds it.
    pub what: String,
    /// Until when; missing for as long as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// What happens then, or if it does not come until then.
    pub then: String,
}

impl From<Waiting> for WaitingDto {
    fn from(waiting: Waiting) -> WaitingDto {
        WaitingDto {
            what: waiting.what,
            until: waiting.until.map(|at| at.0),
            then: waiting.then,
        }
    }
}

/// What is left of a task's restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RestartsLeftDto {
    /// How often it may be started again in one interval.
    pub attempts: u32,
    /// The length of one interval, in nanoseconds.
    pub interval: i64,
    /// How often it may be started again until the interval ends.
    pub left: u32,
    /// When all attempts are there again; missing if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<i64>,
    /// `fail` or `delay`: what happens when none is left.
    pub mode: String,
}

impl From<RestartsLeft> for RestartsLeftDto {
    fn from(left: RestartsLeft) -> RestartsLeftDto {
        let mode = match left.mode {
            RestartMode::Fail => "fail",
            RestartMode::Delay => "delay",
        };
        RestartsLeftDto {
            attempts: left.attempts,
            interval: left.interval.0,
            left: left.left,
            renewed_at: left.renewed_at.map(|at| at.0),
            mode: mode.to_owned(),
        }
    }
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskExplanationDto {
    /// Its name.
    pub name: String,
    /// `pending`, `running` or `dead`.
    pub state: String,
    /// Whether it failed.
    pub failed: bool,
    /// Since when that is so; 0 if that is not known.
    pub since: i64,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingDto>,
    /// What becomes of it where it waits for nothing.
    pub next: String,
    /// What is left of its restarts; missing once it ended for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<RestartsLeftDto>,
    /// What happened last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event: Option<TaskEventDto>,
    /// Why its last run ended, where the last event only says what follows from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<TaskEventDto>,
}

impl From<TaskExplanation> for TaskExplanationDto {
    fn from(task: TaskExplanation) -> TaskExplanationDto {
        TaskExplanationDto {
            name: task.name.to_string(),
            state: task.state.as_str().to_owned(),
            failed: task.failed,
            since: nanos(task.since),
            waiting: task.waiting.map(WaitingDto::from),
            next: task.next.to_owned(),
            restarts: task.restarts.map(RestartsLeftDto::from),
            last_event: task.last.map(TaskEventDto::Shared),
            cause: task.cause.map(TaskEventDto::Shared),
        }
    }
}

/// An allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocExplanationDto {
    /// Its id.
    #[serde(rename = "ID")]
    pub id: String,
    /// `job.group[index]`.
    pub name: String,
    /// The version of its job.
    pub job_version: u64,
    /// `pending`, `running` and so on.
    pub client_status: String,
    /// Why it is that.
    pub client_description: String,
    /// `run`, `stop` or `evict`.
    pub desired_status: String,
    /// Why that is wanted.
    pub desired_description: String,
    /// Who placed it, where the node has servers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placed_by: String,
    /// When it last changed.
    pub since: i64,
    /// The allocation that replaced it; empty if none.
    pub next_allocation: String,
    /// What it waits for itself.
    pub waiting: Vec<WaitingDto>,
    /// What becomes of it where it waits for nothing.
    pub next: String,
    /// What of the machine keeps its tasks from running: its ports, and who listens at them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
    /// Its tasks, in the order of the job file.
    pub tasks: Vec<TaskExplanationDto>,
}

impl From<AllocExplanation> for AllocExplanationDto {
    fn from(alloc: AllocExplanation) -> AllocExplanationDto {
        let next = alloc.replaced_by.map(|id| id.to_string());
        AllocExplanationDto {
            id: alloc.id.to_string(),
            name: alloc.name,
            job_version: alloc.version,
            client_status: alloc.status.to_owned(),
            client_description: alloc.description,
            desired_status: alloc.desired.to_owned(),
            desired_description: alloc.desired_description,
            placed_by: alloc.placed_by.to_owned(),
            since: alloc.since.0,
            next_allocation: next.unwrap_or_default(),
            waiting: alloc.waiting.into_iter().map(WaitingDto::from).collect(),
            next: alloc.next.to_owned(),
            obstacles: Vec::new(),
            tasks: (alloc.tasks.into_iter())
                .map(TaskExplanationDto::from)
                .collect(),
        }
    }
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobExplanationDto {
    /// Its id.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its namespace.
    pub namespace: String,
    /// `pending`, `running` or `dead`.
    pub status: String,
    /// Its latest version.
    pub version: u64,
    /// When that was submitted.
    pub submit_time: i64,
    /// Whether somebody asked it to stop.
    pub stop: bool,
    /// The roll-out of the latest version, in words; empty if it has none.
    pub deployment: String,
    /// What it waits for.
    pub waiting: Vec<WaitingDto>,
    /// What becomes of it where it waits for nothing.
    pub next: String,
    /// Its allocations that are not over, and the newest one of each copy.
    pub allocations: Vec<AllocExplanationDto>,
}

impl From<JobExplanation> for JobExplanationDto {
    fn from(job: JobExplanation) -> JobExplanationDto {
        JobExplanationDto {
            id: job.key.id.to_string(),
            namespace: job.key.namespace.to_string(),
            status: job.status.to_owned(),
            version: job.version,
            submit_time: job.submitted.0,
            stop: job.stopped,
            deployment: job.deployment.unwrap_or_default(),
            waiting: job.waiting.into_iter().map(WaitingDto::from).collect(),
            next: job.next.to_owned(),
            allocations: (job.allocs.into_iter())
                .map(AllocExplanationDto::from)
                .collect(),
        }
    }
}

fn nanos(time: Option<Timestamp>) -> i64 {
    time.map_or(0, |time| time.0)
}
