//! Scaling: the count of a group, its bounds, and the last of what was asked of it.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use drover_core::agent::requests::ScaleJob;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::scaling::{MAX_MESSAGE, MAX_META};
use drover_core::model::value::Value;
use drover_core::store::record::JobRecord;
use serde::Deserialize;

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{PolicyDto, ScaleStatus, policy_id, register_answer};
use super::errors::ApiError;
use super::list;
use super::params::Params;
use super::{Api, body, jobs};
use crate::acl::Capability;

pub(super) async fn status(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| match view.job(&key) {
        None => Indexed::whole(view, None),
        Some(record) => Indexed::whole(view, Some(ScaleStatus::of(view, record))),
    })
    .await?;
    match seen.value {
        Some(status) => answer::read(params, seen.index, &status),
        None => Err(ApiError::not_found("job not found").at(seen.index)),
    }
}

/// The body of a request to scale.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    count: Option<i64>,
    target: Target,
    message: String,
    error: bool,
    meta: Value,
    job_modify_index: u64,
    eval_priority: i64,
}

/// What is scaled.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Target {
    job: String,
    group: String,
}

pub(super) async fn scale(api: &Api, params: &Params, job: JobKey, request: Request) -> Answer {
    let asked: Asked = body::decode(request).await?;
    if !asked.target.job.is_empty() && *asked.target.job != *job.id {
        return Err(ApiError::bad("job ID in payload did not match URL"));
    }
    if asked.target.group.is_empty() {
        return Err(ApiError::bad("missing task group name for scaling action"));
    }
    jobs::evaluated_with(asked.eval_priority)?;
    if asked.message.len() > MAX_MESSAGE {
        let words = format!("the message is larger than {MAX_MESSAGE} bytes");
        return Err(ApiError::bad(words));
    }
    let meta = serde_json::to_string(&asked.meta).unwrap_or_default();
    if meta.len() > MAX_META {
        let words = format!("the meta is larger than {MAX_META} bytes");
        return Err(ApiError::bad(words));
    }
    let (known, name, count) = (job.clone(), asked.target.group.clone(), asked.count);
    let scaled = api.agent_handle.ask(move |view| {
        let mut job = Job::clone(&view.job(&known)?.job);
        let group = job.task_groups.iter_mut().find(|it| it.name == name)?;
        group.count = count.or(group.count);
        Some(job)
    });
    // More copies may mount volumes of their own.
    if let Some(scaled) = scaled.await? {
        jobs::check_volumes(&params.principal, &scaled)?;
    }
    let asked = ScaleJob {
        job,
        group: asked.target.group.as_str().into(),
        count: asked.count,
        message: asked.message.into(),
        error: asked.error,
        meta: asked.meta,
        expect_index: Some(asked.job_modify_index).filter(|index| *index > 0),
    };
    match api.agent_handle.request(asked).await? {
        Reply::Registered {
            eval,
            index,
            job_index,
            ..
        } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            let answer = register_answer(eval, index, job_index, String::new());
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// The groups of a job that have policies, while it is not stopped.
fn scalable(record: &Arc<JobRecord>) -> impl Iterator<Item = (&Arc<JobRecord>, &TaskGroup)> {
    let groups = record.job.task_groups.iter().filter(|_| !record.job.stop);
    let scalable = groups.filter(|group| group.scaling.is_some());
    scalable.map(move |group| (record, group))
}

/// The ids of a job's policies.
pub(super) fn policy_ids(record: &Arc<JobRecord>) -> impl Iterator<Item = String> + '_ {
    scalable(record).map(|(record, group)| policy_id(&record.job, group))
}

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let job = asked.non_empty("job").map(str::to_owned);
        let kind = asked.non_empty("type").map(str::to_owned);
        let jobs = view.jobs().filter(|record| {
            let named = job.as_ref().is_none_or(|id| *id == record.job.id);
            named && asked.includes(&record.job.namespace, Capability::ListScalingPolicies)
        });
        let is_wanted = |policy: &PolicyDto| {
            let of_kind = kind.as_ref().is_none_or(|kind| *kind == policy.kind);
            of_kind && asked.is_prefix_of(&policy.id)
        };
        let all = jobs.flat_map(scalable);
        let all = all.filter_map(|(record, group)| PolicyDto::of(record, group));
        let found = all.filter(is_wanted);
        Indexed::whole(view, found.collect::<Vec<_>>())
    })
    .await?;
    let token = |policy: &PolicyDto| policy.id.clone();
    list::list(params, seen, token, PolicyDto::stub).await
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let jobs = view.jobs().filter(|record| {
            let namespace = &record.job.namespace;
            asked.may(namespace, Capability::ReadScalingPolicy)
        });
        let mut all = jobs.flat_map(scalable);
        let found = all.find(|(record, group)| policy_id(&record.job, group) == id);
        let found = found.and_then(|(record, group)| PolicyDto::of(record, group));
        Indexed::whole(view, found)
    })
    .await?;
    match seen.value {
        Some(policy) => answer::read(&params, seen.index, &policy),
        None => Err(ApiError::not_found("policy not found").at(seen.index)),
    }
}
