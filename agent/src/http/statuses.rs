//! Overviews of jobs: how each of them is, with its allocations and its roll-out, in one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Request, State};
use drover_core::agent::View;
use drover_core::ids::JobKey;
use drover_core::model::eval::{Deployment, DeploymentStatus};
use drover_core::model::job::Job;
use drover_core::store::record::JobRecord;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::blocking::{Indexed, blocking_query};
use super::dto::AllocStub;
use super::filter::{Picked, Row, Unpicked};
use super::params::Params;
use super::records::{AllocRecords, JobRecords, NodeNames};
use super::{Api, body, list};
use crate::acl::Capability;

/// The key of a job's `meta` by which it is known to be of a pack.
const PACK: &str = "pack.name";

/// A job as overviews show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct StatusDto {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "ParentID")]
    parent_id: String,
    name: String,
    namespace: String,
    #[serde(rename = "Type")]
    job_type: &'static str,
    datacenters: Vec<String>,
    node_pool: String,
    priority: i64,
    version: u64,
    status: &'static str,
    stop: bool,
    is_pack: bool,
    submit_time: i64,
    modify_index: u64,
    group_count_sum: i64,
    allocs: Option<Vec<AllocDto>>,
    child_statuses: Option<Vec<&'static str>>,
    latest_deployment: Option<RolloutDto>,
}

/// An allocation as overviews show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AllocDto {
    #[serde(rename = "ID")]
    id: String,
    group: String,
    client_status: String,
    #[serde(rename = "NodeID")]
    node_id: String,
    job_version: u64,
    deployment_status: HealthDto,
    #[serde(rename = "FollowupEvalID")]
    followup_eval_id: String,
    has_paused_task: bool,
}

/// How an allocation fares in its roll-out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct HealthDto {
    canary: bool,
    healthy: Option<bool>,
}

/// A roll-out as overviews show it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RolloutDto {
    #[serde(rename = "ID")]
    id: String,
    is_active: bool,
    job_version: u64,
    status: &'static str,
    status_description: String,
    all_auto_promote: bool,
    requires_promotion: bool,
}

/// A job as it was at one moment, with what an overview shows of it.
#[derive(Debug)]
struct StatusRecords {
    job: JobRecords,
    allocs: Vec<AllocRecords>,
    /// How the jobs are that were made of it; none where it is not there to make jobs of.
    children: Option<Vec<&'static str>>,
    rollout: Option<RolloutDto>,
}

/// Filters see whole jobs.
impl Row for StatusRecords {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        self.job.pick(path)
    }
}

/// The body of a request for some jobs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    jobs: Vec<Named>,
    include_children: bool,
}

/// A job that is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Named {
    #[serde(rename = "ID")]
    id: String,
    namespace: String,
}

/// Which jobs are shown.
#[derive(Clone, Debug)]
struct Wanted {
    /// These; all where none is named.
    named: BTreeSet<JobKey>,
    /// Whether jobs are shown that were made of others.
    children: bool,
}

impl Wanted {
    fn takes(&self, params: &Params, job: &Job) -> bool {
        let parent = job.parent_key();
        if self.named.is_empty() {
            return params.includes(&job.namespace, Capability::ReadJob)
                && (self.children || parent.is_none());
        }
        let is_child = |parent| self.children && self.named.contains(parent);
        params.may(&job.namespace, Capability::ReadJob)
            && (self.named.contains(&job.key()) || parent.as_ref().is_some_and(is_child))
    }
}

/// Of all jobs, or of those that begin with a prefix.
pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let wanted = Wanted {
        named: BTreeSet::new(),
        children: params.flag("include_children"),
    };
    of(&api, params, wanted).await
}

/// Of the jobs that the body names.
pub(super) async fn of_named(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let asked: Asked = body::decode_or_default(request).await?;
    let default = match params.namespace() {
        "*" => "default",
        namespace => namespace,
    };
    let key = |named: &Named| {
        let namespace = match named.namespace.as_str() {
            "" => default,
            namespace => namespace,
        };
        JobKey {
            namespace: namespace.into(),
            id: named.id.as_str().into(),
        }
    };
    let wanted = Wanted {
        named: asked.jobs.iter().map(key).collect(),
        children: asked.include_children,
    };
    of(&api, params, wanted).await
}

async fn of(api: &Api, params: Params, wanted: Wanted) -> Answer {
    let asked = params.clone();
    let mut seen = blocking_query(api, &params, move |view| {
        let around = Around::of(view);
        let jobs = view.jobs().filter(|record| {
            record.job.id.starts_with(asked.prefix()) && wanted.takes(&asked, &record.job)
        });
        let jobs = jobs.map(|record| around.records_of(view, record));
        Indexed::whole(view, jobs.collect::<Vec<_>>())
    })
    .await?;
    (seen.value).sort_by_cached_key(|one| (one.modify_index(), one.name_in_order()));
    let token = |one: &StatusRecords| format!("{}.{}", one.modify_index(), one.name_in_order());
    list::list(params.last_first(), seen, token, StatusDto::of).await
}

