//! What holds in every state of an agent, whatever the world around it is like: a recording has no
//! world, so only what the agent itself says can be looked at.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::alloc::TaskLife;
use drover_core::task::runner::{Phase, TaskRunner};

/// The laws that do not hold in this state: their names, and of what they are not true.
pub(super) fn broken(agent: &Agent) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    // One that leaves its tasks alone listens to nobody any more, and waits for nothing.
    if !agent.view().is_leaving() {
        deadlines_are_kept(agent, &mut found);
    }
    for task in agent.view().allocs().flat_map(AllocRunner::tasks) {
        let key = &task.spec().key;
        let name = || format!("{}/{}, {:?}", key.alloc.short(), key.task, task.phase());
        if !waits_for_something(task) {
            found.push(("a_task_waits_for_something", name()));
        }
        if !state_fits_phase(task) {
            found.push(("states_fit_phases", name()));
        }
    }
    found
}

/// The agent wants to be called when the first of its machines does.
fn deadlines_are_kept(agent: &Agent, found: &mut Vec<(&'static str, String)>) {
    let allocs = agent.view().allocs();
    let first = allocs
        .filter_map(AllocRunner::deadline)
        .map(|(at, _)| at)
        .min();
    let called = agent.poll_timeout().map(|(at, _)| at);
    if let Some(first) = first
        && called.is_none_or(|at| at > first)
    {
        found.push((
            "deadlines_are_kept",
            format!("first {first:?}, called {called:?}"),
        ));
    }
}

/// Every phase that neither runs nor waits for its turn has a deadline.
fn waits_for_something(task: &TaskRunner) -> bool {
    match task.phase() {
        Phase::Waiting | Phase::Running => true,
        Phase::Dead(_) => !task.has_remains() || task.deadline().is_some(),
        Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Delaying(_)
        | Phase::Stopping { .. }
        | Phase::Cleaning(_)
        | Phase::Pausing(_) => task.deadline().is_some(),
    }
}

/// The state that is reported fits the phase.
fn state_fits_phase(task: &TaskRunner) -> bool {
    let state = task.state();
    match task.phase() {
        Phase::Dead(_) => state.state == TaskLife::Dead && state.finished_at.is_some(),
        Phase::Running | Phase::Stopping { .. } => state.state == TaskLife::Running,
        Phase::Waiting | Phase::Preparing(_) | Phase::Starting(_) | Phase::Pausing(_) => {
            state.state == TaskLife::Pending && state.finished_at.is_none()
        }
        Phase::Recovering(_) | Phase::Delaying(_) | Phase::Cleaning(_) => {
            state.state != TaskLife::Dead
        }
    }
}
