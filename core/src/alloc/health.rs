//! Whether a new allocation is healthy: its tasks run long enough without a restart, and unless the job file
//! says otherwise the checks of its services pass all the while.
//!
//! Only allocations of a roll-out are watched, and each gets one verdict.

use serde::{Deserialize, Serialize};

use crate::model::alloc::TaskLife;
use crate::model::policy::UpdateStrategy;
use crate::model::task::Stage;
use crate::task::runner::TaskRunner;
use crate::time::{Instant, Now, Span, Timestamp};

/// The watch over one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HealthWatch {
    min_healthy: Span,
    deadline: Instant,
    /// Whether checks have to pass.
    #[serde(default)]
    checks: bool,
    /// How long after the beginning the deadline was, for people.
    #[serde(default)]
    within: Span,
    /// The latest start among the tasks, and since when all of them run.
    since: Option<(Timestamp, Instant)>,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every task ran long enough.
    Healthy,
    /// Not in time, or never; with the reason.
    Unhealthy(String),
}

impl HealthWatch {
    /// Watches from now on.
    pub fn new(now: Now, update: &UpdateStrategy) -> HealthWatch {
        HealthWatch {
            min_healthy: update.min_healthy_time,
            deadline: now.at + update.healthy_deadline,
            checks: update.health_check != "task_states",
            within: update.healthy_deadline,
            since: None,
        }
    }

    /// Whether checks have to pass.
    pub fn considers_checks(&self) -> bool {
        self.checks
    }

    /// Looks at the tasks: the verdict, once there is one. `failing` says which check does not pass, and why.
    pub fn check<'a>(
        &mut self,
        now: Now,
        tasks: impl Iterator<Item = &'a TaskRunner>,
        failing: Option<String>,
    ) -> Option<Verdict> {
        let mut all_run = true;
        let mut latest = Timestamp::default();
        for task in tasks {
            let state = task.state();
            let ended_well = state.is_successful();
            match task.spec().stage() {
                Stage::Poststop => continue,
                Stage::Prestart | Stage::Poststart if ended_well => continue,
                Stage::Prestart
                | Stage::PrestartSidecar
                | Stage::Main
                | Stage::Poststart
                | Stage::PoststartSidecar => {}
            }
            if state.failed || state.state == TaskLife::Dead {
                return Some(Verdict::Unhealthy(format!(
                    "Unhealthy because of failed task {}",
                    task.spec().key.task
                )));
            }
            all_run &= task.runs();
            latest = latest.max(state.started_at.unwrap_or_default());
        }
        self.note(now, all_run && failing.is_none(), latest);
        if self
            .since
            .is_some_and(|(_, at)| at + self.min_healthy <= now.at)
        {
            return Some(Verdict::Healthy);
        }
        let late = self.deadline <= now.at;
        late.then(|| {
            Verdict::Unhealthy(match failing {
                Some(check) if all_run => format!("Unhealthy after {}: {check}", self.within),
                Some(_) | None => "Tasks not running by healthy_deadline".to_owned(),
            })
        })
    }

    fn note(&mut self, now: Now, all_run: bool, latest: Timestamp) {
        let same = self.since.is_some_and(|(started, _)| started == latest);
        match (all_run, same) {
            (true, true) => {}
            (true, false) => self.since = Some((latest, now.at)),
            (false, _) => self.since = None,
        }
    }

    /// When it should look again though nothing happened.
    pub fn deadline(&self) -> Instant {
        match self.since {
            Some((_, at)) => (at + self.min_healthy).min(self.deadline),
            None => self.deadline,
        }
    }
}
