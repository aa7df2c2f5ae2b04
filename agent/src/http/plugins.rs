//! The drivers and plugins of this agent. Nomad has no such list; the name is our own.

use axum::extract::State;
use drover_io_real::clock;

use super::Api;
use super::answer::{self, Answer};
use super::dto;
use super::params::Params;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let settings = api.settings.clone();
    let programs = settings.plugins.status();
    let now = clock::now();
    let blocking_query = move |view: drover_core::agent::View<'_>| {
        let shown = dto::plugins(view, &settings, programs, now);
        (view.index(), shown)
    };
    let (index, shown) = api.agent_handle.ask(blocking_query).await?;
    answer::read(&params, index, &shown)
}
