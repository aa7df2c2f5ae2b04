//! What operators are told of at once: the nouns. [`crate::notice`] says when.

use core::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, DeploymentId, GroupName, JobKey, TaskName};
use crate::text::quote;
use crate::time::Timestamp;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A task failed and is not started again, or an allocation failed as a whole.
    Failed,
    /// The kernel killed a task for its memory, whatever its restart policy makes of that.
    OomKilled,
    /// An allocation of a roll-out did not become healthy, or a check fails.
    Unhealthy,
    /// A check that failed passes again.
    Healthy,
    /// A roll-out succeeded.
    Deployed,
    /// A roll-out failed.
    DeploymentFailed,
    /// An allocation ends for one of higher priority.
    Preempted,
    /// What an allocation ran was lost.
    Lost,
    /// Nothing of a job runs or will run: it is complete, failed or stopped.
    JobDead,
    /// The disk is fuller than the limits of garbage collection allow.
    DiskPressure,
    /// It is not any more.
    DiskPressureOver,
}

impl Event {
    /// Every kind.
    pub const ALL: [Event; 11] = [
        Event::Failed,
        Event::OomKilled,
        Event::Unhealthy,
        Event::Healthy,
        Event::Deployed,
        Event::DeploymentFailed,
        Event::Preempted,
        Event::Lost,
        Event::JobDead,
        Event::DiskPressure,
        Event::DiskPressureOver,
    ];

    /// The name in configurations and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::Failed => "failed",
            Event::OomKilled => "oom_killed",
            Event::Unhealthy => "unhealthy",
            Event::Healthy => "healthy",
            Event::Deployed => "deployed",
            Event::DeploymentFailed => "deployment_failed",
            Event::Preempted => "preempted",
            Event::Lost => "lost",
            Event::JobDead => "job_dead",
            Event::DiskPressure => "disk_pressure",
            Event::DiskPressureOver => "disk_pressure_over",
        }
    }

    /// What happened, between the name of whom it happened to and the reason.
    pub fn happened(self) -> &'static str {
        match self {
            Event::Failed => "failed",
            Event::OomKilled => "ran out of memory",
            Event::Unhealthy => "is unhealthy",
            Event::Healthy => "is healthy again",
            Event::Deployed => "is deployed",
            Event::DeploymentFailed => "could not be deployed",
            Event::Preempted => "is preempted",
            Event::Lost => "is lost",
            Event::JobDead => "is dead",
            Event::DiskPressure => "is under disk pressure",
            Event::DiskPressureOver => "is no longer under disk pressure",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that operators are told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Notice {
    /// The same whenever the same is told again, and never that of something else.
    pub id: String,
    /// What kind of thing happened.
    pub event: Event,
    /// When.
    pub time: Timestamp,
    /// To whom; nothing of this is there where it happened to the node.
    pub subject: Subject,
    /// How the task's last run ended, where that is what happened.
    pub exit: Option<Exit>,
    /// Why, in a few words without secrets.
    pub reason: String,
    /// All of it in one line, for people.
    pub text: String,
}

/// To whom something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// Which job.
    pub job: Option<JobKey>,
    /// Which version of it.
    pub version: Option<u64>,
    /// Which group of it.
    pub group: Option<GroupName>,
    /// Which allocation.
    pub alloc: Option<AllocId>,
    /// Its name, as people read it.
    pub alloc_name: Option<Arc<str>>,
    /// Which task.
    pub task: Option<TaskName>,
    /// Which roll-out.
    pub deployment: Option<DeploymentId>,
}

/// How a run of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, where it is known.
    pub code: Option<i64>,
    /// The signal that ended it; 0 for none.
    pub signal: i64,
}

impl Notice {
    /// A check of this service and name, as the job file has them, began to fail, or passes again.
    pub fn check(fails: bool, names: (&str, &str), subject: Subject, time: Timestamp) -> Notice {
        let (service, check) = (quote(names.0), quote(names.1));
        let (event, how) = match fails {
            true => (Event::Unhealthy, "fails"),
            false => (Event::Healthy, "passes again"),
        };
        let reason = format!("check {check} of service {service} {how}");
        let alloc = subject.alloc.unwrap_or_default();
        let name = subject.alloc_name.as_deref().unwrap_or_default();
        Notice {
            id: format!("{event}/{alloc}/{service}/{check}/{}", time.0),
            event,
            time,
            exit: None,
            text: format!("Allocation {name} {}: {reason}", event.happened()),
            subject,
            reason,
        }
    }

    /// The disk became fuller than its limits, or is no longer. How many percent of its bytes and its
    /// inodes are used.
    pub fn disk(exceeded: bool, percent: (u8, u8), time: Timestamp) -> Notice {
        let (bytes, inodes) = percent;
        let event = match exceeded {
            true => Event::DiskPressure,
            false => Event::DiskPressureOver,
        };
        let reason =
            format!("{bytes} percent of its bytes and {inodes} percent of its inodes are used");
        Notice {
            id: format!("{event}/{}", time.0),
            event,
            time,
            subject: Subject::default(),
            exit: None,
            text: format!("The disk of the allocations {}: {reason}", event.happened()),
            reason,
        }
    }
}
