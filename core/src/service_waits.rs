//! Tasks that wait for services: who waits, for what, and who may go on. Nothing of it is saved: a task that still
//! waits says so again to the next agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::TaskKey;

/// The tasks that wait for services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceWaits {
    #[serde(with = "crate::pairs")]
    waits: BTreeMap<TaskKey, ServiceWait>,
    /// Whether somebody waits whose services nobody looked for yet.
    is_new: bool,
}

/// One task's wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ServiceWait {
    services: Vec<String>,
    granted: bool,
}

impl ServiceWaits {
    /// The task waits until these services of its job's namespace are healthy. Returns whether it did not wait
    /// for them before.
    pub(crate) fn wait(&mut self, task: TaskKey, services: Vec<String>) -> bool {
        let wait = ServiceWait {
            services,
            granted: false,
        };
        if self.waits.get(&task) == Some(&wait) {
            return false;
        }
        self.waits.insert(task, wait);
        self.is_new = true;
        true
    }

    /// Whether the task may go on: once, then it would wait again.
    pub(crate) fn take_granted(&mut self, task: &TaskKey) -> bool {
        let granted = self.waits.get(task).is_some_and(|wait| wait.granted);
        if granted {
            self.waits.remove(task);
        }
        granted
    }

    /// The task may go on.
    pub(crate) fn grant(&mut self, task: &TaskKey) {
        if let Some(wait) = self.waits.get_mut(task) {
            wait.granted = true;
        }
    }

    /// Whether somebody waits whose services nobody looked for since this was asked last.
    pub(crate) fn take_new(&mut self) -> bool {
        core::mem::take(&mut self.is_new)
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Forgets the tasks that do not wait any more.
    pub(crate) fn retain(&mut self, waits: impl Fn(&TaskKey) -> bool) {
        self.waits.retain(|task, _| waits(task));
    }

    /// Who waits, and for what.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TaskKey, &[String])> {
        self.waits
            .iter()
            .map(|(task, wait)| (task, wait.services.as_slice()))
    }

    /// What a task waits for.
    pub fn of(&self, task: &TaskKey) -> &[String] {
        self.waits.get(task).map_or(&[], |wait| &wait.services)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AllocId;

    fn task(name: &str) -> TaskKey {
        TaskKey {
            alloc: AllocId(1),
            task: name.into(),
        }
    }

    #[test]
    fn services_of_each_new_waiter_are_looked_for() {
        let mut waits = ServiceWaits::default();
        for name in ["a", "b"] {
            assert!(waits.wait(task(name), vec!["db".to_owned()]));
            assert!(waits.take_new(), "{name} is new");
            assert!(!waits.wait(task(name), vec!["db".to_owned()]));
            assert!(!waits.take_new(), "{name} waits as before");
        }
        assert!(waits.wait(task("a"), vec!["web".to_owned()]));
        assert!(waits.take_new(), "it waits for something else");
    }
}
