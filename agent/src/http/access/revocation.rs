//! What lasts long ends when its principal may not go on: the token expires or is deleted, or a policy changes.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures::StreamExt;
use futures::stream;
use tokio::time::{Instant, sleep_until, timeout};

use super::principal::{Origin, Principal};
use crate::http::Api;
use crate::http::errors::ApiError;
use crate::times;

/// The pause between two questions about the same principal: whoever was revoked is found within it, and a stream
/// costs little while much changes.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the agent waits for a change before it asks anyhow.
const LONGEST: Duration = Duration::from_secs(60);

impl Principal {
    /// For how long nobody has to ask whether their token expired.
    fn lasts(&self) -> Duration {
        let expires = self.token().and_then(|record| record.token.expires);
        let Some(expires) = expires else {
            return LONGEST;
        };
        let nanos = u64::try_from((expires - times::now()).0).unwrap_or(0);
        Duration::from_nanos(nanos).min(LONGEST)
    }

    /// Whether they still are who they were, with the same rights.
    ///
    /// # Errors
    /// The agent ends.
    pub(crate) async fn is_current(&self, api: &Api) -> Result<bool, ApiError> {
        api.directory.still_knows(&api.agent_handle, self).await
    }

    /// Waits until they are not any more who they were, or have other rights. For ever where that cannot happen.
    pub(crate) async fn revoked(&self, api: &Api) {
        if let Origin::Unlimited = self.origin() {
            return std::future::pending().await;
        }
        let mut changes = api.agent_handle.index();
        loop {
            changes.borrow_and_update();
            let of_servers = api.directory.lasts().unwrap_or(LONGEST);
            let lasts = match self.is_current(api).await {
                Ok(true) => self.lasts().min(of_servers.max(PAUSE)),
                Ok(false) => return,
                // Nobody says it now; if the agent ends, so does everything.
                Err(_) => PAUSE,
            };
            let asked = Instant::now();
            match timeout(lasts, changes.changed()).await {
                Ok(Ok(())) => sleep_until(asked + PAUSE).await,
                Ok(Err(_)) => return std::future::pending().await,
                Err(_) => {}
            }
        }
    }
}

/// The same answer, which breaks off when its principal is revoked. One that is complete is sent whole.
pub(in crate::http) fn bounded(api: &Api, principal: &Principal, response: Response) -> Response {
    let is_complete = response.body().size_hint().exact().is_some();
    if is_complete || matches!(principal.origin(), Origin::Unlimited) {
        return response;
    }
    let (api, principal) = (api.clone(), principal.clone());
    response.map(|body| {
        let revoked = Box::pin(async move { principal.revoked(&api).await });
        let pieces = body.into_data_stream().take_until(revoked);
        // Only what is cut off has this error at its end: nobody takes a part for the whole.
        let pieces = stream::unfold(Some(pieces), |pieces| async move {
            let mut pieces = pieces?;
            match pieces.next().await {
                Some(piece) => Some((piece, Some(pieces))),
                None if pieces.take_result().is_some() => Some((Err(broken_off()), None)),
                None => None,
            }
        });
        Body::from_stream(pieces)
    })
}

fn broken_off() -> axum::Error {
    axum::Error::new(std::io::Error::other(
        "the token of this request is not valid any more",
    ))
}
