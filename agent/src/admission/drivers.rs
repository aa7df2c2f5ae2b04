//! What a job asks of the agent's own drivers that its configuration does not allow. This is reported when the job is
//! handed in, before anything is made of it. Tasks ask the same when they start: servers of a cluster place jobs of
//! which the agent is not asked, and what ran before a setting became tighter goes on until it starts again. Drivers
//! that are plugins see to their own tasks.

use std::collections::BTreeMap;

use drover_core::driver::admission::admit;
use drover_core::driver::docker::DockerPolicy;
use drover_core::driver::isolation::ExecPolicy;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::Task;
use drover_core::text::quote;
use drover_core::validate::{MAX_PROBLEMS, Problem};
use drover_io_real::driver::docker::admit_devices;
use drover_io_real::driver::exec::ExecSettings;

use crate::config::FileConfig;

/// What the configuration lets tasks ask of the agent's own drivers.
#[derive(Clone, Debug, Default)]
pub struct DriverRules {
    /// The drivers that are switched off, with why.
    off: BTreeMap<&'static str, String>,
    exec: ExecPolicy,
    users: ExecSettings,
    docker: DockerPolicy,
}

impl DriverRules {
    /// Those of a configuration.
    pub fn of(file: &FileConfig) -> DriverRules {
        DriverRules {
            off: file.client.denied_drivers().collect(),
            exec: file.exec.policy.clone(),
            users: file.exec.settings.clone(),
            docker: file.docker_policy(),
        }
    }

    /// What tasks of a canonical job ask for and do not get here: one thing of each. Blocks: this machine is asked for
    /// its users and devices.
    pub fn problems(&self, job: &Job) -> Vec<Problem> {
        let groups = job.task_groups.iter();
        let tasks = groups.flat_map(|group| group.tasks.iter().map(move |task| (group, task)));
        let wrong = tasks.filter_map(|(group, task)| self.problem(group, task));
        wrong.take(MAX_PROBLEMS).collect()
    }

    fn problem(&self, group: &TaskGroup, task: &Task) -> Option<Problem> {
        let of = format!("group[{}].task[{}]", quote(&group.name), quote(&task.name));
        let problem = |field: &str, message: String| Problem {
            path: format!("{of}.{field}"),
            message,
        };
        if let Some(why) = self.off.get(task.driver.as_str()) {
            let driver = quote(&task.driver);
            let message = format!("the agent does not allow the driver {driver}: {why}");
            return Some(problem("driver", message));
        }
        let admitted = admit(&self.exec, &self.docker, group, task);
        if let Err(why) = admitted.and_then(|()| admit_devices(&self.docker, task)) {
            return Some(problem("config", why));
        }
        let user = self.users.admit(task).err()?;
        Some(problem("user", user))
    }
}
