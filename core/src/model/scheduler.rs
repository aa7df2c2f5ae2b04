//! How jobs are taken in and placed: what the configuration says, until somebody sets it while the agent runs.

use serde::{Deserialize, Serialize};

use super::job::JobType;

/// Which types of jobs may preempt allocations of jobs of lower priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Preemption {
    /// Services.
    pub service: bool,
    /// Batch jobs.
    pub batch: bool,
    /// System jobs.
    pub system: bool,
    /// Batch jobs that each node runs.
    pub sysbatch: bool,
}

impl Preemption {
    /// Whether jobs of a type may.
    pub fn is_allowed(self, job_type: JobType) -> bool {
        match job_type {
            JobType::Service => self.service,
            JobType::Batch => self.batch,
            JobType::System => self.system,
            JobType::Sysbatch => self.sysbatch,
        }
    }
}

impl Default for Preemption {
    /// As in Nomad: system jobs alone.
    fn default() -> Preemption {
        Preemption {
            service: false,
            batch: false,
            system: true,
            sysbatch: false,
        }
    }
}

/// Which of several nodes a job prefers. On one node both place everything there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// The fullest that has enough.
    #[default]
    Binpack,
    /// The emptiest.
    Spread,
}

impl Algorithm {
    /// Its name, as in Nomad.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Binpack => "binpack",
            Algorithm::Spread => "spread",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Algorithm> {
        let all = [Algorithm::Binpack, Algorithm::Spread];
        all.into_iter().find(|one| one.name() == name)
    }
}

/// How jobs are taken in and placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulerConfig {
    /// Which of several nodes a job prefers.
    pub algorithm: Algorithm,
    /// Which types of jobs may preempt.
    pub preemption: Preemption,
    /// Whether `memory_max` bounds the memory of a task instead of `memory`, for tasks that start from now on.
    pub memory_oversubscription: bool,
    /// Whether nobody's job is taken in, changed, scaled or dispatched. What is there goes on.
    pub reject_job_registration: bool,
}

impl Default for SchedulerConfig {
    /// `memory_max` counts unless somebody says otherwise: it is the machine's owner who writes it.
    fn default() -> SchedulerConfig {
        SchedulerConfig {
            algorithm: Algorithm::default(),
            preemption: Preemption::default(),
            memory_oversubscription: true,
            reject_job_registration: false,
        }
    }
}

/// What somebody set, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulerRecord {
    /// The settings.
    pub config: SchedulerConfig,
    /// The state's index when somebody set them first.
    pub create_index: u64,
    /// The state's index of their last change.
    pub modify_index: u64,
}
