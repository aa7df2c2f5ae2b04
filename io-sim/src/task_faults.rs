//! Simulated tasks that stand for real ones: how they behave as long as nothing goes wrong, and how
//! they behave otherwise for a while.

use std::collections::BTreeMap;

use drover_core::driver::config::MockConfig;
use drover_core::ids::TaskName;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::task::{Stage, Task};
use drover_core::model::value::Value;
use drover_core::time::Span;

/// Longer than any rehearsal.
const EVER: &str = "8760h";
/// How long the main task of a batch job works.
const BATCH: &str = "10m";
/// How long a task works that only prepares or cleans up.
const SHORT: &str = "5s";

/// What is wrong with a task at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFault {
    /// It ends at once with exit code 1.
    CrashesAtStart,
    /// Its start takes so long.
    StartsAfter(Span),
    /// It cannot be started, and another try may help.
    CannotStart,
    /// It does not end when it is asked to.
    IgnoresStop,
}

/// A task fault for a while: every start within the window has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultWindow {
    /// The group and the task; every task if none.
    pub of: Option<(String, String)>,
    /// From when on, since the beginning.
    pub from: Span,
    /// Until when.
    pub to: Span,
    /// What it does.
    pub fault: TaskFault,
}

/// The faults of all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFaults {
    /// When which task has which fault.
    pub fault_windows: Vec<FaultWindow>,
}

impl TaskFaults {
    /// What a task does that is started now and would do `usual`.
    pub(crate) fn of_start(
        &self,
        now: Span,
        group: &str,
        task: &TaskName,
        mut usual: MockConfig,
    ) -> MockConfig {
        let whom = |of: &(String, String)| of.0 == group && of.1 == task.as_str();
        let holds = |window: &&FaultWindow| {
            window.from <= now && now < window.to && window.of.as_ref().is_none_or(whom)
        };
        for window in self.fault_windows.iter().filter(holds) {
            match window.fault {
                TaskFault::CrashesAtStart => {
                    usual.command.run_for = Span::ZERO;
                    usual.command.exit_code = 1;
                }
                TaskFault::StartsAfter(span) => usual.start_block_for = span,
                TaskFault::CannotStart => {
                    usual.start_error = Some("it cannot be fetched".to_owned());
                    usual.start_error_recoverable = true;
                }
                TaskFault::IgnoresStop => usual.kill_after = Span::secs(24 * 3600),
            }
        }
        usual
    }
}

/// The same job with tasks that only pretend: services run until they are asked to end and end at
/// once then, batch tasks succeed after ten minutes, what prepares or cleans up after five seconds.
/// Kept is what policy sees; conditions on the node count as fulfilled.
pub fn pretend(job: &Job) -> Job {
    let groups = job.task_groups.iter();
    Job {
        id: job.id.clone(),
        name: job.name.clone(),
        namespace: job.namespace.clone(),
        region: job.region.clone(),
        job_type: job.job_type,
        priority: job.priority,
        update: job.update.clone(),
        reschedule: job.reschedule.clone(),
        task_groups: groups.map(|group| of_group(job.job_type, group)).collect(),
        ..Job::default()
    }
}

fn of_group(job_type: JobType, group: &TaskGroup) -> TaskGroup {
    let tasks = group.tasks.iter();
    TaskGroup {
        name: group.name.clone(),
        count: group.count,
        restart_policy: group.restart_policy,
        reschedule_policy: group.reschedule_policy.clone(),
        update: group.update.clone(),
        networks: group.networks.clone(),
        shutdown_delay: group.shutdown_delay,
        max_run_duration: group.max_run_duration,
        tasks: tasks.map(|task| of_task(job_type, task)).collect(),
        ..TaskGroup::default()
    }
}

fn of_task(job_type: JobType, task: &Task) -> Task {
    let run_for = match task.stage() {
        Stage::Prestart | Stage::Poststart | Stage::Poststop => SHORT,
        Stage::Main if job_type.runs_to_completion() => BATCH,
        Stage::Main | Stage::PrestartSidecar | Stage::PoststartSidecar => EVER,
    };
    Task {
        name: task.name.clone(),
        driver: "mock_driver".to_owned(),
        config: BTreeMap::from([("run_for".to_owned(), Value::from(run_for))]),
        lifecycle: task.lifecycle,
        leader: task.leader,
        kill_timeout: task.kill_timeout,
        shutdown_delay: task.shutdown_delay,
        restart_policy: task.restart_policy,
        ..Task::default()
    }
}
