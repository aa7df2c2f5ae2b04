//! Directories: what hooks make and remove.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::op::Failure;
use serde::Serialize;

/// The directories that exist.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Dirs {
    /// Of allocations.
    pub allocs: BTreeSet<AllocId>,
    /// How many bytes those may take whose disk space is limited.
    pub quotas: BTreeMap<AllocId, u64>,
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
    /// Links to volumes of the host, by their places in a task's directory, and where they lead.
    pub links: BTreeMap<(AllocId, TaskName), BTreeMap<String, String>>,
    /// Of each allocation's disk: tasks of which allocations wrote what is on it.
    pub disks: BTreeMap<AllocId, BTreeSet<AllocId>>,
    /// Allocations whose directories somebody took away.
    lost: BTreeSet<AllocId>,
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

    /// The state is on another machine now, and no directory came with it.
    pub fn lose_all(&mut self) {
        let before = std::mem::take(self);
        self.last_secrets = before.last_secrets;
        self.lost = before.allocs;
    }

    /// Whether somebody took an allocation's directory away.
    pub(crate) fn is_lost(&self, alloc: AllocId) -> bool {
        self.lost.contains(&alloc)
    }

    /// Whether a task has a directory.
    pub(crate) fn has_task(&self, key: &TaskKey) -> bool {
        self.tasks.contains(&own(key))
    }

    /// Whether some of what was fetched for a task is in its secrets.
    pub(crate) fn has_secret_artifacts(&self, key: &TaskKey) -> bool {
        self.secret.contains(&own(key))
    }

    /// Which secrets a task has now, as hooks report it.
    pub(crate) fn secrets_of(&self, key: &TaskKey) -> String {
        let number = self.secrets.get(&own(key));
        number.map_or_else(String::new, u64::to_string)
    }

    pub(crate) fn inherit(&mut self, alloc: AllocId, from: &[AllocId]) {
        let taken = self.disks.contains_key(&alloc);
        let source = from.iter().find(|from| self.disks.contains_key(from));
        if let Some(disk) = source
            .filter(|_| !taken)
            .and_then(|id| self.disks.remove(id))
        {
            self.disks.insert(alloc, disk);
        }
    }

    /// Makes a task's directory, if it was not `made` before or is lost, and its secrets. Returns which those are, and
    /// whether it was lost.
    pub(crate) fn make_task(
        &mut self,
        key: &TaskKey,
        made: bool,
    ) -> Result<(String, bool), Failure> {
        let rebuilt = made && !self.has_task(key) && self.is_lost(key.alloc);
        if rebuilt {
            self.allocs.insert(key.alloc);
        }
        if !self.allocs.contains(&key.alloc) || (made && !rebuilt && !self.has_task(key)) {
            return Err(Failure::fatal("it has no directory"));
        }
        self.tasks.insert(own(key));
        if !self.secrets.contains_key(&own(key)) {
            self.last_secrets += 1;
            self.secrets.insert(own(key), self.last_secrets);
        }
        Ok((self.secrets_of(key), rebuilt))
    }

    /// A task's artifacts are there from now on, some of them in its secrets if `secret`.
    pub(crate) fn fetch(&mut self, key: &TaskKey, secret: bool) -> Result<(), Failure> {
        if secret {
            if !self.secrets.contains_key(&own(key)) {
                return Err(Failure::fatal("the task has no secrets directory"));
            }
            self.secret.insert(own(key));
        }
        self.fetched.insert(own(key));
        Ok(())
    }

    /// Removes all of an allocation.
    pub(crate) fn remove(&mut self, alloc: AllocId) {
        self.allocs.remove(&alloc);
        self.quotas.remove(&alloc);
        self.tasks.retain(|(of, _)| *of != alloc);
        self.fetched.retain(|(of, _)| *of != alloc);
        self.payloads.retain(|(of, _), _| *of != alloc);
        self.links.retain(|(of, _), _| *of != alloc);
        self.secret.retain(|(of, _)| *of != alloc);
        self.secrets.retain(|(of, _), _| *of != alloc);
        self.disks.remove(&alloc);
    }
}

fn own(key: &TaskKey) -> (AllocId, TaskName) {
    (key.alloc, key.task.clone())
}
