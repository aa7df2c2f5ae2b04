//! The drivers and plugins of this agent. Nomad has no such list; the name is our own.

use axum::extract::State;
use drover_io_real::clock;

use super::Api;
use super::answer::{self, Answer};
use super::params::Params;
use super::shapes;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let settings = api.settings.clone();
    let programs = settings.plugins.status();
    let now = clock::now();
    let look = move |view: drover_core::agent::View<'_>| {
        let shown = shapes::plugins(view, &settings, programs, now);
        (view.index(), shown)
    };
    let (index, shown) = api.door.ask(look).await?;
    answer::read(&params, index, &shown)
}
