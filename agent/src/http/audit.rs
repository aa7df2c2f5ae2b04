//! What Drover made on this host, and whose it is. GET lists and changes nothing; PUT removes what
//! is leaked.

use axum::extract::State;
use drover_core::host::{Known, Owner};
use drover_io_real::audit::{Auditor, Thing};
use tokio::task::spawn_blocking;

use super::Api;
use super::answer::{self, Answer};
use super::dto::{AuditDto, audited};
use super::errors::ApiError;
use super::params::Params;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let found = inspect(&api).await?;
    let shown = found
        .iter()
        .map(|(thing, owner)| audited(thing, owner.clone()));
    answer::json(&params, &shown.collect::<Vec<AuditDto>>())
}

/// Looks anew, and removes what is leaked; the list says what was done about what.
pub(super) async fn fix(State(api): State<Api>, params: Params) -> Answer {
    let auditor = auditor(&api)?;
    let found = inspect(&api).await?;
    let work = move || -> Vec<AuditDto> {
        let each = found.into_iter();
        each.map(|(thing, owner)| mend(&auditor, &thing, owner))
            .collect()
    };
    let shown = spawn_blocking(work);
    answer::json(&params, &shown.await.map_err(lost)?)
}

fn mend(auditor: &Auditor, thing: &Thing, owner: Owner) -> AuditDto {
    let leaked = owner == Owner::Leaked;
    let mut shape = audited(thing, owner);
    if leaked {
        let (kind, name) = (thing.kind.name(), &thing.name);
        match auditor.remove(thing) {
            Ok(done) => {
                tracing::info!(kind, name, done, "orphaned, and removed");
                done.clone_into(&mut shape.done);
            }
            Err(error) => {
                tracing::warn!(kind, name, %error, "orphaned, and cannot be removed");
                shape.error = error.to_string();
            }
        }
    }
    shape
}

/// Everything with its owner. The host is looked at first and the state then: whatever was there
/// belongs to something that had been saved before, so that nothing is taken for leaked that begins
/// meanwhile. What ends meanwhile is over when the state does not know it any more; so what seems to
/// be leaked is looked for again.
async fn inspect(api: &Api) -> Result<Vec<(Thing, Owner)>, ApiError> {
    let auditor = auditor(api)?;
    let things = survey(&auditor).await?;
    let known = known(api, auditor.knows_all()).await?;
    let owned = |thing: Thing| {
        let owner = known.owner(&thing.home, &thing.named_after);
        (thing, owner)
    };
    let mut found: Vec<(Thing, Owner)> = things.into_iter().map(owned).collect();
    if found.iter().any(|(_, owner)| *owner == Owner::Leaked) {
        let left = survey(&auditor).await?;
        found.retain(|(thing, owner)| {
            *owner != Owner::Leaked || left.iter().any(|other| other.is_same(thing))
        });
    }
    Ok(found)
}

async fn survey(auditor: &Auditor) -> Result<Vec<Thing>, ApiError> {
    let auditor = auditor.clone();
    let survey = spawn_blocking(move || auditor.survey());
    let things = survey.await.map_err(lost)?;
    things.map_err(|error| ApiError::failed(format!("cannot inspect this host: {error}")))
}

async fn known(api: &Api, whole: bool) -> Result<Known, ApiError> {
    let plugins = api.settings.plugins.status();
    let plugins = plugins.into_iter().map(|status| status.file);
    let plugins: Vec<String> = plugins.collect();
    let known = api
        .agent_handle
        .ask(move |view| Known::of(view, plugins, whole));
    Ok(known.await?)
}

fn auditor(api: &Api) -> Result<Auditor, ApiError> {
    let auditor = api.settings.auditor.clone();
    auditor.ok_or_else(|| ApiError::failed("this agent cannot inspect its host"))
}

fn lost(error: tokio::task::JoinError) -> ApiError {
    ApiError::failed(format!("its work was lost: {error}"))
}
