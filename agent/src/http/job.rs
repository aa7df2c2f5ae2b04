//! One job. Ids may contain slashes, so the path is read from its end.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use drover_core::agent::View;
use drover_core::agent::requests::{Deregister, Evaluate};
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::store::record::JobRecord;
use drover_core::text::quote;
use serde::Deserialize;
use serde_json::Value;

use super::access::need::{Asked, Need};
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{DeploymentDto, EvaluationDto, Stopped, full_job, register_answer, summary};
use super::errors::ApiError;
use super::params::{Params, percent_decode};
use super::records::{AllocRecords, EvalRecords, NodeNames};
use super::{
    Api, actions, allocations, body, dispatch, exec, explain, jobs, periodic, plan, scale,
    services, snapshot, versions,
};
use crate::acl::Capability;

/// The parts of a job that have paths of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Allocations,
    Evaluations,
    Summary,
    Services,
    Versions,
    Submission,
    Revert,
    Scale,
    Stable,
    /// The tag of this name.
    Tag(String),
    Deployments,
    Deployment,
    Evaluate,
    Dispatch,
    Handover,
    Plan,
    Explain,
    Periodic,
    PeriodicForce,
    Actions,
    Action,
}

/// Splits a path below `/v1/job/` into the job's id and the part of it.
fn split(path: &str) -> Option<(String, Part)> {
    let parts = [
        ("/allocations", Part::Allocations),
        ("/evaluations", Part::Evaluations),
        ("/summary", Part::Summary),
        ("/versions", Part::Versions),
        ("/deployments", Part::Deployments),
        ("/deployment", Part::Deployment),
        ("/evaluate", Part::Evaluate),
        ("/dispatch", Part::Dispatch),
        ("/handover", Part::Handover),
        ("/plan", Part::Plan),
        ("/explain", Part::Explain),
        ("/scale", Part::Scale),
        ("/revert", Part::Revert),
        ("/stable", Part::Stable),
        ("/submission", Part::Submission),
        ("/periodic/force", Part::PeriodicForce),
        ("/periodic", Part::Periodic),
        ("/services", Part::Services),
        ("/actions", Part::Actions),
        ("/action", Part::Action),
    ];
    let found = parts
        .iter()
        .find_map(|(suffix, part)| Some((path.strip_suffix(suffix)?, part.clone())));
    let tagged = || {
        let (rest, name) = path.strip_suffix("/tag")?.rsplit_once('/')?;
        let id = rest
            .strip_suffix("/versions")
            .filter(|_| !name.is_empty())?;
        Some((id, Part::Tag(percent_decode(name)?)))
    };
    let (id, part) = found.or_else(tagged).unwrap_or((path, Part::Whole));
    let id = percent_decode(id).filter(|id| !id.is_empty())?;
    Some((id, part))
}

/// What a request for a job, or for a part of one, needs.
pub(super) fn need(asked: &Asked<'_>) -> Need {
    const READ: Need = Need::Namespace(&[Capability::ReadJob]);
    const SUBMIT: Need = Need::Namespace(&[Capability::SubmitJob]);
    let path = asked.uri.path().strip_prefix("/v1/job/");
    let Some((_, part)) = path.and_then(split) else {
        return READ;
    };
    let reads = *asked.method == Method::GET;
    let stops = *asked.method == Method::DELETE;
    match part {
        // Its namespace stands in its body.
        Part::Whole if !reads && !stops => Need::Somewhere(&[Capability::SubmitJob]),
        Part::Plan => Need::Somewhere(&[Capability::SubmitJob]),
        // The first message of the websocket may bring the token.
        Part::Action => exec::need(asked, Need::Namespace(&[Capability::AllocExec])),
        Part::Whole if stops => SUBMIT,
        Part::Scale if reads => Need::Namespace(&[Capability::ReadJob, Capability::ReadJobScaling]),
        Part::Scale => Need::Namespace(&[Capability::ScaleJob, Capability::SubmitJob]),
        Part::Dispatch => Need::Namespace(&[Capability::DispatchJob]),
        Part::PeriodicForce => Need::Namespace(&[Capability::DispatchJob, Capability::SubmitJob]),
        // Whoever takes a job over gets the disks of its copies, too.
        Part::Handover => Need::Each(&[SUBMIT, Need::Namespace(&[Capability::ReadFs])]),
        Part::Revert | Part::Stable | Part::Tag(_) | Part::Evaluate => SUBMIT,
        Part::Whole
        | Part::Allocations
        | Part::Evaluations
        | Part::Summary
        | Part::Services
        | Part::Versions
        | Part::Submission
        | Part::Deployments
        | Part::Deployment
        | Part::Explain
        | Part::Periodic
        | Part::Actions => READ,
    }
}

