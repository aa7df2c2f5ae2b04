//! The failed allocations that one replaces, as Nomad tells of them.

use drover_core::agent::{ShownAlloc, View};
use drover_core::ids::{AllocId, NodeId};
use drover_core::scheduler::reschedule_delay;
use drover_core::store::record::AllocRecord;
use serde::{Deserialize, Serialize};

/// The failed allocations before one in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct RescheduleTracker {
    pub events: Vec<RescheduleEvent>,
    pub last_reschedule: String,
}

/// One of them: when it was replaced, and how long that had to wait, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct RescheduleEvent {
    pub reschedule_time: i64,
    /// Empty for one that is not known any more.
    #[serde(rename = "PrevAllocID")]
    pub prev_alloc_id: String,
    #[serde(rename = "PrevNodeID")]
    pub prev_node_id: String,
    pub delay: i64,
}

impl RescheduleTracker {
    /// What was replaced before an allocation; none if nothing was.
    pub(crate) fn of(
        view: View<'_>,
        node: NodeId,
        alloc: ShownAlloc<'_>,
    ) -> Option<RescheduleTracker> {
        let record = alloc.record();
        if record.reschedules.is_empty() {
            return None;
        }
        let group = alloc.job().group(record.group.as_str());
        let delay =
            |earlier| group.map_or(0, |group| reschedule_delay(alloc.job(), group, earlier).0);
        let mut replaced = replaced(view, record).into_iter();
        let newest_first = record.reschedules.iter().enumerate().rev();
        let events = newest_first.map(|(earlier, at)| RescheduleEvent {
            reschedule_time: at.0,
            prev_alloc_id: replaced
                .next()
                .map_or_else(String::new, |id| id.to_string()),
            prev_node_id: node.to_string(),
            delay: delay(earlier),
        });
        let mut events: Vec<_> = events.collect();
        events.reverse();
        let last_reschedule = "ok".to_owned();
        Some(RescheduleTracker {
            events,
            last_reschedule,
        })
    }
}

/// The failed ones that an allocation replaces, as far as they are known, the latest first. What was ended and replaced
/// for another reason is between them and counts for none.
fn replaced(view: View<'_>, record: &AllocRecord) -> Vec<AllocId> {
    let (mut failed, mut last) = (Vec::new(), record.reschedules.last());
    let mut before = record.previous;
    while let Some(alloc) = before
        .filter(|_| last.is_some())
        .and_then(|id| view.shown_alloc(id))
    {
        let earlier = alloc.record();
        if earlier.reschedules.last() != last {
            failed.push(earlier.id);
        }
        last = earlier.reschedules.last();
        before = earlier.previous;
    }
    failed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drover_core::agent::Agent;
    use drover_core::config::Config;
    use drover_core::model::alloc::ClientStatus;
    use drover_core::model::group::TaskGroup;
    use drover_core::model::job::Job;
    use drover_core::model::node::Node;
    use drover_core::store::record::JobRecord;
    use drover_core::store::{Key, Record, Saved};
    use drover_core::time::{Now, Span, Timestamp};

    use super::*;

    /// An allocation of the job, and the one before it, with the times at which failed ones were replaced.
    fn alloc(id: u128, previous: Option<u128>, replaced: &[i64]) -> (Key, Record) {
        let record = AllocRecord {
            id: AllocId(id),
            job: job().key(),
            group: "g".into(),
            previous: previous.map(AllocId),
            reschedules: replaced.iter().map(|at| Timestamp(*at)).collect(),
            status: ClientStatus::Failed,
            finished: true,
            ..AllocRecord::default()
        };
        (Key::Alloc(record.id), Record::Alloc(Arc::new(record)))
    }

    fn job() -> Job {
        let group = TaskGroup {
            name: "g".to_owned(),
            ..TaskGroup::default()
        };
        Job {
            id: "web".to_owned(),
            namespace: "default".to_owned(),
            stop: true,
            task_groups: vec![group],
            ..Job::default()
        }
    }

    #[test]
    fn each_failed_alloc_before_is_named_with_time_and_delay() {
        let record = JobRecord {
            job: Arc::new(job()),
            ..JobRecord::default()
        };
        let job = (Key::Job(job().key()), Record::Job(Arc::new(record)));
        // The third one was preempted, which costs nothing.
        let records = [
            job,
            alloc(1, None, &[]),
            alloc(2, Some(1), &[10]),
            alloc(3, Some(2), &[10, 20]),
            alloc(4, Some(3), &[10, 20]),
        ];
        let config = Config::new(1, Node::default(), "/alloc");
        let agent = Agent::restore(config, Saved::from_records(records), Now::default());
        let view = agent.view();
        let tracker = |id| RescheduleTracker::of(view, NodeId(7), view.shown_alloc(AllocId(id))?);
        assert_eq!(tracker(1), None);
        let events = tracker(4).map(|it| it.events).unwrap_or_default();
        let of = |event: &RescheduleEvent| {
            (
                event.reschedule_time,
                event.prev_alloc_id.clone(),
                event.delay,
            )
        };
        let events: Vec<_> = events.iter().map(of).collect();
        let (first, second) = (AllocId(1).to_string(), AllocId(2).to_string());
        assert_eq!(
            events,
            [
                (10, first, Span::secs(30).0),
                (20, second, Span::secs(60).0)
            ]
        );
    }
}
