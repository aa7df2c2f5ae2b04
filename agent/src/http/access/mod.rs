//! Who asks, and what they may do: access control of the API.
//!
//! Without `acl { enabled = true }` everybody may do everything. With it, each request is asked three questions:
//!
//! 1. [`identify`]: whose is it? The token of its headers is looked up by its digest ([`directory`]), in a cluster also
//!    at its servers ([`servers`]); who has none is anonymous. Whoever comes over the unix socket is the agent's own
//!    user, and needs none. Nobody asks where everybody may: whether the agent is well.
//! 2. [`check`]: may they do that? Each route says what it needs where it is made ([`routes`], [`need`]).
//! 3. What may they see? Lists ask the [`Principal`] about each namespace (`Params::includes`), and handlers whose
//!    namespace stands in a body ask for themselves ([`need::Need::InHandler`]).
//!
//! What lasts long (streams, websockets, blocking queries) ends when its token does, or when its policies change.

mod directory;
pub(super) mod need;
mod principal;
mod revocation;
pub(super) mod routes;
mod servers;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub(crate) use directory::Directory;
pub use directory::ForServers;
pub(crate) use principal::Principal;
pub(super) use principal::{require, token_for_servers};
pub(super) use revocation::bounded;
pub(crate) use servers::Servers;
pub use servers::{ServersPolicy, ServersToken, TokenServers, Unresolved};
pub(super) use token::of_node;

use super::errors::ApiError;
use super::serve::Transport;
use super::{Api, guard};
use need::{Asked, Need};

/// Finds out whose a request is.
///
/// # Errors
/// Nobody knows.
async fn identify(
    api: &Api,
    transport: Transport,
    headers: &HeaderMap,
) -> Result<Principal, ApiError> {
    match transport {
        Transport::Local => Ok(Principal::unlimited()),
        Transport::Network => api.sender(headers).await,
    }
}

impl Api {
    /// Who sends a request with these headers over the network.
    ///
    /// # Errors
    /// Nobody knows.
    pub(super) async fn sender(&self, headers: &HeaderMap) -> Result<Principal, ApiError> {
        let secret = token::of_headers(headers);
        self.directory.identify(&self.agent_handle, secret).await
    }

    /// Who sends a token within a websocket; whoever needs none stays who they are.
    pub(super) async fn sender_of(
        &self,
        principal: &Principal,
        secret: &str,
    ) -> Result<Principal, ApiError> {
        if principal.is_unlimited() {
            return Ok(principal.clone());
        }
        let secret = token::Secret::of(secret);
        self.directory.identify(&self.agent_handle, secret).await
    }
}

/// Lets a request pass to its handler if its principal has what the route needs.
async fn check(
    State(guarded): State<Arc<routes::Guarded>>,
    mut request: Request,
    next: Next,
) -> Response {
    if guarded.needs.acts_by_get()
        && request.method() == Method::GET
        && let Err(error) = guard::may_act_by_get(request.headers())
    {
        return error.into_response();
    }
    let need = guarded.needs.of(request.method());
    if let Need::Nothing = need {
        return next.run(request).await;
    }
    let asked = Asked {
        pattern: guarded.path,
        method: request.method(),
        uri: request.uri(),
    };
    if let Need::AllocOrDisk(_) = need
        && let Some(alloc) = asked.id()
        && (guarded.api.settings.secret).allows(alloc, token::of_node(request.headers()))
    {
        return next.run(request).await;
    }
    let transport = request.extensions().get().copied().unwrap_or_default();
    let principal = match identify(&guarded.api, transport, request.headers()).await {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    if let Err(error) = need.check(&guarded.api, &principal, &asked).await {
        return error.into_response();
    }
    request.extensions_mut().insert(principal.clone());
    let response = next.run(request).await;
    revocation::bounded(&guarded.api, &principal, response)
}
