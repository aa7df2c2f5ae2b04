//! What registering a job would do.

use std::collections::BTreeMap;

use drover_core::ids::GroupName;
use drover_core::model::eval::GroupChanges;
use drover_core::scheduler::DryRun;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::JobDiff;
use super::metric::AllocMetric;
use drover_api::AllocStub;

use crate::http::records::NodeNames;

/// The answer to a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Planned {
    pub annotations: PlanAnnotations,
    #[serde(rename = "FailedTGAllocs")]
    pub failed_groups: Option<BTreeMap<String, AllocMetric>>,
    pub job_modify_index: u64,
    pub created_evals: Option<Vec<Value>>,
    pub diff: Option<JobDiff>,
    pub next_periodic_launch: Option<String>,
    pub warnings: String,
    pub index: u64,
}

/// What a plan does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct PlanAnnotations {
    #[serde(rename = "DesiredTGUpdates")]
    pub desired_updates: BTreeMap<String, DesiredUpdates>,
    pub preempted_allocs: Option<Vec<AllocStub>>,
}

/// What becomes of the copies of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DesiredUpdates {
    pub ignore: u32,
    pub place: u32,
    pub migrate: u32,
    pub stop: u32,
    pub in_place_update: u32,
    pub destructive_update: u32,
    pub canary: u32,
    pub preemptions: u32,
    pub disconnect: u32,
    pub reconnect: u32,
    pub reschedule_now: u32,
    pub reschedule_later: u32,
}

impl DesiredUpdates {
    fn of(changes: &GroupChanges) -> DesiredUpdates {
        DesiredUpdates {
            ignore: changes.ignore,
            place: changes.place,
            stop: changes.stop,
            in_place_update: changes.in_place,
            destructive_update: changes.destructive,
            canary: changes.canary,
            preemptions: changes.preemptions,
            reschedule_now: changes.reschedule_now,
            reschedule_later: changes.reschedule_later,
            ..DesiredUpdates::default()
        }
    }

    /// Whether something is started or ended.
    pub fn starts_or_ends(&self) -> bool {
        self.place + self.stop + self.migrate + self.destructive_update + self.canary > 0
    }
}

impl PlanAnnotations {
    /// What a plan does.
    pub fn of<'a>(
        groups: impl IntoIterator<Item = (&'a String, &'a GroupChanges)>,
        preempted: Vec<AllocStub>,
    ) -> PlanAnnotations {
        let groups = groups.into_iter();
        PlanAnnotations {
            desired_updates: groups
                .map(|(name, changes)| (name.clone(), DesiredUpdates::of(changes)))
                .collect(),
            preempted_allocs: Some(preempted).filter(|list| !list.is_empty()),
        }
    }
}

impl AllocMetric {
    /// Why groups cannot be placed, and how many copies of each.
    pub(crate) fn of_dry_run(
        node: &NodeNames,
        dry_run: &DryRun,
    ) -> Option<BTreeMap<String, AllocMetric>> {
        let failed = dry_run.unplaced.failed.iter().map(|(name, why)| {
            let copies = dry_run.unplaced.copies.get(&GroupName::from(name.as_str()));
            let copies = copies.map_or(1, |missing| {
                missing.place + missing.destructive + missing.canary
            });
            let metric = AllocMetric {
                coalesced_failures: u64::from(copies.saturating_sub(1)),
                ..AllocMetric::not_placed(node, why)
            };
            (name.clone(), metric)
        });
        Some(failed.collect::<BTreeMap<_, _>>()).filter(|failed| !failed.is_empty())
    }
}
