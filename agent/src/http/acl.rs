//! Policies and tokens: who may use this API.
//!
//! A secret is made here and shown in the answer that reports its token; what is kept of it is its digest. Whoever
//! may call what here is said where all routes say it.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use drover_core::agent::View;
use drover_core::agent::requests::{
    ApplyAclPolicy, BootstrapAcl, CreateAclToken, DeleteAclPolicy, DeleteAclToken, UpdateAclToken,
};
use drover_core::effect::Reply;
use drover_core::ids::AccessorId;
use drover_core::model::acl::{AclPolicy, AclToken, SecretDigest};
use drover_core::time::Span;
use drover_io_real::facts;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{AclPolicyDto, AclPolicyStub, AclTokenDto, AclTokenStub, NO_ROLES};
use super::errors::ApiError;
use super::list;
use super::params::Params;
use super::{Api, body};
use crate::acl::{Policy, ready};
use crate::times;

/// What a secret is recognized by.
pub(crate) fn digest(secret: &str) -> SecretDigest {
    SecretDigest(Sha256::digest(secret.as_bytes()).into())
}

/// All policies by name: those that are ready, and those that somebody made.
fn policies(view: View<'_>) -> Vec<AclPolicyDto> {
    let made = view.acl_policies();
    let ready = ready::READY.iter();
    let ready = ready.filter(|ready| !made.contains_key(ready.name));
    let made = made.values().map(|record| AclPolicyDto::of(record));
    let mut all: Vec<AclPolicyDto> = ready.map(AclPolicyDto::ready).chain(made).collect();
    all.sort_by(|one, other| one.stub.name.cmp(&other.stub.name));
    all
}

pub(super) async fn list_policies(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let own = asked.caller_policies();
        let wanted = policies(view).into_iter().map(|policy| policy.stub);
        let wanted = wanted.filter(|stub| {
            let visible = own.as_ref().is_none_or(|own| own.contains(&stub.name));
            visible && stub.name.starts_with(asked.prefix())
        });
        Indexed::whole(view, wanted.collect::<Vec<_>>())
    })
    .await?;
    let token = |one: &AclPolicyStub| one.name.clone();
    list::list(params, seen, token, AclPolicyStub::clone).await
}

pub(super) async fn one_policy(
    State(api): State<Api>,
    Path(name): Path<String>,
    params: Params,
) -> Answer {
    let own = params.caller_policies();
    if own.is_some_and(|own| !own.contains(&name)) {
        return Err(ApiError::denied());
    }
    let seen = blocking_query(&api, &params, move |view| {
        let found = policies(view).into_iter().find(|one| one.stub.name == name);
        Indexed::whole(view, found)
    })
    .await?;
    match seen.value {
        Some(policy) => answer::read(&params, seen.index, &policy),
        None => Err(ApiError::not_found("ACL policy not found").at(seen.index)),
    }
}

pub(super) async fn put_policy(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Request,
) -> Answer {
    let mut asked: AclPolicyDto = body::decode_with_nulls(request).await?;
    if !asked.stub.name.is_empty() && asked.stub.name != name {
        let words = "the body is of a policy of another name than the path";
        return Err(ApiError::bad(words));
    }
    asked.stub.name = name;
    let policy: AclPolicy = asked.asked().map_err(ApiError::bad)?;
    Policy::parse(&policy.rules).map_err(|why| ApiError::bad(why.to_string()))?;
    answer::done(api.agent_handle.request(ApplyAclPolicy { policy }).await?)
}

pub(super) async fn delete_policy(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let name = name.into();
    answer::done(api.agent_handle.request(DeleteAclPolicy { name }).await?)
}

pub(super) async fn list_tokens(State(api): State<Api>, params: Params) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let all = view.acl_tokens().values();
        let wanted = all.filter(|one| asked.is_prefix_of(one.token.accessor));
        Indexed::whole(view, wanted.cloned().collect::<Vec<_>>())
    })
    .await?;
    let shown = Indexed {
        index: seen.index,
        value: (seen.value.iter().map(|record| AclTokenStub::of(record))).collect::<Vec<_>>(),
    };
    let token = |one: &AclTokenStub| one.accessor_id.clone();
    list::list(params, shown, token, AclTokenStub::clone).await
}

pub(super) async fn one_token(
    State(api): State<Api>,
    Path(accessor): Path<String>,
    params: Params,
) -> Answer {
    let accessor = read_accessor(&accessor)?;
    let seen = blocking_query(&api, &params, move |view| {
        Indexed::whole(view, view.acl_tokens().get(&accessor).cloned())
    })
    .await?;
    match seen.value {
        Some(record) => answer::read(
            &params,
            seen.index,
            &AclTokenDto::of(&record, String::new()),
        ),
        None => Err(ApiError::not_found("ACL token not found").at(seen.index)),
    }
}

/// What somebody says who wants the first token.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Bootstrap {
    /// Its secret, if it is not to be made here.
    bootstrap_secret: String,
}

