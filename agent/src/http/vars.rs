//! Variables. Paths have slashes, so what is below `/v1/var/` is one path whole.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use drover_core::agent::requests::{DeleteVariable, PutVariable};
use drover_core::effect::{Refusal, Reply};
use drover_core::model::variable::{Items, VariableKey, check_namespace, check_path};
use serde::Deserialize;

use super::access::require;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{VariableDto, VariableStub};
use super::errors::ApiError;
use super::list;
use super::params::{Params, percent_decode};
use super::{Api, body};
use crate::acl::VariableCapability;

/// What a request has that is about the lock of a variable.
const LOCKS: [&str; 4] = [
    "lock-acquire",
    "lock-renew",
    "lock-release",
    "lock-operation",
];

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let rights = params.principal.rights();
    require(rights.may_any_variable(params.namespace(), VariableCapability::List))?;
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.variables().iter().filter(|(key, _)| {
            let is_asked_for =
                matches!(asked.namespace(), "*") || *key.namespace == *asked.namespace();
            is_asked_for
                && key.path.starts_with(asked.prefix())
                && may(&asked, key, VariableCapability::List)
        });
        let stubs = wanted.map(|(key, variable)| VariableStub::of(key, variable.meta));
        Indexed::whole(view, stubs.collect::<Vec<_>>())
    })
    .await?;
    let token = |variable: &VariableStub| format!("{}.{}", variable.namespace, variable.path);
    list::list(params, seen, token, VariableStub::clone).await
}

pub(super) async fn any(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let path = request.uri().path().strip_prefix("/v1/var/");
    let path = path.and_then(percent_decode).unwrap_or_default();
    check_path(&path).map_err(ApiError::bad)?;
    check_namespace(params.namespace()).map_err(ApiError::bad)?;
    if LOCKS.iter().any(|lock| params.get(lock).is_some()) {
        let words = "locks of variables are not supported by this version";
        return Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words));
    }
    let key = VariableKey {
        namespace: params.namespace().into(),
        path: path.into(),
    };
    match *request.method() {
        Method::PUT | Method::POST => put(&api, &params, key, request).await,
        Method::DELETE => delete(&api, &params, key).await,
        Method::GET => read(&api, &params, key).await,
        _ => Err(ApiError::method()),
    }
}

/// Whether whoever asks may do something with a variable.
fn may(params: &Params, key: &VariableKey, capability: VariableCapability) -> bool {
    let rights = params.principal.rights();
    rights.may_variable(&key.namespace, &key.path, capability)
}

async fn read(api: &Api, params: &Params, key: VariableKey) -> Answer {
    require(may(params, &key, VariableCapability::Read))?;
    let seen = blocking_query(api, params, move |view| {
        let found = view.variables().get(&key);
        Indexed::whole(view, found.map(|one| VariableDto::of(&key, one)))
    })
    .await?;
    match seen.value {
        Some(variable) => answer::read(params, seen.index, &variable),
        None => Err(ApiError::not_found("variable not found").at(seen.index)),
    }
}

/// What is put: the rest is known better here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Given {
    namespace: String,
    path: String,
    items: BTreeMap<String, String>,
}

async fn put(api: &Api, params: &Params, mut key: VariableKey, request: Request) -> Answer {
    let rights = params.principal.rights();
    require(rights.may_any_variable("*", VariableCapability::Write))?;
    let expect = expected(params)?;
    let given: Given = body::decode(request).await?;
    if !given.path.is_empty() && given.path != *key.path {
        return Err(ApiError::bad("the body is of a variable at another path"));
    }
    if !given.namespace.is_empty() {
        if params.non_empty("namespace").is_some() && given.namespace != *key.namespace {
            return Err(ApiError::bad(
                "the body is of a variable of another namespace",
            ));
        }
        check_namespace(&given.namespace).map_err(ApiError::bad)?;
        key.namespace = given.namespace.into();
    }
    require(may(params, &key, VariableCapability::Write))?;
    let items = Items::new(given.items).map_err(ApiError::bad)?;
    let input = PutVariable {
        key: key.clone(),
        items: items.clone(),
        expect,
    };
    match api.agent_handle.request(input).await? {
        Reply::Variable(meta) => {
            let variable = VariableDto {
                stub: VariableStub::of(&key, meta),
                items: Some(items.get().clone()),
            };
            answer::written(params, meta.modify_index, &variable)
        }
        other => refused(api, params, key, expect, other).await,
    }
}

async fn delete(api: &Api, params: &Params, key: VariableKey) -> Answer {
    require(may(params, &key, VariableCapability::Destroy))?;
    let expect = expected(params)?;
    let input = DeleteVariable {
        key: key.clone(),
        expect,
    };
    match api.agent_handle.request(input).await? {
        Reply::Done { index } => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            answer::state_headers(response.headers_mut(), index);
            Ok(response)
        }
        other => refused(api, params, key, expect, other).await,
    }
}

fn expected(params: &Params) -> Result<Option<u64>, ApiError> {
    let given = params.non_empty("cas").map(str::parse);
    given
        .transpose()
        .map_err(|_| ApiError::bad("can not parse cas: it is the index of a change"))
}

/// Whoever expected another state is shown what there is, without its content unless they may read that.
async fn refused(
    api: &Api,
    params: &Params,
    key: VariableKey,
    expect: Option<u64>,
    reply: Reply,
) -> Answer {
    let may_read = may(params, &key, VariableCapability::Read);
    let is_conflict = matches!(reply, Reply::Refused(Refusal::Conflict(_)));
    let there = api
        .agent_handle
        .ask(move |view| match view.variables().get(&key) {
            Some(variable) => VariableDto::of(&key, variable),
            None => VariableDto::none(&key),
        });
    let mut there = there.await?;
    if !may_read {
        there.items = None;
    }
    // An agent that ends refuses whatever is expected.
    if !is_conflict || expect.is_none_or(|expect| expect == there.stub.modify_index) {
        return Err(ApiError::unexpected(reply));
    }
    let text = serde_json::to_string(&there);
    let text = text.map_err(|error| ApiError::failed(error.to_string()))?;
    Ok::<Response, ApiError>(ApiError::new(StatusCode::CONFLICT, text).into_response())
}
