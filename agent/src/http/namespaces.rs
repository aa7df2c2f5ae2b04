//! Namespaces: `default`, those of the configuration, and those that people make.

use axum::extract::{Path, Request, State};
use drover_core::agent::requests::{ApplyNamespace, DeleteNamespace};

use super::access::require;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::NamespaceDto;
use super::errors::ApiError;
use super::list;
use super::params::Params;
use super::{Api, body};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    require(params.principal.rights().may_see_any_namespace())?;
    let seen = blocking_query(&api, &params, move |view| {
        let all = view.namespaces().into_values();
        let wanted = all.filter(|it| {
            let name = &it.namespace.name;
            name.starts_with(asked.prefix()) && asked.principal.rights().may_see_namespace(name)
        });
        Indexed::whole(view, wanted.collect::<Vec<_>>())
    })
    .await?;
    let shown = seen.value.iter().map(|record| NamespaceDto::of(record));
    let shown = Indexed {
        index: seen.index,
        value: shown.collect::<Vec<_>>(),
    };
    let token = |one: &NamespaceDto| one.name.clone();
    list::list(params, shown, token, NamespaceDto::clone).await
}

pub(super) async fn one(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    require(params.principal.rights().may_see_namespace(&name))?;
    let seen = blocking_query(&api, &params, move |view| {
        Indexed::whole(view, view.namespaces().remove(name.as_str()))
    })
    .await?;
    match seen.value {
        Some(record) => answer::read(&params, seen.index, &NamespaceDto::of(&record)),
        None => Err(ApiError::not_found("Namespace not found").at(seen.index)),
    }
}

/// A namespace whose name is in the body.
pub(super) async fn put(State(api): State<Api>, request: Request) -> Answer {
    apply(&api, None, request).await
}

pub(super) async fn put_named(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Request,
) -> Answer {
    apply(&api, Some(name), request).await
}

async fn apply(api: &Api, name: Option<String>, request: Request) -> Answer {
    let mut asked: NamespaceDto = body::decode_with_nulls(request).await?;
    if let Some(name) = name {
        if !asked.name.is_empty() && asked.name != name {
            let words = "the body is of a namespace of another name than the path";
            return Err(ApiError::bad(words));
        }
        asked.name = name;
    }
    let namespace = asked.asked().map_err(ApiError::bad)?;
    namespace.check_sizes().map_err(ApiError::bad)?;
    answer::done(
        api.agent_handle
            .request(ApplyNamespace { namespace })
            .await?,
    )
}

pub(super) async fn delete(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let name = name.into();
    answer::done(api.agent_handle.request(DeleteNamespace { name }).await?)
}
