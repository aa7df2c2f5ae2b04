//! What the API shows of jobs, evaluations, drivers and plugins is true.

use drover_core::model::job::JobStatus;
use std::collections::BTreeSet;

use drover_core::agent::Agent;
use drover_core::agent::Listened;
use drover_core::agent::View;
use drover_core::alloc::runner::AllocRunner;
use drover_core::fingerprint::PluginKind;
use drover_core::model::alloc::{ClientStatus, TaskLife};
use drover_core::store::record::JobRecord;

use super::{Checker, Property, Verdict};

impl Checker {
    pub(super) fn view_matches_world(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for job in view.jobs() {
            let shown = view.job_status(&job.job.key());
            let so = status_of(view, job);
            self.holds(Property::ViewMatchesWorld, so.contains(&shown), || {
                format!("job {} is {shown:?}, not one of {so:?}", job.job.id)
            })?;
        }
        for alloc in view.allocs() {
            let runs = alloc
                .tasks()
                .iter()
                .any(|task| state_is(task, TaskLife::Running));
            let shown = alloc.is_running();
            self.holds(Property::ViewMatchesWorld, shown == runs, || {
                format!("{} is running: {shown}", alloc.record().id)
            })?;
        }
        for eval in view.evals() {
            let found = view.eval(eval.id);
            self.holds(Property::ViewMatchesWorld, found == Some(eval), || {
                format!("evaluation {} is {found:?}", eval.id)
            })?;
        }
        for listened in view.listened() {
            let needed = tasks_that_need(view, &listened);
            let shown = listened.tasks;
            self.holds(Property::ViewMatchesWorld, shown == needed, || {
                format!("{} has {shown} tasks, not {needed}", listened.name)
            })?;
        }
        Ok(())
    }

    /// An agent that ends keeps no deadlines any more.
    pub(super) fn agent_self_audit_finds_nothing(&mut self, agent: &Agent) -> Verdict {
        if self.leaving || agent.view().stopped() {
            return Ok(());
        }
        let found = agent.view().violations();
        let property = Property::AgentSelfAuditFindsNothing;
        self.holds(property, found.is_empty(), || format!("{found:?}"))
    }
}

/// What a job's status may be. One that has nothing that lives may wait for a time or a place, which
/// is nobody else's to know.
fn status_of(view: View<'_>, job: &JobRecord) -> &'static [JobStatus] {
    let key = job.job.key();
    let lives = |alloc: &AllocRunner| {
        let status = alloc.record().status;
        !alloc.record().finished && matches!(status, ClientStatus::Running | ClientStatus::Pending)
    };
    let mut groups = job.job.task_groups.iter();
    let wants_copies = groups.any(|group| group.count != Some(0));
    let new = wants_copies && view.allocs_of(&key).next().is_none() && job.done.is_empty();
    if view.allocs_of(&key).any(lives) {
        &[JobStatus::Running]
    } else if job.job.stop {
        &[JobStatus::Dead]
    } else if job.job.is_template() {
        // It waits for dispatches, or for its time.
        &[JobStatus::Running]
    } else if new || !view.blocked(&key).is_empty() {
        &[JobStatus::Pending]
    } else {
        &[JobStatus::Pending, JobStatus::Dead]
    }
}

fn state_is(task: &drover_core::task::runner::TaskRunner, state: TaskLife) -> bool {
    task.state().state == state
}

/// How many tasks that are not over are of this driver, or hold devices of this plugin.
fn tasks_that_need(view: View<'_>, listened: &Listened<'_>) -> usize {
    let needs = |alloc: &AllocRunner| {
        let tasks = alloc.tasks().iter();
        let wanted = tasks.filter(|task| !state_is(task, TaskLife::Dead));
        let held = alloc.record().devices.iter();
        let held = held.filter(|held| held.plugin == listened.name);
        let holders: BTreeSet<&str> = held.map(|held| held.task.as_str()).collect();
        wanted
            .filter(|task| match listened.kind {
                PluginKind::Driver => *task.spec().driver == *listened.name,
                PluginKind::Device => holders.contains(task.spec().key.task.as_str()),
            })
            .count()
    };
    view.allocs().map(needs).sum()
}