/// The first token, for whoever asks first.
pub(super) async fn bootstrap(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let asked: Bootstrap = body::decode_or_default(request).await?;
    let secret = match asked.bootstrap_secret {
        given if given.is_empty() => new_secret()?,
        given => given
            .parse::<AccessorId>()
            .map_err(|_| ApiError::bad("invalid bootstrap secret: it is a UUID"))?
            .to_string(),
    };
    let token = AclToken {
        name: "Bootstrap Token".to_owned(),
        ..named(&secret)?
    };
    made(
        &params,
        api.agent_handle.request(BootstrapAcl { token }).await?,
        secret,
    )
}

pub(super) async fn create_token(
    State(api): State<Api>,
    params: Params,
    request: Request,
) -> Answer {
    let asked: AclTokenDto = body::decode_with_nulls(request).await?;
    if !asked.stub.accessor_id.is_empty() {
        let words = "a token that is made is given its AccessorID; POST to /v1/acl/token/<accessor> changes one";
        return Err(ApiError::bad(words));
    }
    let now = times::now();
    let expires = asked.expires(now).map_err(ApiError::bad)?;
    if let Some(at) = expires {
        let (least, most) = api.settings.token_times();
        let span = Span(at.0.saturating_sub(now.0));
        if span < least || span > most {
            let words = format!(
                "a token that expires lasts {least} to {most}: see token_min_expiration_ttl and token_max_expiration_ttl"
            );
            return Err(ApiError::bad(words));
        }
    }
    let secret = new_secret()?;
    let AclToken {
        accessor, digest, ..
    } = named(&secret)?;
    let token = AclToken {
        accessor,
        digest,
        expires,
        ..asked.asked().map_err(ApiError::bad)?
    };
    made(
        &params,
        api.agent_handle.request(CreateAclToken { token }).await?,
        secret,
    )
}

pub(super) async fn update_token(
    State(api): State<Api>,
    Path(accessor): Path<String>,
    params: Params,
    request: Request,
) -> Answer {
    let asked: AclTokenDto = body::decode_with_nulls(request).await?;
    let of_path = read_accessor(&accessor)?;
    let of_body = &asked.stub.accessor_id;
    if !of_body.is_empty() && read_accessor(of_body)? != of_path {
        return Err(ApiError::bad("the body is of another token than the path"));
    }
    let token = asked.asked().map_err(ApiError::bad)?;
    let change = UpdateAclToken {
        accessor: of_path,
        name: token.name,
        token_type: token.token_type,
        policies: token.policies,
    };
    made(
        &params,
        api.agent_handle.request(change).await?,
        String::new(),
    )
}

pub(super) async fn delete_token(State(api): State<Api>, Path(accessor): Path<String>) -> Answer {
    let accessor = read_accessor(&accessor)?;
    answer::done(
        api.agent_handle
            .request(DeleteAclToken { accessor })
            .await?,
    )
}

/// The token of whoever asks, without its secret.
pub(super) async fn own_token(State(api): State<Api>, params: Params) -> Answer {
    let index = api.agent_handle.ask(|view| view.index()).await?;
    let principal = &params.principal;
    let shown = match principal.token() {
        Some(record) => AclTokenDto::of(record, String::new()),
        None if principal.is_unlimited() => AclTokenDto::without_secret(
            "local",
            "The agent's own user, by its unix socket",
            "management",
            &[],
        ),
        None => {
            AclTokenDto::without_secret("anonymous", "Anonymous Token", "client", &["anonymous"])
        }
    };
    answer::read(&params, index, &shown)
}

/// What there is in Nomad, and not here.
pub(super) async fn not_here() -> Answer {
    let words = format!(
        "{NO_ROLES}; auth methods, binding rules, one-time tokens and logins are not supported either"
    );
    Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, words))
}

/// A secret that nobody guesses.
fn new_secret() -> Result<String, ApiError> {
    Ok(new_accessor()?.to_string())
}

fn new_accessor() -> Result<AccessorId, ApiError> {
    let made = facts::new_uuid().map(AccessorId);
    made.map_err(|why| ApiError::failed(format!("cannot make a token: {why}")))
}

/// A new name for a token with this secret.
fn named(secret: &str) -> Result<AclToken, ApiError> {
    Ok(AclToken {
        accessor: new_accessor()?,
        digest: digest(secret),
        ..AclToken::default()
    })
}

fn read_accessor(text: &str) -> Result<AccessorId, ApiError> {
    let words = "invalid token accessor: it is a UUID";
    text.parse().map_err(|_| ApiError::bad(words))
}

/// A token was made or changed; its secret is shown, if it is known.
fn made(params: &Params, reply: Reply, secret: String) -> Answer {
    match reply {
        Reply::AclToken(record) => {
            let shown = AclTokenDto::of(&record, secret);
            answer::written(params, record.modify_index, &shown)
        }
        other => Err(ApiError::unexpected(other)),
    }
}
