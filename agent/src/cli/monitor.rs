//! Following what becomes of a submission: its evaluation, then its roll-out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::cause;
use super::client::Answer;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, columns, short};
use crate::http::dto::{AllocMetric, AllocStub, DeploymentDto, EvaluationDto};

/// How long an agent that does not answer any more is waited for: it may be restarted or upgraded.
const AWAY: Duration = Duration::from_secs(60);
/// How often it is asked again meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The exit code where a group cannot be placed.
pub(super) const PLACEMENT_FAILED: u8 = 2;

/// Follows an evaluation to its end, and then its roll-out.
///
/// # Errors
/// The agent does not answer any more.
pub(super) async fn eval(cx: &mut Context, id: &str, verbose: bool) -> Outcome {
    let eval = finish(cx, id, verbose).await?;
    if !eval.failed_groups.is_empty() {
        cx.screen
            .print_line(&format!("Failed Placements\n{}", failed_groups(&eval)))?;
        if !eval.blocked_eval.is_empty() {
            let blocked = short(&eval.blocked_eval, verbose);
            cx.screen.print_line(&format!(
                "Evaluation \"{blocked}\" waiting for additional capacity to place remainder"
            ))?;
        }
        return Ok(PLACEMENT_FAILED);
    }
    if eval.deployment_id.is_empty() || eval.status != "complete" {
        return Ok(u8::from(eval.status == "failed"));
    }
    deployment(cx, &eval.deployment_id, verbose).await
}

/// Follows an evaluation to its end, and no further.
///
/// # Errors
/// The agent does not answer any more.
pub(super) async fn eval_only(cx: &mut Context, id: &str, verbose: bool) -> Outcome {
    let eval = finish(cx, id, verbose).await?;
    Ok(u8::from(eval.status == "failed"))
}

async fn finish(cx: &mut Context, id: &str, verbose: bool) -> Result<EvaluationDto, Failure> {
    let shown = short(id, verbose);
    cx.screen.title(&format!(
        "==> {}: Monitoring evaluation \"{shown}\"",
        cx.stamp()
    ))?;
    let path = format!("/v1/evaluation/{id}");
    let mut index = 0;
    let mut first = true;
    let eval = loop {
        let after = index.to_string();
        let query = [("index", after.as_str())];
        let answer: Answer<EvaluationDto> = follow(cx, &path, &query).await?;
        index = answer.index;
        if core::mem::take(&mut first) {
            note(
                cx,
                &format!("Evaluation triggered by job \"{}\"", answer.value.job_id),
            )?;
        }
        if !matches!(answer.value.status.as_str(), "pending" | "") {
            break answer.value;
        }
    };
    if !eval.deployment_id.is_empty() {
        let deployment = short(&eval.deployment_id, verbose);
        note(
            cx,
            &format!("Evaluation within deployment: \"{deployment}\""),
        )?;
    }
    let allocs: Vec<AllocStub> = cx.client.get(&format!("{path}/allocations"), &[]).await?;
    for alloc in allocs {
        note(cx, &alloc_line(&alloc, verbose))?;
    }
    note(
        cx,
        &format!(
            "Evaluation status changed: \"pending\" -> \"{}\"",
            eval.status
        ),
    )?;
    cx.screen.title(&format!(
        "==> {}: Evaluation \"{shown}\" finished with status \"{}\"",
        cx.stamp(),
        eval.status
    ))?;
    Ok(eval)
}

