//! How many copies there shall be, within which bounds, and what was asked of that.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::View;
use drover_core::fnv::fnv1a;
use drover_core::ids::{EvalId, uuid_of_version};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::scaling::ScalingEvent;
use drover_core::store::record::{AllocRecord, JobRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How far a job's groups are scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct ScaleStatus {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub job_create_index: u64,
    pub job_modify_index: u64,
    pub job_stopped: bool,
    pub task_groups: BTreeMap<String, GroupScale>,
}

/// How far a group is scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GroupScale {
    pub desired: i64,
    pub placed: u64,
    pub running: u64,
    pub healthy: u64,
    pub unhealthy: u64,
    pub events: Option<Vec<ScalingEventDto>>,
}

/// Something that was asked of a count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct ScalingEventDto {
    pub time: i64,
    pub count: Option<i64>,
    pub previous_count: i64,
    pub message: String,
    pub error: bool,
    pub meta: Value,
    #[serde(rename = "EvalID")]
    pub eval_id: Option<String>,
    pub create_index: u64,
}

impl ScaleStatus {
    /// Of a job, as it is now.
    pub fn of(view: View<'_>, record: &JobRecord) -> ScaleStatus {
        let job = &record.job;
        let groups = job.task_groups.iter();
        let allocs = view.shown_allocs_of(&job.key()).map(|alloc| alloc.record());
        let live: Vec<&AllocRecord> = allocs.filter(|alloc| !alloc.is_terminal()).collect();
        let of_group = |group: &TaskGroup| {
            let here = || live.iter().filter(|one| one.group.as_str() == group.name);
            let count = |wanted: &dyn Fn(&AllocRecord) -> bool| {
                here().filter(|alloc| wanted(alloc)).count() as u64
            };
            let healthy = |alloc: &AllocRecord| alloc.health.map(|health| health.healthy);
            let events = record.scaling_events.get(&group.name.as_str().into());
            GroupScale {
                desired: if job.stop { 0 } else { group.wanted() },
                placed: count(&|_| true),
                running: count(&|alloc| alloc.status == ClientStatus::Running),
                healthy: count(&|alloc| healthy(alloc) == Some(true)),
                unhealthy: count(&|alloc| healthy(alloc) == Some(false)),
                events: events.map(|events| {
                    let newest_first = events.iter().rev();
                    newest_first
                        .map(|event| ScalingEventDto::of(event))
                        .collect()
                }),
            }
        };
        ScaleStatus {
            job_id: job.id.clone(),
            namespace: job.namespace.clone(),
            job_create_index: job.create_index,
            job_modify_index: job.modify_index,
            job_stopped: job.stop,
            task_groups: groups
                .map(|group| (group.name.clone(), of_group(group)))
                .collect(),
        }
    }
}

impl ScalingEventDto {
    fn of(event: &ScalingEvent) -> ScalingEventDto {
        ScalingEventDto {
            time: event.time.0,
            count: event.count,
            previous_count: event.previous,
            message: event.message.to_string(),
            error: event.error,
            meta: serde_json::to_value(&event.meta).unwrap_or_default(),
            eval_id: event.eval.map(|id| id.to_string()),
            create_index: event.index,
        }
    }
}

/// The bounds of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct PolicyDto {
    #[serde(rename = "ID")]
    pub id: String,
    pub enabled: bool,
    #[serde(rename = "Type")]
    pub kind: String,
    pub target: BTreeMap<String, String>,
    pub min: i64,
    pub max: i64,
    pub policy: Value,
    pub create_index: u64,
    pub modify_index: u64,
}

impl PolicyDto {
    /// The policy of a group, if it has one. Its id stays as long as the job is known.
    pub fn of(record: &Arc<JobRecord>, group: &TaskGroup) -> Option<PolicyDto> {
        let scaling = group.scaling.as_ref()?;
        let job = &record.job;
        // Since when it has been as it is, and since when there has been one.
        let versions = || record.newest_first();
        let of_version = |job: &Job| job.group(&group.name).and_then(|one| one.scaling.clone());
        let same = versions().take_while(|job| of_version(job).as_ref() == Some(scaling));
        let some = versions().take_while(|job| of_version(job).is_some());
        let since = |index: Option<u64>| index.unwrap_or(job.job_modify_index);
        let target = [
            ("Namespace", &job.namespace),
            ("Job", &job.id),
            ("Group", &group.name),
        ];
        Some(PolicyDto {
            id: policy_id(job, group),
            enabled: scaling.enabled,
            kind: scaling.kind.clone(),
            target: target
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .into(),
            min: scaling.min.unwrap_or(0),
            max: scaling.max.unwrap_or(0),
            policy: serde_json::to_value(&scaling.policy).unwrap_or_default(),
            create_index: since(some.last().map(|job| job.job_modify_index)),
            modify_index: since(same.last().map(|job| job.job_modify_index)),
        })
    }

    /// The policy as lists show it.
    pub fn stub(&self) -> Value {
        json!({
            "ID": self.id,
            "Enabled": self.enabled,
            "Type": self.kind,
            "Target": self.target,
            "CreateIndex": self.create_index,
            "ModifyIndex": self.modify_index,
        })
    }
}

/// The id of the policy of a group: always the same for the same group of the same job.
pub(in crate::http) fn policy_id(job: &Job, group: &TaskGroup) -> String {
    let (namespace, created) = (&job.namespace, job.create_index);
    let name = format!("{namespace}\0{}\0{}\0{created}", job.id, group.name);
    let high = fnv1a(name.as_bytes());
    let low = fnv1a(format!("policy\0{name}").as_bytes());
    let bits = (u128::from(high) << 64) | u128::from(low);
    EvalId(uuid_of_version(8, bits)).to_string()
}
