//! Evaluations and deployments.

use std::collections::BTreeMap;

use drover_core::agent::View;
use drover_core::ids::GroupName;
use drover_core::model::eval::{Deployment, Evaluation, Trigger};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::scheduler::reconcile::copies;
use drover_core::store::record::AllocRecord;
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::metric::AllocMetric;
use super::plan::PlanAnnotations;
use crate::http::records::EvalRecords;
use crate::times;

/// An evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct EvaluationDto {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    pub priority: i64,
    #[serde(rename = "Type")]
    pub job_type: String,
    pub triggered_by: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_modify_index: u64,
    #[serde(rename = "DeploymentID", skip_serializing_if = "String::is_empty")]
    pub deployment_id: String,
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status_description: String,
    /// Until when it waits, or did, for the replacement of a failed allocation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wait_until: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub previous_eval: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_eval: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub blocked_eval: String,
    #[serde(rename = "FailedTGAllocs", skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_groups: BTreeMap<String, AllocMetric>,
    /// What the plan did that completed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_annotations: Option<PlanAnnotations>,
    pub queued_allocations: BTreeMap<String, u64>,
    /// The state that it was made from.
    pub snapshot_index: u64,
    /// Those that came of it or that it came of, if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related_evals: Option<Vec<EvalStub>>,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// An evaluation beside another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct EvalStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub priority: i64,
    #[serde(rename = "Type")]
    pub job_type: String,
    pub triggered_by: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    pub status: String,
    pub status_description: String,
    pub next_eval: String,
    pub previous_eval: String,
    pub blocked_eval: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// A roll-out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DeploymentDto {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_version: u64,
    pub job_create_index: u64,
    pub job_modify_index: u64,
    pub job_spec_modify_index: u64,
    pub is_multiregion: bool,
    pub task_groups: BTreeMap<String, DeploymentGroup>,
    pub status: String,
    pub status_description: String,
    pub eval_priority: i64,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// How far the roll-out of one group is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct DeploymentGroup {
    pub auto_revert: bool,
    pub auto_promote: bool,
    pub promoted: bool,
    pub placed_canaries: Option<Vec<String>>,
    pub desired_canaries: i64,
    pub desired_total: u64,
    pub placed_allocs: u64,
    pub healthy_allocs: u64,
    pub unhealthy_allocs: u64,
    pub progress_deadline: i64,
    pub require_progress_by: String,
}

fn plan_annotations(eval: &Evaluation) -> Option<PlanAnnotations> {
    let changes = eval.changes.iter().map(|(group, changes)| (group, changes));
    (!eval.changes.is_empty()).then(|| PlanAnnotations::of(changes, Vec::new()))
}

impl EvaluationDto {
    /// An evaluation as it is shown.
    pub(in crate::http) fn of(records: &EvalRecords) -> EvaluationDto {
        let eval = &records.eval;
        let job = records.job.as_deref();
        // What is stopped is rolled out no more: whoever follows its evaluation waits for no roll-out.
        let rolls_out = eval.trigger != Trigger::JobDeregister;
        let deployment = eval.deployment.filter(|_| rolls_out);
        let missing = |group: &String| u64::from(records.blocked.contains(group));
        let groups = job
            .map(|job| job.task_groups.as_slice())
            .unwrap_or_default();
        EvaluationDto {
            id: eval.id.to_string(),
            namespace: eval.job.namespace.to_string(),
            priority: job.map_or(50, |job| job.priority),
            job_type: job
                .map_or("service", |job| job.job_type.as_str())
                .to_owned(),
            triggered_by: eval.trigger.as_str().to_owned(),
            job_id: eval.job.id.to_string(),
            job_modify_index: job.map_or(0, |job| job.job_modify_index),
            deployment_id: deployment.map(|id| id.to_string()).unwrap_or_default(),
            status: eval.status.as_str().to_owned(),
            status_description: records.description.to_owned(),
            wait_until: (eval.follow_up.as_ref())
                .map(|it| times::to_nanos(it.wait_until))
                .unwrap_or_default(),
            previous_eval: eval
                .previous_eval
                .map(|id| id.to_string())
                .unwrap_or_default(),
            blocked_eval: eval
                .blocked_eval
                .map(|id| id.to_string())
                .unwrap_or_default(),
            failed_groups: (eval.failed_groups.iter())
                .map(|(name, why)| (name.clone(), AllocMetric::not_placed(&records.node, why)))
                .collect(),
            queued_allocations: groups
                .iter()
                .map(|g| (g.name.clone(), missing(&g.name)))
                .collect(),
            plan_annotations: plan_annotations(eval),
            snapshot_index: eval.modify_index,
            create_index: eval.create_index,
            modify_index: eval.modify_index,
            create_time: eval.time.0,
            modify_time: eval.time.0,
            ..EvaluationDto::default()
        }
    }
}

