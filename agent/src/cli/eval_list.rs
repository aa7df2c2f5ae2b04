//! `drover eval list`: evaluations, newest first.

use serde_json::Value;

use super::args::EvalListArgs;
use super::context::{Context, Outcome};
use super::table::{short, table};
use crate::http::dto::EvaluationDto;

/// Runs the command.
///
/// # Errors
/// The filter is invalid, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: EvalListArgs) -> Outcome {
    let given = [("job", &args.job), ("status", &args.status)];
    let given = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let query: Vec<(&str, &str)> = given.chain([("reverse", "true")]).collect();
    if args.shape.is_asked() {
        let (list, next): (Value, _) = cx.page("/v1/evaluations", &query, &args.page).await?;
        cx.show(&args.shape, &list)?;
        cx.note_next(next.as_deref());
        return Ok(0);
    }
    let (evals, next): (Vec<EvaluationDto>, _) =
        cx.page("/v1/evaluations", &query, &args.page).await?;
    if evals.is_empty() {
        cx.screen.print_line("No evals found")?;
        return Ok(0);
    }
    let row = |eval: &EvaluationDto| {
        [
            short(&eval.id, args.verbose),
            eval.priority.to_string(),
            eval.triggered_by.clone(),
            eval.job_id.clone(),
            eval.namespace.clone(),
            eval.status.clone(),
            failures(eval),
        ]
    };
    let header = [
        "ID",
        "Priority",
        "Triggered By",
        "Job ID",
        "Namespace",
        "Status",
        "Placement Failures",
    ];
    let shown = table(header, evals.iter().map(row));
    cx.screen.print_line(&shown)?;
    cx.note_next(next.as_deref());
    Ok(0)
}

/// Whether an evaluation could not place something.
pub(super) fn failures(eval: &EvaluationDto) -> String {
    match eval.status.as_str() {
        "blocked" => "N/A - In Progress".to_owned(),
        _ => (!eval.failed_groups.is_empty()).to_string(),
    }
}
