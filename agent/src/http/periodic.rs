//! Periodic jobs: launching one by hand, and when one is launched.

use drover_core::agent::requests::ForcePeriodic;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;

use super::Api;
use super::answer::{self, Answer};
use super::blocking::Indexed;
use super::dto::{Forced, PeriodicLaunches};
use super::errors::ApiError;
use super::job::of_record;
use super::params::Params;

/// `PUT /v1/job/ID/periodic/force`.
pub(super) async fn force(api: &Api, params: &Params, job: JobKey) -> Answer {
    match api.agent_handle.request(ForcePeriodic { job }).await? {
        Reply::Dispatched { eval, index, .. } => {
            let answer = Forced {
                eval_create_index: eval.map_or(0, |_| index),
                eval_id: eval.map(|id| id.to_string()).unwrap_or_default(),
                index,
            };
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// `GET /v1/job/ID/periodic`, which Nomad has not: when it is launched next, and what became of its last time.
pub(super) async fn launches(api: &Api, params: &Params, key: JobKey) -> Answer {
    of_record(api, params, key, "job not found", |view, record| {
        Indexed::whole(view, PeriodicLaunches::of(view, &record.job))
    })
    .await
}