impl EvalStub {
    /// An evaluation as it is shown beside another.
    pub(in crate::http) fn of(eval: &EvalRecords) -> EvalStub {
        let whole = EvaluationDto::of(eval);
        EvalStub {
            id: whole.id,
            priority: whole.priority,
            job_type: whole.job_type,
            triggered_by: whole.triggered_by,
            namespace: whole.namespace,
            job_id: whole.job_id,
            node_id: String::new(),
            deployment_id: whole.deployment_id,
            status: whole.status,
            status_description: whole.status_description,
            next_eval: whole.next_eval,
            previous_eval: whole.previous_eval,
            blocked_eval: whole.blocked_eval,
            create_index: whole.create_index,
            modify_index: whole.modify_index,
            create_time: whole.create_time,
            modify_time: whole.modify_time,
        }
    }
}

impl DeploymentDto {
    /// A roll-out as it is shown. When it began is not remembered; the job's version was
    /// submitted then.
    pub fn of(view: View<'_>, deployment: &Deployment) -> DeploymentDto {
        let record = view.job(&deployment.job);
        let job = record.and_then(|record| record.version(deployment.job_version));
        let submitted = job.map_or(Timestamp::default(), |job| job.submit_time);
        let groups = job
            .map(|job| job.task_groups.as_slice())
            .unwrap_or_default();
        let of_group = |group: &TaskGroup| {
            let update = group.update.as_ref()?;
            let job = job?;
            let shape = group_of(view, deployment, job, group, update, submitted);
            Some((group.name.clone(), shape))
        };
        let changed = view
            .shown_allocs_of(&deployment.job)
            .map(|alloc| alloc.record())
            .filter(|alloc| alloc.deployment == Some(deployment.id))
            .map(seen_of);
        let (alloc_index, alloc_time) = changed.max().unwrap_or_default();
        DeploymentDto {
            id: deployment.id.to_string(),
            namespace: deployment.job.namespace.to_string(),
            job_id: deployment.job.id.to_string(),
            job_version: deployment.job_version,
            job_create_index: job.map_or(0, |job| job.create_index),
            job_modify_index: job.map_or(0, |job| job.job_modify_index),
            job_spec_modify_index: job.map_or(0, |job| job.job_modify_index),
            is_multiregion: false,
            task_groups: groups.iter().filter_map(of_group).collect(),
            status: deployment.status.as_str().to_owned(),
            status_description: deployment.description.clone(),
            eval_priority: job.map_or(50, |job| job.priority),
            create_index: deployment.create_index,
            modify_index: deployment.modify_index.max(alloc_index),
            create_time: submitted.0,
            modify_time: submitted.0.max(alloc_time).max(deployment.modify_time.0),
        }
    }
}

/// When an allocation last changed something of its roll-out. Until its health is known, that is when it was made:
/// whoever watches the roll-out is not woken by each event of its tasks.
fn seen_of(alloc: &AllocRecord) -> (u64, i64) {
    match alloc.health {
        None => (alloc.create_index, alloc.create_time.0),
        Some(_) => (alloc.modify_index, alloc.modify_time.0),
    }
}

fn group_of(
    view: View<'_>,
    deployment: &Deployment,
    job: &Job,
    group: &TaskGroup,
    update: &drover_core::model::policy::UpdateStrategy,
    submitted: Timestamp,
) -> DeploymentGroup {
    let placed = view
        .shown_allocs_of(&deployment.job)
        .map(|alloc| alloc.record())
        .filter(|alloc| alloc.deployment == Some(deployment.id))
        .filter(|alloc| alloc.group.as_str() == group.name);
    let health = |wanted: bool| {
        let of = placed.clone().filter_map(|alloc| alloc.health);
        of.filter(|health| health.healthy == wanted).count() as u64
    };
    let progress = placed
        .clone()
        .filter_map(|alloc| alloc.health)
        .map(|health| health.timestamp);
    let name = GroupName::from(group.name.as_str());
    let rollout = deployment.groups.get(&name);
    let promoted = rollout.and_then(|rollout| rollout.promoted);
    let canaries: Vec<String> = match rollout {
        Some(rollout) if rollout.promoted.is_some() => {
            let canaries = rollout.promoted_canaries.iter();
            canaries.map(ToString::to_string).collect()
        }
        Some(_) | None => {
            let canaries = placed.clone().filter(|alloc| alloc.canary);
            canaries.map(|alloc| alloc.id.to_string()).collect()
        }
    };
    let since = progress.chain(placed.clone().map(|alloc| alloc.create_time));
    let since = since.chain(promoted).chain(deployment.resumed);
    let since = since.max().unwrap_or_default().max(submitted);
    DeploymentGroup {
        auto_revert: update.auto_revert,
        auto_promote: update.auto_promote,
        promoted: promoted.is_some(),
        placed_canaries: Some(canaries).filter(|list| !list.is_empty()),
        desired_canaries: rollout.map_or(0, |rollout| i64::from(rollout.canaries)),
        desired_total: u64::from(copies(job, group)),
        placed_allocs: placed.clone().count() as u64,
        healthy_allocs: health(true),
        unhealthy_allocs: health(false),
        progress_deadline: update.progress_deadline.0,
        require_progress_by: times::to_nanos(since + update.progress_deadline),
    }
}
