//! Blocking queries: an answer comes when the state is newer than what the client knows, or when
//! the client's wait time is over.

use std::time::Duration;

use drover_core::agent::View;
use tokio::time::Instant;

use super::Api;
use super::errors::ApiError;
use super::params::Params;

/// Something of the state, and the index that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Indexed<T> {
    /// Rises whenever the value may have changed. Never 0.
    pub(super) index: u64,
    /// What was seen.
    pub(super) value: T,
}

impl<T> Indexed<T> {
    /// Something that may change with every change of the state.
    pub(super) fn whole(view: View<'_>, value: T) -> Indexed<T> {
        Indexed {
            index: view.index().max(1),
            value,
        }
    }
}

/// Looks at the state, again and again while it is not newer than the client's index.
///
/// # Errors
/// The agent ends, or too many wait already.
pub(super) async fn blocking_query<T, F>(
    api: &Api,
    params: &Params,
    question: F,
) -> Result<Indexed<T>, ApiError>
where
    T: Send + 'static,
    F: Fn(View<'_>) -> Indexed<T> + Clone + Send + 'static,
{
    let mut changes = api.agent_handle.index();
    let region = params.non_empty("region").map(str::to_owned);
    if let Some(wanted) = region {
        let own = api
            .agent_handle
            .ask(|view| view.node().region.clone())
            .await?;
        if own != wanted {
            return Err(ApiError::failed("No path to region"));
        }
    }
    let until = Instant::now() + params.wait + jitter(params.wait);
    let mut waits = None;
    loop {
        // Noted before looking: a change in between leads to another look.
        changes.borrow_and_update();
        if waits.is_some() && !params.principal.is_current(api).await? {
            return Err(ApiError::denied());
        }
        let seen = api.agent_handle.ask(question.clone()).await?;
        if params.index == 0 || seen.index > params.index {
            return Ok(seen);
        }
        if waits.is_none() {
            waits = Some(params.caller.block()?);
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return Ok(seen);
                }
            }
            () = tokio::time::sleep_until(until) => return Ok(seen),
        }
    }
}

/// Up to a sixteenth, so that clients that came together do not come together again.
fn jitter(wait: Duration) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    // The low digits of the clock are as good as random here.
    (wait / 16).mul_f64(f64::from(nanos % 1_000) / 1_000.0)
}
