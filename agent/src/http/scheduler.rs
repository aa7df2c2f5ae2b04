//! The scheduler's configuration, read only.

use axum::extract::State;
use serde_json::json;

use super::Api;
use super::answer::{self, Answer};
use super::params::Params;

/// The settings. They come with the agent's configuration and change with it alone.
pub(super) async fn configuration(State(api): State<Api>, params: Params) -> Answer {
    let shown = api
        .agent_handle
        .ask(|view| (view.preemption(), view.index()));
    let (preemption, index) = shown.await?;
    let value = json!({
        "SchedulerConfig": {
            "SchedulerAlgorithm": "binpack",
            "PreemptionConfig": {
                "SystemSchedulerEnabled": preemption.system,
                "SysBatchSchedulerEnabled": preemption.sysbatch,
                "BatchSchedulerEnabled": preemption.batch,
                "ServiceSchedulerEnabled": preemption.service,
            },
            "MemoryOversubscriptionEnabled": false,
            "RejectJobRegistration": false,
            "PauseEvalBroker": false,
            "CreateIndex": 0,
            "ModifyIndex": 0,
        },
        "Index": index,
        "LastContact": 0,
        "KnownLeader": true,
        "NextToken": "",
    });
    answer::json(&params, &value)
}
