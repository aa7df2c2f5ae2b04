//! An allocation as people ask about it: one that is here, or the record of one whose directory was
//! garbage-collected.

use std::sync::Arc;

use super::View;
use crate::alloc::runner::AllocRunner;
use crate::ids::{AllocId, TaskName};
use crate::model::alloc::{DriverNetwork, TaskState};
use crate::model::job::Job;
use crate::store::collected::CollectedAlloc;
use crate::store::record::AllocRecord;

/// The place of an allocation among all that can be shown: those with a directory come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShownKey {
    pub(super) collected: bool,
    pub(super) id: AllocId,
}

/// An allocation to show.
#[derive(Clone, Copy, Debug)]
pub enum ShownAlloc<'a> {
    /// One with a runner and a directory.
    Here(&'a AllocRunner),
    /// The record of one that had them, and the version of the job that it ran.
    Collected(&'a Arc<CollectedAlloc>, &'a Arc<Job>),
}

impl<'a> ShownAlloc<'a> {
    /// What is wanted of it and what became of it.
    pub fn record(self) -> &'a AllocRecord {
        match self {
            ShownAlloc::Here(alloc) => alloc.record(),
            ShownAlloc::Collected(record, _) => &record.alloc,
        }
    }

    /// The version of the job that it runs, or ran.
    pub fn job(self) -> &'a Arc<Job> {
        match self {
            ShownAlloc::Here(alloc) => alloc.job(),
            ShownAlloc::Collected(_, job) => job,
        }
    }

    /// Its tasks' states.
    pub fn tasks(self) -> Vec<(&'a TaskName, &'a TaskState)> {
        match self {
            ShownAlloc::Here(alloc) => {
                let tasks = alloc.tasks().iter();
                tasks
                    .map(|task| (&task.spec().key.task, task.state()))
                    .collect()
            }
            ShownAlloc::Collected(record, _) => record.tasks.iter().collect(),
        }
    }

    /// What the driver knows of a task's network, while that has a launch.
    pub fn network(self, task: &TaskName) -> Option<&'a DriverNetwork> {
        match self {
            ShownAlloc::Here(alloc) => alloc.task(task)?.network(),
            ShownAlloc::Collected(..) => None,
        }
    }

    /// What is done or awaited before its tasks have their turn, in words.
    pub fn waits_for(self, view: View<'a>) -> Option<String> {
        match self {
            ShownAlloc::Here(alloc) => view.waits_for(alloc),
            ShownAlloc::Collected(..) => None,
        }
    }

    /// Whether its directory is gone.
    pub fn is_collected(self) -> bool {
        matches!(self, ShownAlloc::Collected(..))
    }
}
