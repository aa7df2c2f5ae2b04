//! Scaling: counts within their bounds, and what is remembered of them.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::agent::requests::{Request, ScaleJob};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{GroupName, RequestId};
use drover_core::model::eval::Deployment;
use drover_core::model::job::JobType;
use drover_core::store::record::JobRecord;

use super::limits::SCALING_EVENTS_OF_GROUP;
use super::{Checker, Property, Verdict};

/// What is remembered of scaling.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaling {
    /// Whether each request that is not answered yet is to be refused.
    refused: BTreeMap<RequestId, bool>,
    /// What was asked in this step, if it is to be done.
    asked: Option<(ScaleJob, usize)>,
}

impl Scaling {
    pub(super) fn agent_died(&mut self) {
        *self = Scaling::default();
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        self.asked = None;
        let view = agent.view();
        let Request::ScaleJob(asked) = asked else {
            return;
        };
        if view.shutdown().is_some() {
            return;
        }
        let known = view.job(&asked.job);
        let rollout = known.and_then(|job| job.deployment);
        let active = rollout.and_then(|id| view.deployment(id));
        let active = active.is_some_and(|one| Deployment::is_active(one));
        let refused = known.is_none_or(|known| is_refused(known, asked, active));
        self.refused.insert(request, refused);
        let events = known.map_or(0, |known| events(known, &asked.group));
        self.asked = (!refused).then(|| (asked.clone(), events));
    }
}

/// Whether a count is out of bounds, or nothing can be scaled now.
fn is_refused(known: &JobRecord, asked: &ScaleJob, active: bool) -> bool {
    let job = &known.job;
    let Some(group) = job.group(asked.group.as_str()) else {
        return true;
    };
    // Whoever names an index names the one that the job's specification is shown with.
    let shown = job.job_modify_index;
    if asked.expect_index.is_some_and(|expected| expected != shown) {
        return true;
    }
    let Some(count) = asked.count else {
        return false;
    };
    let one_per_node = matches!(job.job_type, JobType::System | JobType::Sysbatch);
    let bounds = group.scaling.as_ref();
    let outside = bounds.is_some_and(|bounds| {
        bounds.min.is_some_and(|min| count < min) || bounds.max.is_some_and(|max| count > max)
    });
    one_per_node || job.stop || outside || active
}

fn events(job: &JobRecord, group: &GroupName) -> usize {
    job.scaling_events.get(group).map_or(0, Vec::len)
}

impl Checker {
    /// A group is scaled exactly if the count is within its bounds, no roll-out is under way, and the job is as whoever
    /// asks expects it.
    pub(super) fn scaling_is_bounded(&mut self, request: RequestId, reply: &Reply) -> Verdict {
        let Some(refused) = self.scaling.refused.remove(&request) else {
            return Ok(());
        };
        let was = matches!(
            reply,
            Reply::Refused(Refusal::Invalid(_) | Refusal::NotFound(_))
        );
        self.sometimes(Property::SometimesScalingIsRefused, was);
        self.holds(Property::ScalingIsBounded, refused == was, || {
            format!("{request:?} {reply:?}")
        })
    }

    /// A group that was scaled shall have as many copies as somebody asked, and that is remembered.
    pub(super) fn scaled_group_has_its_count(&mut self, agent: &Agent) -> Verdict {
        let Some((asked, before)) = self.scaling.asked.take() else {
            return Ok(());
        };
        let Some(job) = agent.view().job(&asked.job) else {
            return Ok(());
        };
        let group = job.job.group(asked.group.as_str());
        let count = group.and_then(|group| group.count);
        let holds = asked.count.is_none() || asked.count == count;
        self.holds(Property::ScaledGroupHasItsCount, holds, || {
            format!("{asked:?} {count:?}")
        })?;
        let kept = job.scaling_events.get(&asked.group);
        let last = kept.and_then(|events| events.last());
        let noted = last.is_some_and(|last| last.count == asked.count);
        let bounded = events(job, &asked.group) == (before + 1).min(SCALING_EVENTS_OF_GROUP);
        self.holds(Property::ScalingEventsAreKept, noted && bounded, || {
            format!("{asked:?} {kept:?}")
        })
    }
}
