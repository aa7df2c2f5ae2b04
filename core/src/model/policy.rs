//! The policies of a job file: restart, reschedule, update, periodic. Spans are nanoseconds.

use serde::{Deserialize, Serialize};

use super::job::JobType;
use crate::time::Span;

/// What happens when the attempts of one interval are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestartMode {
    /// The task has failed.
    Fail,
    /// The task waits for the next interval.
    Delay,
}

/// When a task that ended is started again, as written: what is not given comes from the group,
/// then from the job's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RestartPolicy {
    /// How often in one interval.
    pub attempts: Option<i64>,
    /// The length of one interval.
    pub interval: Option<Span>,
    /// The pause before each start, to which up to a quarter is added.
    pub delay: Option<Span>,
    /// What happens after the last attempt.
    pub mode: Option<RestartMode>,
    /// Whether templates are rendered again.
    pub render_templates: Option<bool>,
}

/// A restart policy with nothing left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RestartRules {
    /// How often in one interval.
    pub attempts: u32,
    /// The length of one interval.
    pub interval: Span,
    /// The pause before each start, to which up to a quarter is added.
    pub delay: Span,
    /// What happens after the last attempt.
    pub mode: RestartMode,
}

impl RestartRules {
    /// The rules of Nomad for a job type, for a task without a policy.
    pub fn default_for(job_type: JobType) -> RestartRules {
        let (attempts, interval) = if job_type.runs_to_completion() {
            (3, Span::secs(24 * 3600))
        } else {
            (2, Span::secs(30 * 60))
        };
        RestartRules {
            attempts,
            interval,
            delay: Span::secs(15),
            mode: RestartMode::Fail,
        }
    }

    /// These rules with what `policy` says instead.
    pub fn overridden_by(self, policy: Option<&RestartPolicy>) -> RestartRules {
        let Some(policy) = policy else { return self };
        RestartRules {
            attempts: policy.attempts.map_or(self.attempts, |n| {
                u32::try_from(n.max(0)).unwrap_or(u32::MAX)
            }),
            interval: policy.interval.unwrap_or(self.interval),
            delay: policy.delay.unwrap_or(self.delay),
            mode: policy.mode.unwrap_or(self.mode),
        }
    }
}

/// What follows a failed allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ReschedulePolicy {
    /// How often in one interval, unless unlimited.
    pub attempts: Option<i64>,
    /// The length of one interval.
    pub interval: Option<Span>,
    /// The pause before the first replacement.
    pub delay: Option<Span>,
    /// `constant`, `exponential` or `fibonacci`.
    pub delay_function: Option<String>,
    /// The longest pause.
    pub max_delay: Option<Span>,
    /// Whether to go on for ever.
    pub unlimited: Option<bool>,
}

/// How a new version of a group replaces an old one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpdateStrategy {
    /// Of no effect any more; kept.
    pub stagger: Span,
    /// How many allocations are replaced at the same time; 0 for all at once.
    pub max_parallel: i64,
    /// `checks`, `task_states` or `manual`.
    pub health_check: String,
    /// How long tasks must run without a restart to be healthy.
    pub min_healthy_time: Span,
    /// When an allocation that is not healthy yet is unhealthy.
    pub healthy_deadline: Span,
    /// How long a roll-out may go without a newly healthy allocation.
    pub progress_deadline: Span,
    /// Whether a failed roll-out brings the last stable version back.
    pub auto_revert: bool,
    /// Whether healthy canaries are promoted by themselves.
    pub auto_promote: bool,
    /// How many allocations of the new version run beside the old ones first.
    pub canary: i64,
}

impl Default for UpdateStrategy {
    fn default() -> Self {
        UpdateStrategy {
            stagger: Span::secs(30),
            max_parallel: 1,
            health_check: "checks".to_owned(),
            min_healthy_time: Span::secs(10),
            healthy_deadline: Span::secs(300),
            progress_deadline: Span::secs(600),
            auto_revert: false,
            auto_promote: false,
            canary: 0,
        }
    }
}

/// Started by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeriodicConfig {
    /// Whether the clock starts it at all.
    pub enabled: bool,
    /// One cron line.
    pub spec: String,
    /// Several cron lines.
    pub specs: Vec<String>,
    /// Always `cron`.
    pub spec_type: String,
    /// Whether a start is skipped while an earlier one runs.
    pub prohibit_overlap: bool,
    /// The time zone of the cron lines.
    pub time_zone: String,
    /// What becomes of times at which the agent or the machine was not there.
    #[serde(skip_serializing_if = "Missed::is_default")]
    pub missed: Missed,
}

/// What becomes of times of a periodic job that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Missed {
    /// The latest of them is launched, late.
    #[default]
    #[serde(rename = "run-once", alias = "")]
    RunOnce,
    /// They are skipped.
    #[serde(rename = "skip")]
    Skip,
}

impl Missed {
    /// The name in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            Missed::RunOnce => "run-once",
            Missed::Skip => "skip",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_default(&self) -> bool {
        *self == Missed::default()
    }
}

impl Default for PeriodicConfig {
    fn default() -> Self {
        PeriodicConfig {
            enabled: true,
            spec: String::new(),
            specs: Vec::new(),
            spec_type: "cron".to_owned(),
            prohibit_overlap: false,
            time_zone: "UTC".to_owned(),
            missed: Missed::default(),
        }
    }
}
