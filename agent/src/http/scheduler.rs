//! The scheduler's configuration: how jobs are taken in and placed. What means nothing on one node is
//! refused in words, unless it is as good as done.

use axum::extract::{Request, State};
use drover_core::agent::requests::SetScheduler;
use drover_core::effect::Reply;
use drover_core::model::scheduler::{Algorithm, Preemption, SchedulerConfig};
use drover_core::text::quote;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body};

/// The settings, in Nomad's shape. What a body leaves out is off, as there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct SchedulerConfigDto {
    pub(crate) scheduler_algorithm: String,
    pub(crate) preemption_config: PreemptionDto,
    pub(crate) memory_oversubscription_enabled: bool,
    pub(crate) reject_job_registration: bool,
    pub(crate) pause_eval_broker: bool,
    pub(crate) node_limit_for_feasibility_checks: i64,
    pub(crate) create_index: u64,
    pub(crate) modify_index: u64,
}

/// Which types of jobs may preempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PreemptionDto {
    #[serde(rename = "SystemSchedulerEnabled")]
    pub(crate) system: bool,
    #[serde(rename = "SysBatchSchedulerEnabled")]
    pub(crate) sysbatch: bool,
    #[serde(rename = "BatchSchedulerEnabled")]
    pub(crate) batch: bool,
    #[serde(rename = "ServiceSchedulerEnabled")]
    pub(crate) service: bool,
}

impl SchedulerConfigDto {
    fn config(&self) -> Result<SchedulerConfig, ApiError> {
        let algorithm = match self.scheduler_algorithm.as_str() {
            "" => Algorithm::default(),
            name => Algorithm::named(name).ok_or_else(|| {
                let words = format!(
                    "invalid scheduler algorithm {}; valid are binpack and spread",
                    quote(name)
                );
                ApiError::bad(words)
            })?,
        };
        if self.pause_eval_broker {
            return Err(ApiError::bad(
                "PauseEvalBroker: evaluations cannot be paused here; to take no new jobs, set \
                 RejectJobRegistration, and to place nothing, make the node ineligible",
            ));
        }
        if self.node_limit_for_feasibility_checks != 0 {
            return Err(ApiError::bad(
                "NodeLimitForFeasibilityChecks: there is one node, which is always checked: leave it 0",
            ));
        }
        Ok(SchedulerConfig {
            algorithm,
            preemption: Preemption {
                service: self.preemption_config.service,
                batch: self.preemption_config.batch,
                system: self.preemption_config.system,
                sysbatch: self.preemption_config.sysbatch,
            },
            memory_oversubscription: self.memory_oversubscription_enabled,
            reject_job_registration: self.reject_job_registration,
        })
    }
}

/// The settings. Until somebody sets them, they are those of the agent's configuration.
pub(super) async fn configuration(State(api): State<Api>, params: Params) -> Answer {
    let shown = api
        .agent_handle
        .ask(|view| (view.scheduler_config(), view.index()));
    let (known, index) = shown.await?;
    let (config, preemption) = (known.config, known.config.preemption);
    let value = json!({
        "SchedulerConfig": SchedulerConfigDto {
            scheduler_algorithm: config.algorithm.name().to_owned(),
            preemption_config: PreemptionDto {
                system: preemption.system,
                sysbatch: preemption.sysbatch,
                batch: preemption.batch,
                service: preemption.service,
            },
            memory_oversubscription_enabled: config.memory_oversubscription,
            reject_job_registration: config.reject_job_registration,
            pause_eval_broker: false,
            node_limit_for_feasibility_checks: 0,
            create_index: known.create_index,
            modify_index: known.modify_index,
        },
        "Index": index,
        "LastContact": 0,
        "KnownLeader": true,
        "NextToken": "",
    });
    answer::read(&params, index, &value)
}

/// Sets them, if their index is the expected one where one is expected.
pub(super) async fn set(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let expect_index = (params.non_empty("cas").map(str::parse).transpose())
        .map_err(|_| ApiError::bad("can not parse cas: it is the index of a change"))?;
    let given: SchedulerConfigDto = body::decode(request).await?;
    let asked = SetScheduler {
        config: given.config()?,
        expect_index,
    };
    match api.agent_handle.request(asked).await? {
        Reply::NodeChanged { index, .. } => {
            let now = match index {
                0 => api.agent_handle.ask(|view| view.index()).await?,
                index => index,
            };
            let value = json!({ "Updated": index != 0, "Index": now });
            answer::written(&params, now, &value)
        }
        other => Err(ApiError::unexpected(other)),
    }
}
