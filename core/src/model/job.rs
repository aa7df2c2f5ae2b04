//! A job: what somebody wants to run, in Nomad's own JSON shape.
//!
//! Names, defaults and meanings are those of Nomad's job API. Reading is lenient (a missing
//! field is its default; callers drop `null`s first), so validation is a step of its own.
//! Blocks that this node does not act on yet are kept as [`Value`], so that `inspect` shows them
//! and validation can name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dispatch::ParameterizedJob;
use super::group::TaskGroup;
use super::periodic;
use super::policy::{PeriodicConfig, ReschedulePolicy, UpdateStrategy};
use super::value::Value;
use crate::ids::JobKey;
use crate::time::Timestamp;

/// What becomes of a job's allocations when their tasks end, and where they run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum JobType {
    /// Meant to run for ever; a task that ends is started again.
    #[default]
    Service,
    /// Runs until it succeeds.
    Batch,
    /// As `service`, one allocation on every node.
    System,
    /// As `batch`, one allocation on every node.
    Sysbatch,
}

impl JobType {
    /// Whether a task that succeeds is done (batch) or is started again (service).
    pub fn runs_to_completion(self) -> bool {
        matches!(self, JobType::Batch | JobType::Sysbatch)
    }

    /// Whether exactly one allocation per node is wanted, whatever the count.
    pub fn one_per_node(self) -> bool {
        matches!(self, JobType::System | JobType::Sysbatch)
    }

    /// The name in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            JobType::Service => "service",
            JobType::Batch => "batch",
            JobType::System => "system",
            JobType::Sysbatch => "sysbatch",
        }
    }
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Something of it waits to be placed or replaced, and nothing of it is alive.
    Pending,
    /// Something of it is alive, or it makes jobs.
    Running,
    /// Nothing of it is alive, and nothing comes.
    Dead,
}

impl JobStatus {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Pending => "pending",
            JobStatus::Running => "running",
            JobStatus::Dead => "dead",
        }
    }
}

/// A job as it is submitted and as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Job {
    /// Unique in its namespace.
    #[serde(rename = "ID")]
    pub id: String,
    /// For people; the id unless given.
    pub name: String,
    /// `default` unless given.
    pub namespace: String,
    /// `global` unless given. One node has one region.
    pub region: String,
    /// What kind of work this is.
    #[serde(rename = "Type")]
    pub job_type: JobType,
    /// From 1 to 100; kept, of no effect on one node.
    pub priority: i64,
    /// Kept, of no effect on one node.
    pub all_at_once: bool,
    /// Patterns of data centres; one of them must match this node's.
    pub datacenters: Vec<String>,
    /// `default` unless given.
    pub node_pool: String,
    /// The author's own keys.
    pub meta: BTreeMap<String, String>,
    /// Conditions on the node.
    pub constraints: Vec<Constraint>,
    /// Preferences among nodes; kept, of no effect on one node.
    pub affinities: Vec<Value>,
    /// Preferences of spreading; kept, of no effect on one node.
    pub spreads: Vec<Value>,
    /// The groups of tasks.
    pub task_groups: Vec<TaskGroup>,
    /// How a new version replaces an old one, for groups without their own block.
    pub update: Option<UpdateStrategy>,
    /// What follows a failed allocation, for groups without their own block.
    pub reschedule: Option<ReschedulePolicy>,
    /// What moving to another node takes, for groups without their own block; kept.
    pub migrate: Option<Value>,
    /// Started by the clock instead of at once.
    pub periodic: Option<PeriodicConfig>,
    /// It runs nothing itself, and jobs are made of it; in those, what they were made by.
    pub parameterized_job: Option<ParameterizedJob>,
    /// Not of the community edition.
    pub multiregion: Option<Value>,
    /// Shown by web pages.
    #[serde(rename = "UI")]
    pub ui: Option<Value>,

    /// The job that this one was made of; empty if none.
    #[serde(rename = "ParentID")]
    pub parent_id: String,
    /// Whether a dispatch made it.
    pub dispatched: bool,
    /// What the dispatch brought, in base64; empty for nothing.
    pub payload: Arc<str>,
    /// By which the dispatch is known again; empty for none.
    pub dispatch_idempotency_token: String,
    /// Whether somebody asked this job to stop.
    pub stop: bool,
    /// Counts the submissions that changed something, from 0.
    pub version: u64,
    /// Whether a roll-out of this version ended well.
    pub stable: bool,
    /// `pending`, `running` or `dead`; derived.
    pub status: String,
    /// Why the status is what it is.
    pub status_description: String,
    /// When this version was submitted.
    pub submit_time: Timestamp,
    /// The state's index when the job was first seen.
    pub create_index: u64,
    /// The state's index of the last change of any kind.
    pub modify_index: u64,
    /// The state's index of the last submission.
    pub job_modify_index: u64,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            id: String::new(),
            name: String::new(),
            namespace: "default".to_owned(),
            region: "global".to_owned(),
            job_type: JobType::Service,
            priority: 50,
            all_at_once: false,
            datacenters: vec!["*".to_owned()],
            node_pool: "default".to_owned(),
            meta: BTreeMap::new(),
            constraints: Vec::new(),
            affinities: Vec::new(),
            spreads: Vec::new(),
            task_groups: Vec::new(),
            update: None,
            reschedule: None,
            migrate: None,
            periodic: None,
            parameterized_job: None,
            multiregion: None,
            ui: None,
            parent_id: String::new(),
            dispatched: false,
            payload: Arc::from(""),
            dispatch_idempotency_token: String::new(),
            stop: false,
            version: 0,
            stable: false,
            status: String::new(),
            status_description: String::new(),
            submit_time: Timestamp::default(),
            create_index: 0,
            modify_index: 0,
            job_modify_index: 0,
        }
    }
}

