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

/// The checks of one allocation, by id. One that is over has none.
pub(super) async fn of_alloc(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let known = api.agent_handle.ask(move |view: View<'_>| {
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
    answer::json(&params, &known.await??)
}
