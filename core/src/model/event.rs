//! Task events: the story of a task as people read it.
//!
//! Type strings, detail keys and display messages are those that users of Nomad know and
//! that their tools match on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// How many events of a task are kept; older ones are dropped, as in Nomad.
pub const MAX_EVENTS: usize = 10;

/// How the message of a [`EventType::RestartSignaled`] begins where a check asked for the restart.
pub const HEALTHCHECK: &str = "healthcheck: ";

/// What happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventType {
    /// The node took the task on.
    Received,
    /// The allocation could not be set up.
    #[serde(rename = "Setup Failure")]
    SetupFailure,
    /// The driver could not start the task.
    #[serde(rename = "Driver Failure")]
    DriverFailure,
    /// The driver does not accept the task's configuration.
    #[serde(rename = "Failed Validation")]
    FailedValidation,
    /// The task runs.
    Started,
    /// The task ended.
    Terminated,
    /// The task was asked to end.
    Killing,
    /// The task ended because it was asked to.
    Killed,
    /// The task will be started again.
    Restarting,
    /// The task will not be started again.
    #[serde(rename = "Not Restarting")]
    NotRestarting,
    /// Somebody asked for a restart.
    #[serde(rename = "Restart Signaled")]
    RestartSignaled,
    /// Somebody sends a signal.
    Signaling,
    /// The task's directory is made.
    #[serde(rename = "Task Setup")]
    TaskSetup,
    /// What the task needs is being fetched.
    #[serde(rename = "Downloading Artifacts")]
    DownloadingArtifacts,
    /// What the task needs could not be fetched.
    #[serde(rename = "Failed Artifact Download")]
    FailedArtifactDownload,
    /// Another task of the group failed.
    #[serde(rename = "Sibling Task Failed")]
    SiblingFailed,
    /// Something that only the driver knows.
    Driver,
    /// The group's leader ended.
    #[serde(rename = "Leader Task Dead")]
    LeaderDead,
    /// Only sidecars are left.
    #[serde(rename = "Main Tasks Dead")]
    MainDead,
    /// A step around the task's life failed.
    #[serde(rename = "Task hook failed")]
    HookFailed,
    /// A step around the task's life has something to say.
    #[serde(rename = "Task hook message")]
    HookMessage,
    /// After a restart of the agent the task could not be found again.
    #[serde(rename = "Failed Restoring Task")]
    FailedRestoring,
    /// The task waits before it is asked to end.
    #[serde(rename = "Waiting for shutdown delay")]
    WaitingShutdownDelay,
    /// The task does not become healthy.
    #[serde(rename = "Alloc Unhealthy")]
    AllocUnhealthy,
    /// A template of the task waits for something, or could not be rendered anew.
    Template,
    /// The directory of the task's allocation takes more than its group asked for.
    #[serde(rename = "Disk Resources Exceeded")]
    DiskExceeded,
}

impl EventType {
    /// The name that people and tools see.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Received => "Received",
            EventType::SetupFailure => "Setup Failure",
            EventType::DriverFailure => "Driver Failure",
            EventType::FailedValidation => "Failed Validation",
            EventType::Started => "Started",
            EventType::Terminated => "Terminated",
            EventType::Killing => "Killing",
            EventType::Killed => "Killed",
            EventType::Restarting => "Restarting",
            EventType::NotRestarting => "Not Restarting",
            EventType::RestartSignaled => "Restart Signaled",
            EventType::Signaling => "Signaling",
            EventType::TaskSetup => "Task Setup",
            EventType::DownloadingArtifacts => "Downloading Artifacts",
            EventType::FailedArtifactDownload => "Failed Artifact Download",
            EventType::SiblingFailed => "Sibling Task Failed",
            EventType::Driver => "Driver",
            EventType::LeaderDead => "Leader Task Dead",
            EventType::MainDead => "Main Tasks Dead",
            EventType::HookFailed => "Task hook failed",
            EventType::HookMessage => "Task hook message",
            EventType::FailedRestoring => "Failed Restoring Task",
            EventType::WaitingShutdownDelay => "Waiting for shutdown delay",
            EventType::AllocUnhealthy => "Alloc Unhealthy",
            EventType::Template => "Template",
            EventType::DiskExceeded => "Disk Resources Exceeded",
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TaskEvent {
    /// What kind.
    #[serde(rename = "Type")]
    pub kind: EventType,
    /// When.
    pub time: Timestamp,
    /// One line for people.
    pub display_message: String,
    /// The parts of it, for programs.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
    /// Whether this event makes the task a failed one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub fails_task: bool,
}

impl TaskEvent {
    /// An event without details.
    pub fn new(kind: EventType, time: Timestamp, message: impl Into<String>) -> TaskEvent {
        TaskEvent {
            kind,
            time,
            display_message: message.into(),
            details: BTreeMap::new(),
            fails_task: false,
        }
    }

    /// The same event with one more detail.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl ToString) -> TaskEvent {
        self.details.insert(key.to_owned(), value.to_string());
        self
    }

    /// The same event, making the task a failed one.
    #[must_use]
    pub fn fails_task(mut self) -> TaskEvent {
        self.fails_task = true;
        self.detail("fails_task", true)
    }

    /// The task was asked to end and is given `grace` to do so.
    pub fn killing(time: Timestamp, grace: Span, reason: Option<&str>) -> TaskEvent {
        let message = match reason {
            Some(reason) => reason.to_owned(),
            None => format!("Sent interrupt. Waiting {grace} before force killing"),
        };
        let event = TaskEvent::new(EventType::Killing, time, message).detail("kill_timeout", grace);
        match reason {
            Some(reason) => event.detail("kill_reason", reason),
            None => event,
        }
    }
}
