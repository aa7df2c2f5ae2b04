//! Jobs and their summaries.

use drover_core::model::job::JobStatus;
use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::View;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::Job;
use drover_core::model::version::VersionTag;
use drover_core::store::record::JobRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::whole_job;
use crate::http::records::JobRecords;

/// A job in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct JobStub {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "ParentID")]
    pub parent_id: String,
    pub name: String,
    pub namespace: String,
    pub datacenters: Vec<String>,
    pub multiregion: Option<Value>,
    pub node_pool: String,
    #[serde(rename = "Type")]
    pub job_type: String,
    pub priority: i64,
    pub periodic: bool,
    pub parameterized_job: bool,
    pub stop: bool,
    pub status: String,
    pub status_description: String,
    pub job_summary: JobSummary,
    pub create_index: u64,
    pub modify_index: u64,
    pub job_modify_index: u64,
    pub submit_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<BTreeMap<String, String>>,
}

/// How many allocations of a job are where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct JobSummary {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub summary: BTreeMap<String, GroupSummary>,
    pub children: Children,
    pub create_index: u64,
    pub modify_index: u64,
}

/// How many allocations of a group are where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct GroupSummary {
    pub queued: u64,
    pub complete: u64,
    pub failed: u64,
    pub running: u64,
    pub starting: u64,
    pub lost: u64,
    pub unknown: u64,
}

/// Jobs that a job led to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Children {
    pub pending: u64,
    pub running: u64,
    pub dead: u64,
}

/// The answer to a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Registered {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_modify_index: u64,
    pub warnings: String,
    pub index: u64,
    pub last_contact: u64,
    pub known_leader: bool,
    pub next_token: String,
}

/// The answer to a dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Dispatched {
    #[serde(rename = "DispatchedJobID")]
    pub dispatched_job_id: String,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_create_index: u64,
    pub index: u64,
    pub last_contact: u64,
    pub known_leader: bool,
    pub next_token: String,
}

/// The answer to a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Stopped {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_modify_index: u64,
    #[serde(rename = "VolumeEvalID")]
    pub volume_eval_id: String,
    pub volume_eval_index: u64,
    pub index: u64,
    pub last_contact: u64,
    pub known_leader: bool,
    pub next_token: String,
}

/// The answer to a validation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Validated {
    pub driver_config_validated: bool,
    pub validation_errors: Option<Vec<String>>,
    pub error: String,
    pub warnings: String,
}

impl JobStub {
    /// A job as lists show it.
    pub(in crate::http) fn of(records: &JobRecords, with_meta: bool) -> JobStub {
        let job = &records.record.job;
        let summary = records.summary.clone();
        JobStub {
            id: job.id.clone(),
            parent_id: job.parent_id.clone(),
            name: job.name.clone(),
            namespace: job.namespace.clone(),
            datacenters: job.datacenters.clone(),
            multiregion: None,
            node_pool: job.node_pool.clone(),
            job_type: job.job_type.as_str().to_owned(),
            priority: job.priority,
            periodic: job.periodic.is_some(),
            parameterized_job: job.is_parameterized(),
            stop: job.stop,
            status: records.status.to_owned(),
            status_description: job.status_description.clone(),
            modify_index: job.modify_index.max(summary.modify_index),
            job_summary: summary,
            create_index: job.create_index,
            job_modify_index: job.job_modify_index,
            submit_time: job.submit_time.0,
            meta: with_meta.then(|| job.meta.clone()),
        }
    }
}

/// How many allocations of a job are where.
pub fn summary(view: View<'_>, record: &JobRecord) -> JobSummary {
    let job = &record.job;
    let (groups, modify_index) = group_summaries(view, record);
    JobSummary {
        job_id: job.id.clone(),
        namespace: job.namespace.clone(),
        summary: groups,
        children: children(view, job),
        create_index: job.create_index,
        modify_index,
    }
}

/// How many allocations of each group of a job are where, and the index of the last change of any of that.
pub fn group_summaries(
    view: View<'_>,
    record: &JobRecord,
) -> (BTreeMap<String, GroupSummary>, u64) {
    let job = &record.job;
    let key = job.key();
    let mut groups: BTreeMap<String, GroupSummary> = job
        .task_groups
        .iter()
        .map(|group| (group.name.clone(), GroupSummary::default()))
        .collect();
    let mut modify_index = job.modify_index;
    for alloc in view.shown_allocs_of(&key).map(|alloc| alloc.record()) {
        modify_index = modify_index.max(alloc.modify_index);
        let group = groups.entry(alloc.group.as_str().to_owned()).or_default();
        match alloc.status {
            ClientStatus::Pending => group.starting += 1,
            ClientStatus::Running => group.running += 1,
            ClientStatus::Complete => group.complete += 1,
            ClientStatus::Failed => group.failed += 1,
            ClientStatus::Lost => group.lost += 1,
            ClientStatus::Unknown => group.unknown += 1,
        }
    }
    for (name, _) in view.blocked(&key) {
        groups.entry(name.clone()).or_default().queued += 1;
    }
    (groups, modify_index)
}

/// How many of the jobs that were made of this one are where.
fn children(view: View<'_>, job: &Job) -> Children {
    let mut children = Children::default();
    if !job.is_template() {
        return children;
    }
    for child in view.children_of(&job.key()) {
        match view.job_status(&child.job.key()) {
            JobStatus::Pending => children.pending += 1,
            JobStatus::Running => children.running += 1,
            JobStatus::Dead => children.dead += 1,
        }
    }
    children
}

fn version_tag(tag: &VersionTag) -> Value {
    json!({
        "Name": tag.name,
        "Description": tag.description,
        "TaggedTime": tag.tagged.0,
    })
}

/// A whole job, with the fields that only servers fill.
pub fn full_job(job: &Job, status: &str, tag: Option<&Arc<VersionTag>>) -> Value {
    let mut value = serde_json::to_value(job).unwrap_or_default();
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    whole_job::complete(job, fields);
    let more = [
        ("Status", json!(status)),
        (
            "VersionTag",
            tag.map_or(Value::Null, |tag| version_tag(tag)),
        ),
        ("ConsulNamespace", json!("")),
        ("VaultNamespace", json!("")),
        ("NomadTokenID", json!("")),
    ];
    for (name, field) in more {
        fields.insert(name.to_owned(), field);
    }
    if job.payload.is_empty() {
        fields.insert("Payload".to_owned(), Value::Null);
    }
    value
}

/// An allocation that another node takes over: an extension of our own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TakeoverAlloc {
    /// Its id.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its group.
    pub group: String,
    /// Which copy of the group.
    pub index: u32,
    /// What its node wants to see before it gives away the disk.
    pub token: String,
    /// Where its node answers; whoever passes it on knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// What another node needs in order to take over a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Handover {
    /// The latest allocation of each copy.
    pub allocs: Vec<TakeoverAlloc>,
}

/// The status of a job as a whole, or of an older version of it.
pub fn register_answer(eval: String, index: u64, job_index: u64, warnings: String) -> Registered {
    Registered {
        eval_create_index: if eval.is_empty() { 0 } else { index },
        eval_id: eval,
        job_modify_index: job_index,
        warnings,
        index,
        ..Registered::default()
    }
}
