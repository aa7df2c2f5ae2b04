//! `drover eval status` and `drover deployment status`.

use serde_json::Value;

use super::args::{DeploymentStatusArgs, EvalStatusArgs, Shape};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{self, block, short, table};
use super::{job_status, lookup, monitor};
use crate::http::dto::{AllocStub, DeploymentDto, DesiredUpdates, EvalStub, EvaluationDto};
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
    let related = [("related", "true")];
    let path = format!("/v1/evaluation/{}", eval.id);
    let eval: EvaluationDto = cx.client.get(&path, &related).await?;
    let placed: Vec<AllocStub> = cx.client.get(&format!("{path}/allocations"), &[]).await?;
    let shown = describe(cx, &eval, args.verbose);
    cx.screen.print_line(&shown)?;
    tables(cx, &eval, &placed, args.verbose)?;
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

/// The evaluations beside it, what its plan did, and what it placed.
fn tables(
    cx: &mut Context,
    eval: &EvaluationDto,
    placed: &[AllocStub],
    verbose: bool,
) -> Result<(), Failure> {
    let related = eval.related_evals.as_deref().unwrap_or_default();
    if !related.is_empty() {
        cx.screen.title("\nRelated Evaluations")?;
        cx.screen.print_line(&related_evals(related, verbose))?;
    }
    let groups = eval.plan_annotations.iter();
    let groups: Vec<_> = groups.flat_map(|it| &it.desired_updates).collect();
    if !groups.is_empty() {
        cx.screen.title("\nPlan Annotations")?;
        cx.screen.print_line(&annotations(&groups))?;
    }
    if !placed.is_empty() {
        cx.screen.title("\nPlaced Allocations")?;
        let shown = job_status::allocations(cx, placed, verbose);
        cx.screen.print_line(&shown)?;
    }
    Ok(())
}

fn related_evals(related: &[EvalStub], verbose: bool) -> String {
    let row = |eval: &EvalStub| {
        [
            short(&eval.id, verbose),
            eval.priority.to_string(),
            eval.triggered_by.clone(),
            eval.status.clone(),
            eval.status_description.clone(),
        ]
    };
    let header = ["ID", "Priority", "Triggered By", "Status", "Description"];
    table(header, related.iter().map(row))
}

/// What a plan did, by group. What is rare has a column only where there is any.
fn annotations(groups: &[(&String, &DesiredUpdates)]) -> String {
    type Column = (&'static str, fn(&DesiredUpdates) -> u32);
    let always: [Column; 5] = [
        ("Ignore", |it| it.ignore),
        ("Place", |it| it.place),
        ("Stop", |it| it.stop),
        ("InPlace", |it| it.in_place_update),
        ("Destructive", |it| it.destructive_update),
    ];
    let rare: [Column; 4] = [
        ("Canary", |it| it.canary),
        ("Preemptions", |it| it.preemptions),
        ("Reschedule Now", |it| it.reschedule_now),
        ("Reschedule Later", |it| it.reschedule_later),
    ];
    let is_used = |(_, of): &Column| groups.iter().any(|(_, updates)| of(updates) > 0);
    let columns: Vec<Column> = always
        .into_iter()
        .chain(rare.into_iter().filter(is_used))
        .collect();
    let mut header = vec!["Task Group".to_owned()];
    header.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    let rows = groups.iter().map(|(group, updates)| {
        let mut row = vec![(*group).clone()];
        row.extend(columns.iter().map(|(_, of)| of(updates).to_string()));
        row
    });
    table::columns(core::iter::once(header).chain(rows))
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
