//! Who asks, and what they may do: access control of the API.
//!
//! Without `acl { enabled = true }` everybody may do everything. With it, each request is asked three questions:
//!
//! 1. [`identify`]: whose is it? The token of its headers is looked up by its digest ([`directory`]), in a cluster also
//!    at its servers ([`servers`]); who has none is anonymous. Whoever comes over the unix socket is the agent's own user, and needs none.
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
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub(crate) use directory::Directory;
pub(crate) use principal::Principal;
pub(super) use principal::require;
pub(super) use revocation::bounded;
pub(crate) use servers::Servers;
pub use servers::{ServersPolicy, ServersToken, TokenServers, Unresolved};
pub(super) use token::of_node;

use super::Api;
use super::errors::ApiError;
use super::serve::Transport;
use need::{Asked, Need};

/// Whose a request is, or why nobody knows.
#[derive(Clone)]
struct Identified(Result<Principal, ApiError>);

/// Finds out whose a request is. Whether that matters, its route knows.
pub(super) async fn identify(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let transport = request.extensions().get::<Transport>().copied();
    let identified = match transport.unwrap_or_default() {
        Transport::Local => Ok(Principal::unlimited()),
        Transport::Network => {
            let secret = token::of_headers(request.headers());
            api.directory.identify(&api.agent_handle, secret).await
        }
    };
    let extensions = request.extensions_mut();
    if let Ok(principal) = &identified {
        extensions.insert(principal.clone());
    }
    extensions.insert(Identified(identified));
    next.run(request).await
}

impl Api {
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
    request: Request,
    next: Next,
) -> Response {
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
    let principal = match request.extensions().get::<Identified>() {
        Some(Identified(Ok(principal))) => principal.clone(),
        Some(Identified(Err(error))) => return error.clone().into_response(),
        None => return ApiError::denied().into_response(),
    };
    if let Err(error) = need.check(&guarded.api, &principal, &asked).await {
        return error.into_response();
    }
    let response = next.run(request).await;
    revocation::bounded(&guarded.api, &principal, response)
}
