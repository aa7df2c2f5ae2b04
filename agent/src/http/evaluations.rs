//! Evaluations.

use std::sync::Arc;

use axum::extract::{Path, State};
use drover_core::agent::View;
use drover_core::ids::EvalId;
use drover_core::model::eval::Evaluation;
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{EvalStub, EvaluationDto};
use super::errors::ApiError;
use super::list;
use super::params::{Params, check_prefix, uuid};
use super::records::{EvalRecords, NodeNames};
use super::{allocations, records};
use crate::acl::Capability;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("eval", params.prefix())?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.evals().filter(|eval| {
            asked.includes(&eval.job.namespace, Capability::ReadJob)
                && asked.is_prefix_of(eval.id)
                && asked
                    .non_empty("job")
                    .is_none_or(|job| *eval.job.id == *job)
                && asked
                    .non_empty("status")
                    .is_none_or(|status| eval.status.as_str() == status)
        });
        let node = Arc::new(NodeNames::of(view.node()));
        let evals = wanted.map(|eval| EvalRecords::of(view, &node, eval));
        let mut evals: Vec<_> = evals.collect();
        evals.sort_by_key(|one| (one.eval.create_index, one.eval.id));
        Indexed::whole(view, evals)
    })
    .await?;
    let token = |one: &EvalRecords| format!("{}.{}", one.eval.create_index, one.eval.id);
    list::list(params, seen, token, EvaluationDto::of).await
}

/// How many there are.
pub(super) async fn count(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.evals().filter(|eval| {
            asked.includes(&eval.job.namespace, Capability::ReadJob) && asked.is_prefix_of(eval.id)
        });
        let node = Arc::new(NodeNames::of(view.node()));
        let evals = wanted.map(|eval| EvalRecords::of(view, &node, eval));
        Indexed::whole(view, evals.collect::<Vec<_>>())
    })
    .await?;
    let all = params.page(seen.value, |one| one.eval.id.to_string())?;
    let value = json!({
        "Count": all.items.len(),
        "Index": seen.index,
        "KnownLeader": true,
        "LastContact": 0,
        "NextToken": "",
    });
    answer::read(&params, seen.index, &value)
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let id: EvalId = uuid("eval", &id)?;
    let related = params.flag("related");
    let seen = blocking_query(&api, &params, move |view| match view.eval(id) {
        Some(eval) => {
            let node = Arc::new(NodeNames::of(view.node()));
            let mut shape = EvaluationDto::of(&EvalRecords::of(view, &node, eval));
            shape.related_evals = related.then(|| related_to(view, eval));
            Indexed {
                index: eval.modify_index,
                value: Some(shape),
            }
        }
        None => Indexed::whole(view, None),
    })
    .await?;
    match seen.value {
        Some(eval) => answer::read(&params, seen.index, &eval),
        None => Err(ApiError::not_found("eval not found").at(seen.index)),
    }
}

pub(super) async fn allocations(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: EvalId = uuid("eval", &id)?;
    let seen = records::allocs(&api, &params, move |alloc| alloc.eval == id).await?;
    allocations::stubs(&api, &params, seen).await
}

/// The evaluations that one came of and that came of it, and so on: all of a chain but itself.
fn related_to(view: View<'_>, eval: &Arc<Evaluation>) -> Vec<EvalStub> {
    let linked = |a: &Evaluation, b: &Evaluation| {
        [a.blocked_eval, a.previous_eval].contains(&Some(b.id))
            || [b.blocked_eval, b.previous_eval].contains(&Some(a.id))
    };
    let mut others: Vec<&Arc<Evaluation>> = (view.evals())
        .filter(|other| other.job == eval.job && other.id != eval.id)
        .collect();
    let mut chain = vec![eval];
    let mut done = 0;
    while let Some(from) = chain.get(done).copied() {
        let (near, far) = others.into_iter().partition(|other| linked(from, other));
        chain.extend::<Vec<_>>(near);
        others = far;
        done += 1;
    }
    let node = Arc::new(NodeNames::of(view.node()));
    let mut stubs: Vec<EvalStub> = (chain.into_iter().skip(1))
        .map(|other| EvalStub::of(&EvalRecords::of(view, &node, other)))
        .collect();
    stubs.sort_by(|a, b| (a.create_index, &a.id).cmp(&(b.create_index, &b.id)));
    stubs
}