/// What overviews of jobs show of the rest of the state, looked up once for all of them.
struct Around<'a> {
    node: Arc<NodeNames>,
    latest: BTreeMap<&'a JobKey, &'a Deployment>,
}

impl<'a> Around<'a> {
    fn of(view: View<'a>) -> Around<'a> {
        let mut latest: BTreeMap<&JobKey, &Deployment> = BTreeMap::new();
        for deployment in view.deployments() {
            let known = latest.entry(&deployment.job).or_insert(deployment);
            if deployment.create_index > known.create_index {
                *known = deployment;
            }
        }
        Around {
            node: Arc::new(NodeNames::of(view.node())),
            latest,
        }
    }

    fn records_of(&self, view: View<'_>, record: &Arc<JobRecord>) -> StatusRecords {
        let key = record.job.key();
        let makes_jobs = record.job.is_template();
        let children = || {
            let children = view.children_of(&key);
            let statuses = children.map(|child| view.job_status(&child.job.key()).as_str());
            statuses.collect()
        };
        let allocs = view.shown_allocs_of(&key);
        let latest = self.latest.get(&key);
        StatusRecords {
            job: JobRecords::of(view, record),
            allocs: (allocs.map(|alloc| AllocRecords::of(view, &self.node, alloc))).collect(),
            children: makes_jobs.then(children),
            rollout: latest.map(|latest| RolloutDto::of(record, latest)),
        }
    }
}

impl StatusRecords {
    fn modify_index(&self) -> u64 {
        let job = &self.job.record.job;
        job.modify_index.max(self.job.summary.modify_index)
    }

    /// What orders those of the same index, as their tokens do.
    fn name_in_order(&self) -> String {
        let job = &self.job.record.job;
        format!("{}.{}", job.namespace, job.id)
    }
}

impl StatusDto {
    fn of(records: &StatusRecords) -> StatusDto {
        let job = &records.job.record.job;
        let allocs: Vec<_> = records.allocs.iter().map(AllocDto::of).collect();
        StatusDto {
            id: job.id.clone(),
            parent_id: job.parent_id.clone(),
            name: job.name.clone(),
            namespace: job.namespace.clone(),
            job_type: job.job_type.as_str(),
            datacenters: job.datacenters.clone(),
            node_pool: job.node_pool.clone(),
            priority: job.priority,
            version: job.version,
            status: records.job.status,
            stop: job.stop,
            is_pack: job.meta.contains_key(PACK),
            submit_time: job.submit_time.0,
            modify_index: records.modify_index(),
            group_count_sum: (job.task_groups.iter())
                .map(|group| group.wanted())
                .fold(0, i64::saturating_add),
            allocs: Some(allocs).filter(|allocs| !allocs.is_empty()),
            child_statuses: records.children.clone(),
            latest_deployment: records.rollout.clone(),
        }
    }
}

impl AllocDto {
    fn of(records: &AllocRecords) -> AllocDto {
        let stub = AllocStub::from(records);
        let health = stub.deployment_status.map(|status| HealthDto {
            canary: status.canary,
            healthy: status.healthy,
        });
        AllocDto {
            id: stub.id,
            group: stub.task_group,
            client_status: stub.client_status,
            node_id: stub.node_id,
            job_version: stub.job_version,
            deployment_status: health.unwrap_or_default(),
            followup_eval_id: stub.followup_eval_id,
            // Nobody can pause one.
            has_paused_task: false,
        }
    }
}

impl RolloutDto {
    fn of(record: &JobRecord, deployment: &Deployment) -> RolloutDto {
        let job = record.version(deployment.job_version);
        let promotes_itself = |group: &str| {
            let group = job.and_then(|job| job.group(group));
            let update = group.and_then(|group| group.update.as_ref());
            update.is_some_and(|update| update.auto_promote)
        };
        let canaries = deployment.groups.iter().filter(|(_, it)| it.canaries > 0);
        let runs = deployment.status == DeploymentStatus::Running;
        RolloutDto {
            id: deployment.id.to_string(),
            is_active: deployment.status.is_active(),
            job_version: deployment.job_version,
            status: deployment.status.as_str(),
            status_description: deployment.description.clone(),
            all_auto_promote: runs
                && (canaries.clone()).all(|(group, _)| promotes_itself(group.as_str())),
            requires_promotion: runs && canaries.clone().any(|(_, it)| it.promoted.is_none()),
        }
    }
}
