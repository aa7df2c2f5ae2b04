//! What must happen in an order: checked against the processes themselves, not against what the
//! agent says of them.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::{Stage, Task};
use serde::Serialize;

use crate::process::Process;
use crate::sim::Sim;

/// Something that happened in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Disorder {
    /// Whose group.
    pub group: String,
    /// What happened.
    pub what: String,
}

/// Where each allocation belongs: the group's place in the job, and which copy.
pub(super) type CopySlots = BTreeMap<AllocId, (usize, u32)>;

/// Looks for disorder.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) found: BTreeSet<Disorder>,
    stopping: BTreeSet<LaunchId>,
    /// Allocations whose tasks somebody restarted: their tasks are asked to end all at once.
    pub(super) restarted: BTreeSet<AllocId>,
}

impl Order {
    /// A process began.
    pub(super) fn check_start(
        &mut self,
        job: &Job,
        slots: &CopySlots,
        sim: &Sim,
        launch: LaunchId,
    ) {
        let Some(process) = sim.world.processes.get(launch) else {
            return;
        };
        let alloc = process.key.alloc;
        let Some((at, index)) = slots.get(&alloc).copied() else {
            return;
        };
        let Some(group) = job.task_groups.get(at) else {
            return;
        };
        let Some(task) = task_of(group, &process.key.task) else {
            return;
        };
        let other = |(_, other): &(&LaunchId, &Process)| {
            let alloc_there = other.key.alloc;
            alloc_there != alloc && slots.get(&alloc_there) == Some(&(at, index))
        };
        if let Some((_, old)) = sim.world.alive().find(other) {
            let what = format!(
                "copy {index} began ({}) while the one before it still ran ({})",
                task.name, old.key.task
            );
            self.note(group, what);
        }
        if let Some(what) = too_early(group, task, alloc, sim) {
            self.note(group, what);
        }
    }

    /// Processes were asked to end: the leader goes first.
    pub(super) fn check_stops(&mut self, job: &Job, sim: &Sim) {
        for (launch, process) in sim.world.alive() {
            if !process.stopping || !self.stopping.insert(*launch) {
                continue;
            }
            let alloc = sim.view().and_then(|view| view.alloc(process.key.alloc));
            let Some(alloc) = alloc.filter(|alloc| alloc.record().desired.is_terminal()) else {
                continue;
            };
            let group = job.group(alloc.record().group.as_str());
            let leader = group.and_then(|group| group.tasks.iter().find(|task| task.leader));
            let (Some(group), Some(leader)) = (group, leader) else {
                continue;
            };
            let is_leader = process.key.task.as_str() == leader.name;
            if is_leader || self.restarted.contains(&process.key.alloc) {
                continue;
            }
            if is_alive(sim, process.key.alloc, leader) {
                let (task, leader) = (&process.key.task, &leader.name);
                let what = format!("{task} was asked to end before the leader {leader} had ended");
                self.note(group, what);
            }
        }
    }

    fn note(&mut self, group: &TaskGroup, what: String) {
        let group = group.name.clone();
        self.found.insert(Disorder { group, what });
    }
}

/// What should have come before the start of a task, and did not.
fn too_early(group: &TaskGroup, task: &Task, alloc: AllocId, sim: &Sim) -> Option<String> {
    let stage = task.stage();
    let name = &task.name;
    let others = || group.tasks.iter().filter(|other| other.name != *name);
    match stage {
        Stage::Prestart | Stage::PrestartSidecar => None,
        Stage::Main => {
            let before = |other: &&Task| other.stage() == Stage::Prestart;
            let late = others().find(|t| before(t) && !has_succeeded(sim, alloc, t))?;
            Some(format!(
                "{name} began before the prestart task {} had succeeded",
                late.name
            ))
        }
        Stage::Poststart | Stage::PoststartSidecar => {
            let main = |other: &&Task| other.stage() == Stage::Main;
            let late = others().find(|t| main(t) && !has_begun(sim, alloc, t))?;
            Some(format!("{name} began before {} had", late.name))
        }
        Stage::Poststop => {
            let early =
                others().find(|t| t.stage() != Stage::Poststop && is_alive(sim, alloc, t))?;
            Some(format!("{name} began while {} still ran", early.name))
        }
    }
}

fn task_of<'a>(group: &'a TaskGroup, name: &TaskName) -> Option<&'a Task> {
    group.tasks.iter().find(|task| task.name == name.as_str())
}

fn launches<'a>(sim: &'a Sim, alloc: AllocId, task: &Task) -> Vec<&'a Process> {
    let key = TaskKey {
        alloc,
        task: task.name.as_str().into(),
    };
    let launches = sim.world.launches_of(&key);
    launches.map(|(_, process)| process).collect()
}

fn is_alive(sim: &Sim, alloc: AllocId, task: &Task) -> bool {
    launches(sim, alloc, task)
        .iter()
        .any(|process| process.alive)
}

fn has_begun(sim: &Sim, alloc: AllocId, task: &Task) -> bool {
    launches(sim, alloc, task)
        .iter()
        .any(|process| process.starts > 0)
}

fn has_succeeded(sim: &Sim, alloc: AllocId, task: &Task) -> bool {
    let succeeded = |process: &&Process| process.exit.as_ref().is_some_and(|e| e.is_success());
    launches(sim, alloc, task).iter().any(succeeded)
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
