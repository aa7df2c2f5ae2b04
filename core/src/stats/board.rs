//! The latest that was measured, and what it comes to for one allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::devices::{DeviceTable, DeviceUsage};
use super::running::Running;
use super::usage::{TaskUsage, Usage};
use crate::ids::{AllocId, LaunchId, TaskKey, TaskName};
use crate::model::device::AssignedDevices;
use crate::time::Timestamp;

/// The latest of every task and every device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    tasks: BTreeMap<TaskKey, Measured>,
    /// The devices.
    pub devices: DeviceTable,
}

/// What was measured of a task last. A launch that is over may be heard of after the next one is, so two
/// launches have room; which of them runs is not for clocks to say.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    last: (LaunchId, Arc<TaskUsage>),
    other: Option<(LaunchId, Arc<TaskUsage>)>,
}

impl Measured {
    fn launches(&self) -> impl Iterator<Item = &(LaunchId, Arc<TaskUsage>)> {
        [&self.last].into_iter().chain(&self.other)
    }

    fn of(&self, launch: LaunchId) -> Option<&Arc<TaskUsage>> {
        let mut launches = self.launches();
        launches.find(|(id, _)| *id == launch).map(|(_, it)| it)
    }
}

/// What an allocation uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocUsage {
    /// All its running tasks together.
    pub usage: Usage,
    /// Their devices, each group once.
    pub devices: DeviceUsage,
    /// Each task that was measured, also one that ended.
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
    /// Notes what was measured of a launch of a task.
    pub fn note(&mut self, task: TaskKey, launch: LaunchId, usage: Arc<TaskUsage>) {
        let last = (launch, usage);
        let Some(known) = self.tasks.get_mut(&task) else {
            self.tasks.insert(task, Measured { last, other: None });
            return;
        };
        let before = core::mem::replace(&mut known.last, last);
        if before.0 != launch {
            known.other = Some(before);
        }
    }

    /// Forgets a launch that runs and cannot be measured any more: what it used is not what it uses.
    pub fn lose(&mut self, task: &TaskKey, launch: LaunchId) {
        let Some(known) = self.tasks.remove(task) else {
            return;
        };
        let launches = [Some(known.last), known.other].into_iter().flatten();
        let mut left = launches.filter(|(id, _)| *id != launch);
        if let Some(last) = left.next() {
            let other = left.next();
            self.tasks.insert(task.clone(), Measured { last, other });
        }
    }

    /// What was measured of a launch of a task last.
    pub fn launch(&self, task: &TaskKey, launch: LaunchId) -> Option<&Arc<TaskUsage>> {
        self.tasks.get(task)?.of(launch)
    }

    /// Forgets the tasks that were not measured since then.
    pub fn forget_before(&mut self, time: Timestamp) {
        self.tasks
            .retain(|_, it| it.launches().any(|(_, usage)| usage.at >= time));
    }

    /// What an allocation uses that holds these devices and whose tasks run so. It costs its own tasks
    /// and devices.
    pub fn of(&self, alloc: AllocId, held: &[AssignedDevices], running: &[Running]) -> AllocUsage {
        let first = TaskKey {
            alloc,
            task: TaskName::default(),
        };
        let own = self.tasks.range(first..);
        let own = own.take_while(|(key, _)| key.alloc == alloc);
        let ended = own.filter(|(key, _)| running.iter().all(|it| it.task != **key));
        let ended = ended.map(|(key, it)| {
            let usage = it.last.1.clone();
            let devices = DeviceUsage::default();
            (key.task.clone(), OneTask { usage, devices })
        });
        let mut sum = AllocUsage {
            tasks: ended.collect(),
            ..AllocUsage::default()
        };
        for task in running {
            let name = &task.task.task;
            let held = held.iter().filter(|held| held.task == name.as_str());
            let devices = self.devices.of(held);
            let usage = self.launch(&task.task, task.launch).cloned();
            if usage.is_none() && devices.is_empty() {
                continue;
            }
            let usage = usage.unwrap_or_default();
            sum.usage = sum.usage.plus(usage.usage);
            sum.devices.merge(&devices);
            sum.at = sum.at.max(usage.at);
            sum.tasks.insert(name.clone(), OneTask { usage, devices });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::reported_stats::{ReportedInstance, ReportedStats};
    use crate::model::device::GroupId;
    use crate::stats::usage::{Memory, Usage};

    const ALLOC: AllocId = AllocId(2);

    fn key(name: &str) -> TaskKey {
        TaskKey {
            alloc: ALLOC,
            task: TaskName::from(name),
        }
    }

    fn running(name: &str, launch: u128) -> Running {
        Running {
            task: key(name),
            launch: LaunchId(launch),
            driver: "mock_driver".into(),
        }
    }

    fn usage(rss: Option<u64>, at: i64) -> Arc<TaskUsage> {
        let memory = Memory {
            rss,
            ..Memory::default()
        };
        Arc::new(TaskUsage {
            usage: Usage {
                memory,
                ..Usage::default()
            },
            at: Timestamp(at),
            ..TaskUsage::default()
        })
    }

    #[test]
    fn alloc_usage_is_sum_of_running_launches() {
        let mut board = Board::default();
        for (alloc, name, launch, rss, at) in [
            (1, "other", 1, Some(1000), 90),
            (2, "a", 2, Some(10), 5),
            (2, "b", 3, None, 7),
            (2, "again", 4, Some(100), 80),
            (2, "ended", 5, Some(100), 80),
            (3, "other", 6, Some(1000), 90),
        ] {
            let alloc = AllocId(alloc);
            let key = TaskKey { alloc, ..key(name) };
            board.note(key, LaunchId(launch), usage(rss, at));
        }
        let runs = [running("a", 2), running("b", 3), running("again", 44)];
        let sum = board.of(ALLOC, &[], &runs);
        assert_eq!(sum.usage.memory.rss, Some(10));
        assert_eq!(sum.at, Timestamp(7));
        let names: Vec<&str> = sum.tasks.keys().map(TaskName::as_str).collect();
        assert_eq!(names, ["a", "b", "ended"]);
        let none = board.of(ALLOC, &[], &[]);
        assert_eq!((none.usage.memory.rss, none.tasks.len()), (None, 4));
        board.forget_before(Timestamp(80));
        assert_eq!(board.of(ALLOC, &[], &[]).tasks.len(), 2);
    }

    #[test]
    fn late_measurement_of_earlier_launch_is_ignored() {
        let mut board = Board::default();
        let launch = |number| LaunchId(number);
        let rss = |board: &Board, number| {
            let known = board.launch(&key("a"), launch(number));
            known.map(|usage| usage.usage.memory.rss)
        };
        board.note(key("a"), launch(1), usage(Some(1), 5));
        board.note(key("a"), launch(2), usage(Some(2), 6));
        board.note(key("a"), launch(1), usage(Some(3), 9));
        assert_eq!(rss(&board, 2), Some(Some(2)));
        board.note(key("a"), launch(2), usage(Some(4), 3));
        assert_eq!(
            (rss(&board, 1), rss(&board, 2)),
            (Some(Some(3)), Some(Some(4)))
        );
        board.note(key("a"), launch(3), usage(None, 4));
        assert_eq!((rss(&board, 1), rss(&board, 3)), (None, Some(None)));
    }

    #[test]
    fn unmeasurable_launch_is_forgotten() {
        let mut board = Board::default();
        board.note(key("a"), LaunchId(1), usage(Some(1), 5));
        board.note(key("a"), LaunchId(2), usage(Some(2), 6));
        board.lose(&key("a"), LaunchId(2));
        assert!(board.launch(&key("a"), LaunchId(2)).is_none());
        assert!(board.launch(&key("a"), LaunchId(1)).is_some());
        board.lose(&key("a"), LaunchId(3));
        board.lose(&key("a"), LaunchId(1));
        assert!(board.of(ALLOC, &[], &[]).tasks.is_empty());
    }

    #[test]
    fn devices_of_an_unmeasured_task_are_listed() {
        let group = GroupId {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: "big".to_owned(),
        };
        let reported = ReportedStats {
            vendor: group.vendor.clone(),
            kind: group.kind.clone(),
            name: group.name.clone(),
            instances: [("x".to_owned(), ReportedInstance::default())].into(),
        };
        let held = AssignedDevices {
            task: "a".to_owned(),
            plugin: "acme".to_owned(),
            group,
            ids: vec!["x".to_owned()],
        };
        let mut board = Board::default();
        assert_eq!(board.devices.report("acme", vec![reported]), Ok(()));
        let held = [held];
        let sum = board.of(ALLOC, &held, &[running("a", 1)]);
        assert_eq!((sum.devices.groups().len(), sum.tasks.len()), (1, 1));
        // Who ended holds nothing, and another may hold it already.
        board.note(key("a"), LaunchId(1), usage(Some(1), 5));
        let sum = board.of(ALLOC, &held, &[]);
        let listed = sum.tasks.values().any(|task| !task.devices.is_empty());
        assert!(sum.devices.is_empty() && !listed);
    }
}