impl Job {
    /// The job's full name.
    pub fn key(&self) -> JobKey {
        JobKey {
            namespace: self.namespace.as_str().into(),
            id: self.id.as_str().into(),
        }
    }

    /// Whether jobs are made of it, and it runs nothing itself.
    pub fn is_parameterized(&self) -> bool {
        self.parameterized_job.is_some() && !self.dispatched
    }

    /// Whether the clock makes jobs of it, and it runs nothing itself.
    pub fn is_periodic(&self) -> bool {
        self.periodic.is_some() && !self.is_parameterized()
    }

    /// Whether other jobs are made of it, and it runs nothing itself.
    pub fn is_template(&self) -> bool {
        self.is_parameterized() || self.is_periodic()
    }

    /// What launches it by the clock, if anything does now.
    pub fn schedule(&self) -> Option<&PeriodicConfig> {
        let runs = self.is_periodic() && !self.stop;
        self.periodic.as_ref().filter(|it| it.enabled && runs)
    }

    /// Whether it was made of another job, by a dispatch or by the clock.
    pub fn is_child(&self) -> bool {
        self.dispatched || periodic::launch_of(&self.parent_id, &self.id).is_some()
    }

    /// The job that it was made of, if it was made of one.
    pub fn parent(&self) -> Option<&str> {
        Some(self.parent_id.as_str()).filter(|id| !id.is_empty())
    }

    /// The full name of the job that it was made of.
    pub fn parent_key(&self) -> Option<JobKey> {
        Some(JobKey {
            namespace: self.namespace.as_str().into(),
            id: self.parent()?.into(),
        })
    }

    /// The id by which others know it: jobs that are made of one job are that job to them.
    pub fn known_as(&self) -> &str {
        self.parent().unwrap_or(&self.id)
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&TaskGroup> {
        self.task_groups.iter().find(|group| group.name == name)
    }
}

/// A condition on the node: `LTarget Operand RTarget`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraint {
    /// What is looked at, such as `${attr.kernel.name}`.
    #[serde(rename = "LTarget")]
    pub target: String,
    /// What it is compared with.
    #[serde(rename = "RTarget")]
    pub value: String,
    /// How: `=`, `!=`, `<`, `regexp`, `version` and so on; empty is `=`.
    #[serde(rename = "Operand")]
    pub operand: String,
}
