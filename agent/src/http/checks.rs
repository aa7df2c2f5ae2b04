//! The checks of an allocation's services, as they are now.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use drover_core::agent::View;
use drover_core::ids::AllocId;

use super::Api;
use super::answer::{self, Answer};
use super::dto::CheckDto;
use super::errors::ApiError;
use super::params::{Params, uuid};
use crate::agent_handle::AgentHandle;

pub(super) async fn of_alloc(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let checks = latest(&api.agent_handle, uuid("alloc", &id)?).await?;
    answer::json(&params, &checks)
}

/// The checks of one allocation, by id. One that is over has none.
///
/// # Errors
/// There is no such allocation.
pub(crate) async fn latest(
    agent_handle: &AgentHandle,
    id: AllocId,
) -> Result<BTreeMap<String, CheckDto>, ApiError> {
    let known = agent_handle.ask(move |view: View<'_>| {
        if view.shown_alloc(id).is_none() {
            return Err(ApiError::no_alloc(view, id));
        }
        let alloc = view.alloc(id).filter(|it| !it.record().is_terminal());
        let checks = alloc.into_iter().flat_map(|alloc| {
            let of_alloc = alloc.checks().iter();
            of_alloc.map(|check| CheckDto::of(alloc, check))
        });
        Ok(checks
            .map(|one| (one.id.clone(), one))
            .collect::<BTreeMap<_, _>>())
    });
    known.await?
}
