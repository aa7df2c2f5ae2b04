//! `drover operator scheduler`: how jobs are taken in and placed.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{SchedulerCommand, SchedulerSetArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::block;
use crate::http::scheduler::SchedulerConfigDto;

const PATH: &str = "/v1/operator/scheduler/configuration";

/// What the agent answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Known {
    scheduler_config: SchedulerConfigDto,
}

/// Runs the command.
///
/// # Errors
/// The agent does not answer, or refuses.
pub(super) async fn run(cx: &mut Context, command: SchedulerCommand) -> Outcome {
    match command {
        SchedulerCommand::GetConfig(args) if args.shape.is_asked() => {
            let whole: Value = cx.client.get(PATH, &[]).await?;
            cx.show(&args.shape, &whole)
        }
        SchedulerCommand::GetConfig(_) => {
            let known: Known = cx.client.get(PATH, &[]).await?;
            cx.screen.print_line(&text(&known.scheduler_config))?;
            Ok(0)
        }
        SchedulerCommand::SetConfig(args) => set(cx, &args).await,
    }
}

fn text(config: &SchedulerConfigDto) -> String {
    let preemption = &config.preemption_config;
    let switch = |on: bool| on.to_string();
    block([
        ("Scheduler Algorithm", config.scheduler_algorithm.clone()),
        (
            "Memory Oversubscription",
            switch(config.memory_oversubscription_enabled),
        ),
        (
            "Reject Job Registration",
            switch(config.reject_job_registration),
        ),
        ("Pause Eval Broker", switch(config.pause_eval_broker)),
        ("Preemption System Scheduler", switch(preemption.system)),
        ("Preemption Service Scheduler", switch(preemption.service)),
        ("Preemption Batch Scheduler", switch(preemption.batch)),
        ("Preemption SysBatch Scheduler", switch(preemption.sysbatch)),
        (
            "Node Limit For Feasibility Checks",
            config.node_limit_for_feasibility_checks.to_string(),
        ),
        ("Modify Index", config.modify_index.to_string()),
    ])
}

/// Sets what is given, and leaves the rest as it is: nobody may have changed it meanwhile.
async fn set(cx: &mut Context, args: &SchedulerSetArgs) -> Outcome {
    let known: Known = cx.client.get(PATH, &[]).await?;
    let mut config = known.scheduler_config;
    let expect = args.check_index.unwrap_or(config.modify_index).to_string();
    if let Some(algorithm) = &args.scheduler_algorithm {
        config.scheduler_algorithm.clone_from(algorithm);
    }
    let preemption = &mut config.preemption_config;
    for (setting, given) in [
        (
            &mut config.memory_oversubscription_enabled,
            args.memory_oversubscription,
        ),
        (
            &mut config.reject_job_registration,
            args.reject_job_registration,
        ),
        (&mut config.pause_eval_broker, args.pause_eval_broker),
        (&mut preemption.system, args.preempt_system_scheduler),
        (&mut preemption.service, args.preempt_service_scheduler),
        (&mut preemption.batch, args.preempt_batch_scheduler),
        (&mut preemption.sysbatch, args.preempt_sysbatch_scheduler),
    ] {
        *setting = given.unwrap_or(*setting);
    }
    if let Some(limit) = args.node_limit_for_feasibility_checks {
        config.node_limit_for_feasibility_checks = limit;
    }
    let query = [("cas", expect.as_str())];
    let body = json!(config);
    let answer: Value = cx
        .client
        .change(Method::PUT, PATH, &query, Some(&body))
        .await?;
    if answer.get("Updated").and_then(Value::as_bool) != Some(true) {
        return Err(Failure::new(
            "The scheduler's configuration was changed meanwhile and stays as it is: read it and try again",
        ));
    }
    cx.screen.print_line("Scheduler configuration updated!")?;
    Ok(0)
}