pub(super) async fn any(State(api): State<Api>, params: Params, request: Request) -> Answer {
    // The undecoded path: an escaped slash belongs to the id.
    let path = request
        .uri()
        .path()
        .strip_prefix("/v1/job/")
        .unwrap_or_default();
    let Some((id, part)) = split(path) else {
        return Err(ApiError::not_found("job not found"));
    };
    let key = JobKey {
        namespace: params.namespace().into(),
        id: id.as_str().into(),
    };
    let method = request.method().clone();
    let writes = method == Method::PUT || method == Method::POST;
    match part {
        Part::Whole if writes => jobs::submit(&api, &params, Some(&id), request).await,
        Part::Whole if method == Method::DELETE => stop(&api, &params, key).await,
        Part::Evaluate if writes => evaluate(&api, &params, key, request).await,
        Part::Dispatch if writes => dispatch::dispatch(&api, &params, key, request).await,
        Part::Plan if writes => plan::plan(&api, &params, &id, request).await,
        Part::Handover if writes => snapshot::hand_over(&api, &params, key).await,
        Part::PeriodicForce if writes => periodic::force(&api, &params, key).await,
        Part::Revert if writes => versions::revert(&api, &params, key, request).await,
        Part::Scale if writes => scale::scale(&api, &params, key, request).await,
        Part::Stable if writes => versions::stable(&api, &params, key, request).await,
        Part::Tag(name) if writes => versions::tag(&api, &params, key, &name, request).await,
        Part::Tag(name) if method == Method::DELETE => {
            versions::untag(&api, &params, key, &name).await
        }
        Part::Evaluate
        | Part::Dispatch
        | Part::Handover
        | Part::Plan
        | Part::Revert
        | Part::Stable
        | Part::PeriodicForce
        | Part::Tag(_) => Err(ApiError::method()),
        _ if method != Method::GET => Err(ApiError::method()),
        Part::Whole => whole(&api, &params, key).await,
        Part::Allocations => allocs_of(&api, &params, key).await,
        Part::Evaluations => evaluations(&api, &params, key).await,
        Part::Summary => job_summary(&api, &params, key).await,
        Part::Explain => explain::job(&api, &params, key).await,
        Part::Periodic => periodic::launches(&api, &params, key).await,
        Part::Services => services::of_job(&api, &params, key).await,
        Part::Versions => versions::list(&api, &params, key).await,
        Part::Scale => scale::status(&api, &params, key).await,
        Part::Submission => versions::submission(&api, &params, key).await,
        Part::Deployments => deployments(&api, &params, key).await,
        Part::Deployment => deployment(&api, &params, key).await,
        Part::Actions => job_actions(&api, &params, key).await,
        Part::Action => actions::run(&api, &params, key, request.into_parts().0).await,
    }
}

/// Answers out of a job's record, or that there is none.
pub(super) async fn of_record<T: serde::Serialize + Send + 'static>(
    api: &Api,
    params: &Params,
    key: JobKey,
    missing: &'static str,
    part: fn(View<'_>, &JobRecord) -> Indexed<T>,
) -> Answer {
    let seen = blocking_query(api, params, move |view| match view.job(&key) {
        None => Indexed::whole(view, None),
        Some(record) => {
            let Indexed { index, value } = part(view, record);
            Indexed {
                index,
                value: Some(value),
            }
        }
    })
    .await?;
    match seen.value {
        Some(value) => answer::read(params, seen.index, &value),
        None => Err(ApiError::not_found(missing).at(seen.index)),
    }
}

async fn job_actions(api: &Api, params: &Params, key: JobKey) -> Answer {
    of_record(api, params, key, "job not found", |view, record| {
        Indexed::whole(view, actions::all(&record.job))
    })
    .await
}

async fn whole(api: &Api, params: &Params, key: JobKey) -> Answer {
    of_record(api, params, key, "job not found", |view, record| {
        let status = view.job_status(&record.job.key()).as_str();
        // The status follows the allocations, so the index does too.
        let index = summary(view, record).modify_index;
        Indexed {
            index,
            value: full_job(&record.job, status, record.tags.get(&record.job.version)),
        }
    })
    .await
}

async fn job_summary(api: &Api, params: &Params, key: JobKey) -> Answer {
    of_record(api, params, key, "job not found", |view, record| {
        Indexed::whole(view, summary(view, record))
    })
    .await
}

