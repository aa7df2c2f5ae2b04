//! What a task runner needs to know of its task: the job's settings, with references resolved.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, TaskKey};
use crate::model::authority::Authority;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::policy::RestartRules;
use crate::model::task::{Stage, Task, TaskAction};
use crate::time::Span;

/// A task of a job's version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Its full name.
    pub key: TaskKey,
    /// Its driver's name.
    pub driver: Arc<str>,
    /// Who placed its allocation.
    #[serde(default, skip_serializing_if = "Authority::is_node")]
    pub authority: Authority,
    job: Arc<Job>,
    group: usize,
    task: usize,
}

impl TaskSpec {
    /// The tasks of one group, in the order of the job file. Empty if there is no such group.
    pub fn of_group(
        alloc: AllocId,
        job: &Arc<Job>,
        group: &str,
        authority: Authority,
    ) -> Vec<TaskSpec> {
        let Some(at) = job.task_groups.iter().position(|g| g.name == group) else {
            return Vec::new();
        };
        let tasks = job
            .task_groups
            .get(at)
            .map(|g| g.tasks.as_slice())
            .unwrap_or_default();
        let spec = |(index, task): (usize, &Task)| TaskSpec {
            key: TaskKey {
                alloc,
                task: task.name.as_str().into(),
            },
            driver: Arc::from(task.driver.as_str()),
            authority,
            job: job.clone(),
            group: at,
            task: index,
        };
        tasks.iter().enumerate().map(spec).collect()
    }

    /// Its job.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Its group.
    pub fn group(&self) -> &TaskGroup {
        &self.job.task_groups[self.group]
    }

    /// The task itself.
    pub fn task(&self) -> &Task {
        &self.group().tasks[self.task]
    }

    /// The action of this name.
    pub fn action(&self, name: &str) -> Option<&TaskAction> {
        self.task()
            .actions
            .iter()
            .find(|action| action.name == name)
    }

    /// The part of the group's life that it belongs to.
    pub fn stage(&self) -> Stage {
        self.task().stage()
    }

    /// When it is started again: the task's own words before the group's before the job type's.
    pub fn restart_rules(&self) -> RestartRules {
        RestartRules::default_for(self.job.job_type)
            .overridden_by(self.group().restart_policy.as_ref())
            .overridden_by(self.task().restart_policy.as_ref())
    }

    /// Whether it is started again even though it succeeded.
    pub fn restarts_on_success(&self) -> bool {
        match self.stage() {
            Stage::Main => !self.job.job_type.runs_to_completion(),
            Stage::PrestartSidecar | Stage::PoststartSidecar => true,
            Stage::Prestart | Stage::Poststart | Stage::Poststop => false,
        }
    }

    /// From the polite signal to the impolite one, within the node's limit.
    pub fn kill_timeout(&self, limit: Span) -> Span {
        self.task().kill_timeout().clamp(Span::ZERO, limit)
    }
}
