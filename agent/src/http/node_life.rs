//! What people decide about this node: whether it takes new allocations, and whether it is drained.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use drover_core::agent::requests::{self, EvaluateNode, SetEligibility, UpdateDrain};
use drover_core::effect::Reply;
use drover_core::ids::NodeId;
use drover_core::model::drain::{DrainDeadline, DrainSpec, Eligibility};
use drover_core::text::quote;
use drover_core::time::Span;
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::{Params, uuid};
use super::{Api, body};

/// The most bytes of what people note of a drain.
const MAX_META: usize = 16 * 1024;

/// The body of a change of eligibility.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct EligibilityRequest {
    eligibility: String,
}

/// The body of a drain.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DrainRequest {
    drain_spec: Option<DrainSpecDto>,
    mark_eligible: bool,
    meta: BTreeMap<String, String>,
}

/// How a node is drained.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DrainSpecDto {
    /// In nanoseconds; 0 for none, less for no time at all.
    deadline: i64,
    ignore_system_jobs: bool,
}

impl DrainSpecDto {
    fn spec(&self) -> DrainSpec {
        DrainSpec {
            deadline: match self.deadline {
                ..0 => DrainDeadline::Force,
                0 => DrainDeadline::Never,
                span => DrainDeadline::After(Span(span)),
            },
            ignore_system_jobs: self.ignore_system_jobs,
        }
    }
}

pub(super) async fn eligibility(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    request: Request,
) -> Answer {
    check_id(&api, &id).await?;
    let asked: EligibilityRequest = body::decode(request).await?;
    let Some(eligibility) = Eligibility::named(&asked.eligibility) else {
        let shown = quote(&asked.eligibility);
        let words = format!("invalid scheduling eligibility {shown}");
        return Err(ApiError::failed(words));
    };
    change(&api, &params, SetEligibility { eligibility }.into()).await
}

pub(super) async fn drain(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    request: Request,
) -> Answer {
    check_id(&api, &id).await?;
    let asked: DrainRequest = body::decode(request).await?;
    let size: usize = asked
        .meta
        .iter()
        .map(|(key, it)| key.len() + it.len())
        .sum();
    if size > MAX_META {
        let words = format!("the meta of the drain is larger than {MAX_META} bytes");
        return Err(ApiError::bad(words));
    }
    let asked = UpdateDrain {
        spec: asked.drain_spec.map(|spec| spec.spec()),
        mark_eligible: asked.mark_eligible,
        meta: asked.meta,
    };
    change(&api, &params, asked.into()).await
}

/// Every job of the node is evaluated.
pub(super) async fn evaluate(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    check_id(&api, &id).await?;
    change(&api, &params, EvaluateNode.into()).await
}

/// A node that is its own server cannot be without itself.
pub(super) async fn purge(State(api): State<Api>, Path(id): Path<String>) -> Answer {
    check_id(&api, &id).await?;
    let words = "this node is all there is and cannot be removed while its agent runs: stop the agent, and \
                 \"drover system destroy -data-dir DIR\" removes what it leaves";
    Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
}

/// Whether it is this node that is asked.
async fn check_id(api: &Api, id: &str) -> Result<(), ApiError> {
    let id: NodeId = uuid("node", id)?;
    let own = api.agent_handle.ask(|view| view.node().id).await?;
    match own == id {
        true => Ok(()),
        false => Err(ApiError::failed("node not found")),
    }
}

async fn change(api: &Api, params: &Params, asked: requests::Request) -> Answer {
    // Where the drain does not change, Nomad does not say what the node's index is.
    let is_drain = matches!(asked, requests::Request::UpdateDrain(_));
    match api.agent_handle.request(asked).await? {
        Reply::NodeChanged {
            evals,
            eval_index,
            index,
        } => {
            let evals: Vec<String> = evals.iter().map(ToString::to_string).collect();
            let value = json!({
                "EvalCreateIndex": eval_index,
                "EvalIDs": (!evals.is_empty()).then_some(evals),
                "Index": index,
                "NodeModifyIndex": if is_drain { index } else { 0 },
            });
            answer::written(params, index, &value)
        }
        other => Err(ApiError::unexpected(other)),
    }
}
