//! `drover scaling policy`: within which bounds groups are scaled.

use std::collections::BTreeMap;

use serde_json::Value;

use super::args::{PolicyInfoArgs, PolicyListArgs, ScalingPolicyCommand};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, short, table};
use crate::http::dto::PolicyDto;

/// Runs the command.
///
/// # Errors
/// There is no such policy, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: ScalingPolicyCommand) -> Outcome {
    match command {
        ScalingPolicyCommand::List(args) => list(cx, args).await,
        ScalingPolicyCommand::Info(args) => info(cx, args).await,
    }
}

fn target(target: &BTreeMap<String, String>) -> String {
    let parts = ["Namespace", "Job", "Group"].map(|name| {
        let value = target.get(name).map(String::as_str).unwrap_or_default();
        format!("{name}:{value}")
    });
    parts.join(",")
}

async fn list(cx: &mut Context, args: PolicyListArgs) -> Outcome {
    let mut query = Vec::new();
    query.extend(args.job.as_deref().map(|job| ("job", job)));
    query.extend(args.kind.as_deref().map(|kind| ("type", kind)));
    if args.shape.is_asked() {
        let all: Value = cx.client.get("/v1/scaling/policies", &query).await?;
        return cx.show(&args.shape, &all);
    }
    let all: Vec<PolicyDto> = cx.client.get("/v1/scaling/policies", &query).await?;
    if all.is_empty() {
        cx.screen.print_line("No policies found")?;
        return Ok(0);
    }
    let row = |policy: &PolicyDto| {
        [
            short(&policy.id, args.verbose),
            policy.enabled.to_string(),
            policy.kind.clone(),
            target(&policy.target),
        ]
    };
    let header = ["ID", "Enabled", "Type", "Target"];
    cx.screen.print_line(&table(header, all.iter().map(row)))?;
    Ok(0)
}

async fn info(cx: &mut Context, args: PolicyInfoArgs) -> Outcome {
    let all: Vec<PolicyDto> = cx.client.get("/v1/scaling/policies", &[]).await?;
    let mut found = all.iter().filter(|one| one.id.starts_with(&args.policy));
    let (Some(policy), None) = (found.next(), found.next()) else {
        return Err(Failure::new(format!(
            "No scaling policy, or several, with prefix or ID \"{}\" found",
            args.policy
        )));
    };
    let path = format!("/v1/scaling/policy/{}", policy.id);
    let whole: Value = cx.client.get(&path, &[]).await?;
    if args.shape.is_asked() {
        return cx.show(&args.shape, &whole);
    }
    let policy: PolicyDto = cx.client.get(&path, &[]).await?;
    let target = target(&policy.target);
    cx.screen.print_line(&block([
        ("ID", short(&policy.id, args.verbose)),
        ("Enabled", policy.enabled.to_string()),
        ("Target", target),
        ("Min", policy.min.to_string()),
        ("Max", policy.max.to_string()),
    ]))?;
    cx.screen.title("\nPolicy")?;
    cx.print_json(&policy.policy)
}
