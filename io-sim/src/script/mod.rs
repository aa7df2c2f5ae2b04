//! A run as data: jobs, what people do, what goes wrong, and how the next one is picked. Data can be
//! written to a file, played again anywhere, and made smaller.

mod run;
mod shrink;

use drover_core::claims::resources::Amounts;
use drover_core::input::ShutdownMode;
use drover_core::model::job::Job;
use drover_core::model::template::Wait;
use drover_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::choice::Overrides;
use crate::faults::Faults;
use crate::search::Search;

pub use run::{Ran, Watch};
pub use shrink::{Shrunk, shrink};

/// Everything that decides how a run goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Decides whatever nothing else decides.
    pub seed: u64,
    /// What is decided otherwise than the seed says.
    #[serde(default)]
    pub overrides: Overrides,
    /// How the next one is picked.
    pub search: Search,
    /// What goes wrong.
    pub faults: Faults,
    /// The jobs that acts speak of, by their ids.
    pub jobs: Vec<Job>,
    /// What people do, in this order.
    pub acts: Vec<Act>,
    /// How long the trouble lasts after the last act.
    pub then: Span,
    /// What the machine has of counted resources, if that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<Amounts>,
}

/// One thing that somebody does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// How much time passes before it.
    pub pause: Span,
    /// How many things happen at that instant before it, if so many do.
    pub steps: u32,
    /// What is done.
    pub what: What,
}

/// What people do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A job is handed in, as it is or after a change.
    Register {
        /// Which.
        job: String,
        /// What is changed first, for good.
        change: Option<Change>,
    },
    /// A job that ran on another node until now is handed in.
    TakeOver {
        /// Which.
        job: String,
    },
    /// The same, and only the first of its copies replaces anything there.
    TakeOverOne {
        /// Which.
        job: String,
    },
    /// A job is made of a parameterized one.
    Dispatch {
        /// Which.
        job: String,
        /// What it brings is made of this.
        nth: u32,
    },
    /// A job is stopped.
    Deregister {
        /// Which.
        job: String,
        /// Whether it is forgotten as well.
        purge: bool,
    },
    /// A job is looked at again.
    Evaluate {
        /// Which.
        job: String,
    },
    /// Tasks of the job's latest allocation that is not over are started again.
    Restart {
        /// Whose.
        job: String,
        /// All of them, or those that run.
        all: bool,
    },
    /// One task of the job's latest allocation that is not over is started again.
    RestartTask {
        /// Whose.
        job: String,
        /// Which of its tasks; counted around.
        nth: usize,
    },
    /// One task of the job's latest allocation that is not over gets a signal.
    SignalTask {
        /// Whose.
        job: String,
        /// Which of its tasks; counted around.
        nth: usize,
    },
    /// An allocation is stopped: the latest that is not over, or the n-th oldest of all.
    StopAlloc {
        /// Whose.
        job: String,
        /// Which; counted around.
        nth: Option<usize>,
    },
    /// An allocation is cleaned away: the n-th oldest.
    CollectAlloc {
        /// Whose.
        job: String,
        /// Which; counted around.
        nth: usize,
    },
    /// Another node takes over a job.
    HandOver {
        /// Which.
        job: String,
    },
    /// Another node has read the disk of an allocation: the n-th oldest.
    TransferComplete {
        /// Whose.
        job: String,
        /// Which; counted around.
        nth: usize,
    },
    /// The tasks of the job's latest allocation that is not over get a signal.
    Signal {
        /// Whose.
        job: String,
    },
    /// What ended is cleaned away.
    Collect,
    /// The driver's condition changes.
    Driver {
        /// Whether it is healthy from now on.
        healthy: bool,
    },
    /// The machine has more or less of counted resources from now on.
    Resize {
        /// What it has.
        has: Amounts,
    },
    /// What some template is made of changes.
    ChangeTemplate,
    /// A variable is put.
    PutVariable {
        /// What it holds.
        value: u64,
        /// What must be there.
        expect: Expect,
    },
    /// It is deleted.
    DeleteVariable {
        /// What must be there.
        expect: Expect,
    },
    /// The agent is told to end; five minutes later another one begins.
    Shutdown {
        /// How it ends.
        mode: ShutdownMode,
    },
    /// The agent is killed, and another one begins at once.
    Replace,
}

impl What {
    /// The job that it is about.
    pub fn job(&self) -> Option<&str> {
        match self {
            What::Register { job, .. }
            | What::TakeOver { job }
            | What::TakeOverOne { job }
            | What::Dispatch { job, .. }
            | What::Deregister { job, .. }
            | What::Evaluate { job }
            | What::Restart { job, .. }
            | What::RestartTask { job, .. }
            | What::SignalTask { job, .. }
            | What::StopAlloc { job, .. }
            | What::CollectAlloc { job, .. }
            | What::HandOver { job }
            | What::TransferComplete { job, .. }
            | What::Signal { job } => Some(job),
            What::Collect
            | What::Driver { .. }
            | What::Resize { .. }
            | What::ChangeTemplate
            | What::PutVariable { .. }
            | What::DeleteVariable { .. }
            | What::Shutdown { .. }
            | What::Replace => None,
        }
    }
}

/// What somebody expects of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// That it is or is not there, however it is.
    Anything,
    /// That it is not there.
    Nothing,
    /// That it is as the agent shows it.
    WhatIsShown,
}

/// A change of a job's first group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The first task's environment: it is replaced.
    Env(u64),
    /// The first task's kill timeout, how long changes of its templates are collected, and for how much longer its
    /// tokens are good: it is updated in place.
    KillTimeout(Span),
    /// The number of copies.
    Count(i64),
    /// How important it is.
    Priority(i64),
}

impl Change {
    /// Makes it.
    pub fn make(self, job: &mut Job) {
        if let Change::Priority(priority) = self {
            job.priority = priority;
        }
        let Some(group) = job.task_groups.first_mut() else {
            return;
        };
        match (self, group.tasks.first_mut()) {
            (Change::Env(value), Some(task)) => {
                task.env.insert("V".to_owned(), value.to_string());
            }
            (Change::KillTimeout(span), Some(task)) => {
                task.kill_timeout = Some(span);
                for template in &mut task.templates {
                    template.wait = Some(Wait {
                        min: span,
                        max: Span(span.0.saturating_mul(4)),
                    });
                }
                let mut identities = task.identity.iter_mut().chain(&mut task.identities);
                if let Some(identity) = identities.find(|one| one.ttl.0 > 0) {
                    identity.ttl.0 = identity.ttl.0.saturating_add(span.0);
                }
            }
            (Change::Count(count), _) => group.count = Some(count),
            (Change::Priority(_), _) | (Change::Env(_) | Change::KillTimeout(_), None) => {}
        }
    }
}

impl Script {
    /// How much there is to understand: jobs, copies and tasks, acts, and what chance decided.
    pub fn len(&self) -> usize {
        let tasks: usize = (self.jobs.iter())
            .flat_map(|job| &job.task_groups)
            .map(|group| group.tasks.len() * usize::try_from(group.count.unwrap_or(1)).unwrap_or(1))
            .sum();
        tasks + self.acts.len() + self.overrides.chosen.len()
    }

    /// Whether nothing happens at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
