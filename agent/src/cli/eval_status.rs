//! `drover eval status` and `drover deployment status`.

use serde_json::Value;

use super::args::{DeploymentStatusArgs, EvalStatusArgs, Shape};
use super::context::{Context, Outcome};
use super::table::{block, short, table};
use super::{lookup, monitor};
use crate::http::dto::{DeploymentDto, EvaluationDto};
use crate::times;

/// Runs `eval status`.
///
/// # Errors
/// The evaluation cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: EvalStatusArgs) -> Outcome {
    let eval = lookup::eval(&cx.client, &args.eval).await?;
    if args.monitor {
        return monitor::eval(cx, &eval.id, args.verbose).await;
    }
    if args.shape.is_asked() {
        let whole: Value = cx
            .client
            .get(&format!("/v1/evaluation/{}", eval.id), &[])
            .await?;
        return cx.show(&args.shape, &whole);
    }
    let shown = describe(cx, &eval, args.verbose);
    cx.screen.print_line(&shown)?;
    if !eval.failed_groups.is_empty() {
        cx.screen.title("\nFailed Placements")?;
        cx.screen.print_line(&monitor::failed_groups(&eval))?;
    }
    Ok(0)
}

fn describe(cx: &Context, eval: &EvaluationDto, verbose: bool) -> String {
    let failures = !eval.failed_groups.is_empty();
    let description = match eval.status_description.as_str() {
        "" => &eval.status,
        words => words,
    };
    let mut lines = vec![
        ("ID", short(&eval.id, verbose)),
        ("Create Time", cx.time(eval.create_time, verbose)),
        ("Modify Time", cx.time(eval.modify_time, verbose)),
        ("Status", eval.status.clone()),
        ("Status Description", description.to_owned()),
        ("Type", eval.job_type.clone()),
        ("TriggeredBy", eval.triggered_by.clone()),
        ("Job ID", eval.job_id.clone()),
        ("Namespace", eval.namespace.clone()),
        ("Priority", eval.priority.to_string()),
        ("Placement Failures", failures.to_string()),
        ("Previous Eval", short(&eval.previous_eval, verbose)),
        ("Next Eval", short(&eval.next_eval, verbose)),
        ("Blocked Eval", short(&eval.blocked_eval, verbose)),
    ];
    lines.extend(wait(eval).map(|until| ("Wait Until", until)));
    block(lines)
}

/// Until when it waits for the replacement of a failed allocation, if it does.
pub(super) fn wait(eval: &EvaluationDto) -> Option<String> {
    let until = times::parse(&eval.wait_until).filter(|_| eval.status == "pending")?;
    Some(format!("{} from now", times::rough(until - times::now())))
}

/// Runs `deployment status`.
///
/// # Errors
/// The roll-out cannot be found, or the agent does not answer.
pub(super) async fn deployment(cx: &mut Context, args: DeploymentStatusArgs) -> Outcome {
    let Some(prefix) = &args.deployment else {
        return deployments(cx, None, &args.shape, args.verbose).await;
    };
    let deployment = lookup::deployment(&cx.client, prefix).await?;
    if args.monitor {
        // As with Nomad, what became of it makes no exit code: it is what was asked for.
        monitor::deployment(cx, &deployment.id, args.verbose).await?;
        return Ok(0);
    }
    if args.shape.is_asked() {
        let path = format!("/v1/deployment/{}", deployment.id);
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    cx.screen
        .print_line(&monitor::describe(&deployment, args.verbose))?;
    Ok(0)
}

/// All roll-outs, the newest first.
///
/// # Errors
/// The filter is invalid, or the agent does not answer.
pub(super) async fn deployments(
    cx: &mut Context,
    filter: Option<&str>,
    shape: &Shape,
    verbose: bool,
) -> Outcome {
    let mut query = vec![("reverse", "true")];
    query.extend(filter.map(|filter| ("filter", filter)));
    if shape.is_asked() {
        let list: Value = cx.client.get("/v1/deployments", &query).await?;
        return cx.show(shape, &list);
    }
    let list: Vec<DeploymentDto> = cx.client.get("/v1/deployments", &query).await?;
    let shown = match list.is_empty() {
        true => "No deployments found".to_owned(),
        false => deployment_table(&list, verbose),
    };
    cx.screen.print_line(&shown)?;
    Ok(0)
}

/// The table of roll-outs.
pub(super) fn deployment_table(list: &[DeploymentDto], verbose: bool) -> String {
    let row = |deployment: &DeploymentDto| {
        [
            short(&deployment.id, verbose),
            deployment.job_id.clone(),
            deployment.job_version.to_string(),
            deployment.status.clone(),
            deployment.status_description.clone(),
        ]
    };
    let header = ["ID", "Job ID", "Job Version", "Status", "Description"];
    table(header, list.iter().map(row))
}
