//! The record that stays of an allocation whose directory was garbage-collected: what was wanted of it,
//! what became of it, and how its tasks ended. It is what people and other programs ask for afterwards,
//! and no more: small, because there may be thousands.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::record::AllocRecord;
use crate::ids::TaskName;
use crate::model::alloc::TaskState;
use crate::model::event::{EventType, TaskEvent};

/// How many of a task's last events are kept.
pub const KEPT_EVENTS: usize = 5;

/// An allocation of which the directory is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectedAlloc {
    /// What was wanted of it and what became of it.
    pub alloc: AllocRecord,
    /// Its tasks, each with its last [`KEPT_EVENTS`] events, its last end among them.
    pub tasks: BTreeMap<TaskName, TaskState>,
}

impl CollectedAlloc {
    /// What stays of an allocation. What only mattered while it was there does not: disks, launches,
    /// another node's token.
    pub fn of<'a>(
        alloc: &AllocRecord,
        tasks: impl Iterator<Item = (&'a TaskName, &'a TaskState)>,
    ) -> CollectedAlloc {
        let tasks = tasks.map(|(name, state)| {
            let mut state = state.clone();
            state.events = last_events(&state.events);
            (name.clone(), state)
        });
        CollectedAlloc {
            alloc: AllocRecord {
                destroying: false,
                preempts: Vec::new(),
                devices: Vec::new(),
                launches: BTreeMap::new(),
                ..alloc.clone()
            },
            tasks: tasks.collect(),
        }
    }
}

/// The last events, among them the task's last end whatever followed it: it holds the exit code.
fn last_events(events: &[Arc<TaskEvent>]) -> Vec<Arc<TaskEvent>> {
    let dropped = events.len().saturating_sub(KEPT_EVENTS);
    let mut ends = events.iter();
    let end = ends.rposition(|event| event.kind == EventType::Terminated);
    let end = end.filter(|end| *end < dropped);
    let dropped = dropped + usize::from(end.is_some());
    let end = end.and_then(|end| events.get(end));
    let last = events.iter().skip(dropped);
    end.into_iter().chain(last).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn kept(events: &[EventType]) -> Vec<EventType> {
        let event = |kind: &EventType| Arc::new(TaskEvent::new(*kind, Timestamp(0), ""));
        let events: Vec<_> = events.iter().map(event).collect();
        last_events(&events)
            .iter()
            .map(|event| event.kind)
            .collect()
    }

    #[test]
    fn last_terminated_event_is_kept() {
        use EventType::{HookFailed, Restarting, Started, Terminated};
        let few = [Started, Terminated];
        assert_eq!(kept(&few), few);
        let many = [
            Started, Terminated, Restarting, Started, Terminated, Restarting,
        ];
        assert_eq!(kept(&many), many[1..]);
        let end = [Started, Terminated];
        let later = [Restarting, HookFailed, Restarting, HookFailed, Restarting];
        let all = [&end[..], &later[..]].concat();
        assert_eq!(kept(&all), [&end[1..], &later[1..]].concat());
    }
}