/// Reads what is followed. That an agent is restarted meanwhile is no reason to give up.
///
/// # Errors
/// The agent does not answer any more, or with an error.
pub(super) async fn follow<T: DeserializeOwned>(
    cx: &mut Context,
    path: &str,
    query: &[(&str, &str)],
) -> Result<Answer<T>, Failure> {
    let mut away: Option<Instant> = None;
    loop {
        let failure = match cx.client.read(path, query).await {
            Err(failure) if failure.status.is_none() => failure,
            other => return other,
        };
        if away.is_none() {
            note(cx, &format!("{failure}; waiting for the agent"))?;
        }
        if away.get_or_insert_with(Instant::now).elapsed() > AWAY {
            return Err(failure);
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

fn alloc_line(alloc: &AllocStub, verbose: bool) -> String {
    let (id, node) = (short(&alloc.id, verbose), short(&alloc.node_id, verbose));
    format!(
        "Allocation \"{id}\" created: node \"{node}\", group \"{}\"",
        alloc.task_group
    )
}

fn note(cx: &mut Context, text: &str) -> Result<(), Failure> {
    let line = format!("    {}: {text}", cx.stamp());
    cx.screen.print_line(&line)
}

/// Follows a roll-out to its end.
///
/// # Errors
/// The agent does not answer any more.
pub(super) async fn deployment(cx: &mut Context, id: &str, verbose: bool) -> Outcome {
    let shown = short(id, verbose);
    cx.screen.title(&format!(
        "==> {}: Monitoring deployment \"{shown}\"",
        cx.stamp()
    ))?;
    let path = format!("/v1/deployment/{id}");
    let mut index = 0;
    let last = loop {
        let after = index.to_string();
        let query = [("stale", ""), ("index", after.as_str())];
        let answer: Answer<DeploymentDto> = follow(cx, &path, &query).await?;
        index = answer.index;
        let goes_on = matches!(
            answer.value.status.as_str(),
            "running" | "pending" | "blocked" | "unblocking" | "initializing" | "paused"
        );
        if !goes_on {
            break answer.value;
        }
        cx.screen.live(&progress(&answer.value));
    };
    cx.screen
        .print_line(&format!("\n{}\n{}", cx.stamp(), describe(&last, verbose)))?;
    if last.status == "failed" {
        cause::show(cx, id, verbose).await?;
    }
    Ok(u8::from(last.status != "successful"))
}

/// How far a roll-out is, in one line.
fn progress(deployment: &DeploymentDto) -> String {
    let groups = deployment.task_groups.iter().map(|(name, group)| {
        format!(
            "{name} {}/{} healthy",
            group.healthy_allocs, group.desired_total
        )
    });
    format!(
        "    {}: {}",
        deployment.status,
        groups.collect::<Vec<_>>().join(", ")
    )
}

/// A roll-out as it is shown.
pub(super) fn describe(deployment: &DeploymentDto, verbose: bool) -> String {
    let head = block([
        ("ID", short(&deployment.id, verbose)),
        ("Job ID", deployment.job_id.clone()),
        ("Job Version", deployment.job_version.to_string()),
        ("Status", deployment.status.clone()),
        ("Description", deployment.status_description.clone()),
    ]);
    format!("{head}\n\nDeployed\n{}", groups(deployment))
}

/// The table of a roll-out's groups. Canaries have columns where there are some.
pub(super) fn groups(deployment: &DeploymentDto) -> String {
    let all = || deployment.task_groups.values();
    let reverts = all().any(|group| group.auto_revert);
    let canaries = all().any(|group| group.desired_canaries > 0);
    let shown = |header: [&'static str; 9], cells: [bool; 9]| {
        let cells = header.into_iter().zip(cells);
        cells.filter(|(_, shown)| *shown).map(|(name, _)| name)
    };
    let shows = [
        true, reverts, canaries, true, canaries, true, true, true, true,
    ];
    let header = [
        "Task Group",
        "Auto Revert",
        "Promoted",
        "Desired",
        "Canaries",
        "Placed",
        "Healthy",
        "Unhealthy",
        "Progress Deadline",
    ];
    let header: Vec<String> = shown(header, shows).map(str::to_owned).collect();
    let rows = deployment.task_groups.iter().map(|(name, group)| {
        let deadline = group
            .require_progress_by
            .split('.')
            .next()
            .unwrap_or_default();
        let zone = if deadline.is_empty() || deadline.ends_with('Z') {
            ""
        } else {
            "Z"
        };
        let cells = [
            name.clone(),
            group.auto_revert.to_string(),
            group.promoted.to_string(),
            group.desired_total.to_string(),
            group.desired_canaries.to_string(),
            group.placed_allocs.to_string(),
            group.healthy_allocs.to_string(),
            group.unhealthy_allocs.to_string(),
            format!("{deadline}{zone}"),
        ];
        let cells = cells.into_iter().zip(shows);
        cells
            .filter(|(_, shown)| *shown)
            .map(|(cell, _)| cell)
            .collect()
    });
    columns(core::iter::once(header).chain(rows))
}

/// Why groups cannot be placed.
pub(super) fn failed_groups(eval: &EvaluationDto) -> String {
    failed_metrics(&eval.failed_groups)
}

/// The same by group.
pub(super) fn failed_metrics(groups: &BTreeMap<String, AllocMetric>) -> String {
    let mut lines = Vec::new();
    for (name, failed) in groups {
        let count = failed.coalesced_failures + 1;
        let plural = if count == 1 { "" } else { "s" };
        lines.push(format!(
            "Task Group \"{name}\" (failed to place {count} allocation{plural}):"
        ));
        for (name, _) in failed.nodes_available.iter().filter(|(_, it)| **it == 0) {
            lines.push(format!(
                "  * No nodes are available in datacenter \"{name}\""
            ));
        }
        for (what, nodes) in &failed.constraint_filtered {
            lines.push(format!(
                "  * Constraint \"{what}\": {nodes} nodes excluded by filter"
            ));
        }
        for (what, nodes) in &failed.dimension_exhausted {
            lines.push(format!(
                "  * Dimension \"{what}\" exhausted on {nodes} nodes"
            ));
        }
    }
    lines.join("\n")
}
