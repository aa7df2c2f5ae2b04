//! The latest that was measured, and what it comes to for one allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::devices::{DeviceTable, DeviceUsage};
use super::usage::{TaskUsage, Usage};
use crate::ids::{AllocId, TaskKey, TaskName};
use crate::model::device::AssignedDevices;
use crate::time::Timestamp;

/// The latest of every task and every device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    tasks: BTreeMap<TaskKey, Arc<TaskUsage>>,
    /// The devices.
    pub devices: DeviceTable,
}

/// What an allocation uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocUsage {
    /// All its running tasks together.
    pub usage: Usage,
    /// Their devices, each group once.
    pub devices: DeviceUsage,
    /// Each task that was ever measured, also one that ended.
    pub tasks: BTreeMap<TaskName, OneTask>,
    /// When its latest task was measured.
    pub at: Timestamp,
}

/// What a task of an allocation uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneTask {
    /// What was measured last.
    pub usage: Arc<TaskUsage>,
    /// What was measured of its devices.
    pub devices: DeviceUsage,
}

impl Board {
    /// Notes what was measured of a task.
    pub fn note(&mut self, task: TaskKey, usage: Arc<TaskUsage>) {
        self.tasks.insert(task, usage);
    }

    /// What was measured of a task last.
    pub fn task(&self, task: &TaskKey) -> Option<&Arc<TaskUsage>> {
        self.tasks.get(task)
    }

    /// Forgets the tasks that were not measured since then.
    pub fn forget_before(&mut self, time: Timestamp) {
        self.tasks.retain(|_, usage| usage.at >= time);
    }

    /// What an allocation uses that holds these devices: what its running tasks use together. It
    /// costs its own tasks and devices.
    pub fn of(
        &self,
        alloc: AllocId,
        held: &[AssignedDevices],
        runs: impl Fn(&TaskName) -> bool,
    ) -> AllocUsage {
        let first = TaskKey {
            alloc,
            task: TaskName::default(),
        };
        let own = self.tasks.range(first..);
        let own = own.take_while(|(key, _)| key.alloc == alloc);
        let mut sum = AllocUsage::default();
        for (key, usage) in own {
            let name = key.task.as_str();
            let devices = self
                .devices
                .of(held.iter().filter(|held| held.task == name));
            if runs(&key.task) {
                sum.usage = sum.usage.plus(usage.usage);
                sum.devices.merge(&devices);
                sum.at = sum.at.max(usage.at);
            }
            let usage = usage.clone();
            sum.tasks
                .insert(key.task.clone(), OneTask { usage, devices });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::usage::Memory;

    fn task(alloc: u128, name: &str, rss: Option<u64>, at: i64) -> (TaskKey, Arc<TaskUsage>) {
        let memory = Memory {
            rss,
            ..Memory::default()
        };
        let usage = Usage {
            memory,
            ..Usage::default()
        };
        let key = TaskKey {
            alloc: AllocId(alloc),
            task: TaskName::from(name),
        };
        let at = Timestamp(at);
        let task = TaskUsage {
            usage,
            at,
            ..TaskUsage::default()
        };
        (key, Arc::new(task))
    }

    #[test]
    fn only_running_tasks_of_the_allocation_are_added_up() {
        let mut board = Board::default();
        for (key, usage) in [
            task(1, "other", Some(1000), 90),
            task(2, "a", Some(10), 5),
            task(2, "b", None, 7),
            task(2, "dead", Some(100), 80),
            task(3, "other", Some(1000), 90),
        ] {
            board.note(key, usage);
        }
        let sum = board.of(AllocId(2), &[], |name| name.as_str() != "dead");
        assert_eq!(sum.usage.memory.rss, Some(10));
        assert_eq!((sum.at, sum.tasks.len()), (Timestamp(7), 3));
        let none = board.of(AllocId(2), &[], |_| false);
        assert_eq!(none.usage.memory.rss, None);
        board.forget_before(Timestamp(80));
        assert_eq!(board.of(AllocId(2), &[], |_| true).tasks.len(), 1);
        assert_eq!(board.of(AllocId(1), &[], |_| true).tasks.len(), 1);
    }

    #[test]
    fn what_was_noted_last_of_a_task_is_known() {
        let mut board = Board::default();
        let (key, first) = task(1, "a", Some(1), 5);
        assert_eq!(board.task(&key), None);
        board.note(key.clone(), first);
        let (_, second) = task(1, "a", Some(2), 6);
        board.note(key.clone(), second.clone());
        assert_eq!(board.task(&key), Some(&second));
        assert_eq!(board.task(&task(1, "b", None, 0).0), None);
    }
}