async fn allocs_of(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| {
        let node = Arc::new(NodeNames::of(view.node()));
        let allocs = view.shown_allocs_of(&key);
        let mut allocs: Vec<_> = allocs.collect();
        allocs.sort_by_key(|alloc| core::cmp::Reverse(alloc.record().create_index));
        let allocs = allocs
            .into_iter()
            .map(|alloc| AllocRecords::of(view, &node, alloc));
        Indexed::whole(view, allocs.collect())
    })
    .await?;
    allocations::stubs(api, params, seen).await
}

async fn evaluations(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| {
        let of_job = view.evals().filter(|eval| eval.job == key);
        let node = Arc::new(NodeNames::of(view.node()));
        let evals = of_job.map(|eval| EvaluationDto::of(&EvalRecords::of(view, &node, eval)));
        let mut evals: Vec<_> = evals.collect();
        evals.sort_by_key(|eval| core::cmp::Reverse(eval.create_index));
        Indexed::whole(view, evals)
    })
    .await?;
    answer::read(params, seen.index, &seen.value)
}

fn deployments_of(view: View<'_>, key: &JobKey) -> Vec<DeploymentDto> {
    let of_job = view
        .deployments()
        .filter(|deployment| deployment.job == *key);
    let mut list: Vec<_> = of_job.map(|d| DeploymentDto::of(view, d)).collect();
    list.sort_by_key(|deployment| core::cmp::Reverse(deployment.create_index));
    list
}

async fn deployments(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| {
        Indexed::whole(view, deployments_of(view, &key))
    })
    .await?;
    answer::read(params, seen.index, &seen.value)
}

async fn deployment(api: &Api, params: &Params, key: JobKey) -> Answer {
    let seen = blocking_query(api, params, move |view| {
        Indexed::whole(view, deployments_of(view, &key).into_iter().next())
    })
    .await?;
    match seen.value {
        Some(deployment) => answer::read(params, seen.index, &deployment),
        None => answer::read(params, seen.index, &Value::Null),
    }
}

async fn stop(api: &Api, params: &Params, key: JobKey) -> Answer {
    let purge = params.flag("purge");
    if let Some(priority) = params.non_empty("eval_priority") {
        let number = priority.parse().map_err(|_| {
            ApiError::bad(format!("eval_priority {} is not a number", quote(priority)))
        })?;
        jobs::evaluated_with(number)?;
    }
    let reply = api
        .agent_handle
        .request(Deregister {
            job: key,
            purge,
            no_shutdown_delay: params.flag("no_shutdown_delay"),
        })
        .await?;
    match reply {
        Reply::Stopping { eval, index } => {
            let shown = if eval.is_some() { index } else { 0 };
            let stopped = Stopped {
                eval_id: eval.map(|id| id.to_string()).unwrap_or_default(),
                eval_create_index: shown,
                job_modify_index: shown,
                index,
                ..Stopped::default()
            };
            answer::written(params, index, &stopped)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// The body of a request to evaluate a job.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct EvaluateBody {
    eval_options: EvalOptions,
}

/// What is done besides comparing what a job wants with what runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct EvalOptions {
    force_reschedule: bool,
}

async fn evaluate(api: &Api, params: &Params, key: JobKey, request: Request) -> Answer {
    let asked: EvaluateBody = body::decode_or_default(request).await?;
    let wanted = key.clone();
    let job_index = api
        .agent_handle
        .ask(move |view| view.job(&wanted).map(|record| record.job.job_modify_index))
        .await?;
    let asked = Evaluate {
        job: key,
        force_reschedule: asked.eval_options.force_reschedule,
    };
    match api.agent_handle.request(asked).await? {
        Reply::Stopping {
            eval: Some(eval),
            index,
        } => {
            let job_index = job_index.unwrap_or_default();
            let answer = register_answer(eval.to_string(), index, job_index, String::new());
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_contain_slashes() {
        let own = |id: &str, part| Some((id.to_owned(), part));
        assert_eq!(split("web"), own("web", Part::Whole));
        assert_eq!(split("a%2Fb/summary"), own("a/b", Part::Summary));
        assert_eq!(split("a/b/deployments"), own("a/b", Part::Deployments));
        assert_eq!(split("a/b/plan"), own("a/b", Part::Plan));
        let tag = Part::Tag("v1".to_owned());
        assert_eq!(split("a/versions/v1/tag"), own("a", tag));
        assert_eq!(split("a%2Fsummary"), own("a/summary", Part::Whole));
        assert_eq!(split("/allocations"), None);
        assert_eq!(split("%zz"), None);
    }
}
