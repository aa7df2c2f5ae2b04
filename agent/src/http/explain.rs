//! What a job or an allocation is doing, and why. Drover's own.

use axum::extract::{Path, State};
use drover_core::ids::{AllocId, JobKey};
use drover_io_real::clock;

use super::Api;
use super::answer::{self, Answer};
use super::dto::{AllocExplanationDto, JobExplanationDto};
use super::errors::ApiError;
use super::params::{Params, uuid};

/// `GET /v1/job/ID/explain`.
pub(super) async fn job(api: &Api, params: &Params, key: JobKey) -> Answer {
    let question = move |view: drover_core::agent::View<'_>| {
        let explained = view.explain_job(clock::now(), &key);
        (view.index(), explained.map(JobExplanationDto::from))
    };
    match api.agent_handle.ask(question).await? {
        (index, Some(job)) => answer::read(params, index, &job),
        (index, None) => Err(ApiError::not_found("job not found").at(index)),
    }
}

/// `GET /v1/allocation/ID/explain`.
pub(super) async fn alloc(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let question = move |view: drover_core::agent::View<'_>| {
        let explained = view.explain_alloc(clock::now(), id);
        let collected = view.collected_alloc(id).is_some();
        (
            view.index(),
            explained.map(AllocExplanationDto::from),
            collected,
        )
    };
    match api.agent_handle.ask(question).await? {
        (index, Some(alloc), _) => answer::read(&params, index, &alloc),
        (index, None, true) => Err(ApiError::not_found(
            "the allocation is over and its directory was garbage-collected: alloc status shows its record",
        )
        .at(index)),
        (index, None, false) => Err(ApiError::not_found("alloc not found").at(index)),
    }
}
