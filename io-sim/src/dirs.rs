//! Directories: what hooks make and remove.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::effect::HookWork;
use drover_core::ids::{AllocId, TaskName};
use drover_core::op::Failure;
use serde::Serialize;

/// The directories that exist.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Dirs {
    /// Of allocations.
    pub allocs: BTreeSet<AllocId>,
    /// Of tasks.
    pub tasks: BTreeSet<(AllocId, TaskName)>,
    /// The tasks whose artifacts are there.
    pub fetched: BTreeSet<(AllocId, TaskName)>,
    /// Of them, those that have some in their secrets.
    secret: BTreeSet<(AllocId, TaskName)>,
    /// The secrets of tasks, which are in memory, by number: each has another one.
    secrets: BTreeMap<(AllocId, TaskName), u64>,
    last_secrets: u64,
    /// What a dispatch brought, where it was written down for a task.
    pub payloads: BTreeMap<(AllocId, TaskName), Arc<str>>,
    /// Of each allocation's disk: tasks of which allocations wrote what is on it.
    pub disks: BTreeMap<AllocId, BTreeSet<AllocId>>,
}

impl Dirs {
    /// A task of this allocation runs, and writes something.
    pub(crate) fn write(&mut self, alloc: AllocId) {
        if self.allocs.contains(&alloc) {
            self.disks.entry(alloc).or_default().insert(alloc);
        }
    }

    /// The machine starts again, and what was in memory is gone.
    pub(crate) fn rebooted(&mut self) {
        self.secrets.clear();
        self.fetched.retain(|task| !self.secret.contains(task));
        self.secret.clear();
    }

    /// Whether some of what was fetched for a task is in its secrets.
    pub(crate) fn has_secret_artifacts(&self, alloc: AllocId, task: &TaskName) -> bool {
        self.secret.contains(&(alloc, task.clone()))
    }

    /// Which secrets a task has now, as hooks tell it.
    pub(crate) fn secrets_of(&self, alloc: AllocId, task: &TaskName) -> String {
        let number = self.secrets.get(&(alloc, task.clone()));
        number.map_or_else(String::new, u64::to_string)
    }

    fn inherit(&mut self, alloc: AllocId, from: &[AllocId]) {
        let taken = self.disks.contains_key(&alloc);
        let source = from.iter().find(|from| self.disks.contains_key(from));
        if let Some(disk) = source
            .filter(|_| !taken)
            .and_then(|id| self.disks.remove(id))
        {
            self.disks.insert(alloc, disk);
        }
    }

    /// Does a hook's work. Doing it twice is doing it once.
    pub(crate) fn work(
        &mut self,
        alloc: AllocId,
        task: Option<&TaskName>,
        work: &HookWork,
    ) -> Result<(), Failure> {
        match work {
            HookWork::BuildAllocDir => {
                self.allocs.insert(alloc);
            }
            HookWork::BuildTaskDir { made, .. } => {
                let Some(task) = task.map(|task| (alloc, task.clone())) else {
                    return Err(Failure::fatal("no task was named"));
                };
                if !self.allocs.contains(&alloc) || (*made && !self.tasks.contains(&task)) {
                    return Err(Failure::fatal("it has no directory"));
                }
                self.tasks.insert(task.clone());
                if !self.secrets.contains_key(&task) {
                    self.last_secrets += 1;
                    self.secrets.insert(task, self.last_secrets);
                }
            }
            HookWork::InheritDisk { from, .. } => {
                if !self.allocs.contains(&alloc) {
                    return Err(Failure::fatal("the allocation has no directory"));
                }
                self.inherit(alloc, from);
            }
            HookWork::WritePayload { payload, .. } => {
                let own = task.map(|task| (alloc, task.clone()));
                let Some(own) = own.filter(|own| self.tasks.contains(own)) else {
                    return Err(Failure::fatal("the task has no directory"));
                };
                self.payloads.insert(own, payload.clone());
            }
            HookWork::FetchArtifacts { artifacts, .. } => {
                let Some(task) = task.map(|task| (alloc, task.clone())) else {
                    return Err(Failure::fatal("no task was named"));
                };
                if !self.tasks.contains(&task) {
                    return Err(Failure::fatal("the task has no directory"));
                }
                if artifacts
                    .iter()
                    .any(|one| one.relative_dest.starts_with("secrets"))
                {
                    if !self.secrets.contains_key(&task) {
                        return Err(Failure::fatal("the task has no secrets directory"));
                    }
                    self.secret.insert(task.clone());
                }
                self.fetched.insert(task);
            }
            // What other nodes say and give is theirs.
            HookWork::Reserve { .. } | HookWork::AskRemote { .. } | HookWork::FetchDisk { .. } => {}
            HookWork::RenderTemplates(_) | HookWork::IssueIdentities(_) => {
                let own = task.map(|task| (alloc, task.clone()));
                if own.is_none_or(|own| !self.tasks.contains(&own)) {
                    return Err(Failure::fatal("the task has no directory"));
                }
            }
            HookWork::RemoveAllocDir => {
                self.allocs.remove(&alloc);
                self.tasks.retain(|(of, _)| *of != alloc);
                self.fetched.retain(|(of, _)| *of != alloc);
                self.payloads.retain(|(of, _), _| *of != alloc);
                self.secret.retain(|(of, _)| *of != alloc);
                self.secrets.retain(|(of, _), _| *of != alloc);
                self.disks.remove(&alloc);
            }
        }
        Ok(())
    }
}
