//! `drover job scale` and `drover job scaling-events`.

use drover_core::time::Timestamp;
use hyper::Method;
use serde_json::{Value, json};

use super::args::{ScaleArgs, ScalingEventsArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::monitor;
use super::table::{short, table};
use crate::http::dto::{Registered, ScaleStatus, ScalingEventDto};
use crate::times;

/// Runs `job scale`.
///
/// # Errors
/// The job or its group cannot be found, or the agent refuses.
pub(super) async fn run(cx: &mut Context, args: ScaleArgs) -> Outcome {
    let (group, count) = match args.what.as_slice() {
        [count] => (None, count),
        [group, count] => (Some(group.clone()), count),
        _ => return Err(Failure::new("expected JOB [GROUP] COUNT")),
    };
    let number = count.parse::<i64>();
    let count = number.map_err(|_| Failure::new(format!("the count {count} is no number")))?;
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/scale");
    let group = match group {
        Some(group) => group,
        None => {
            let status: ScaleStatus = cx.client.get(&path, &namespace).await?;
            let mut names: Vec<String> = status.task_groups.into_keys().collect();
            if names.len() > 1 {
                return Err(Failure::new(format!(
                    "Job \"{}\" has several groups; name one: {}",
                    job.id,
                    names.join(", ")
                )));
            }
            names.pop().unwrap_or_default()
        }
    };
    let body = json!({
        "Count": count,
        "Target": { "Job": job.id, "Group": group },
        "Message": "submitted using the Drover command line",
        "Error": false,
        "Meta": Value::Null,
        "JobModifyIndex": args.check_index.unwrap_or(0),
    });
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, &path, &namespace, Some(&body));
    let scaled = sent
        .await
        .map_err(|failure| failure.answered_within("Error submitting scaling request"))?;
    if args.detach || scaled.eval_id.is_empty() {
        cx.screen.print_line("Job scale successful")?;
        if !scaled.eval_id.is_empty() {
            cx.screen
                .print_line(&format!("Evaluation ID: {}", scaled.eval_id))?;
        }
        return Ok(0);
    }
    monitor::eval(cx, &scaled.eval_id, args.verbose).await
}

/// Runs `job scaling-events`.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn events(cx: &mut Context, args: ScalingEventsArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/scale");
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &namespace).await?;
        return cx.show(&args.shape, &whole);
    }
    let status: ScaleStatus = cx.client.get(&path, &namespace).await?;
    let mut events: Vec<(String, ScalingEventDto)> = Vec::new();
    for (name, group) in status.task_groups {
        let of_group = group.events.unwrap_or_default().into_iter();
        events.extend(of_group.map(|event| (name.clone(), event)));
    }
    if events.is_empty() {
        cx.screen.print_line("No events found")?;
        return Ok(0);
    }
    events.sort_by_key(|(_, event)| core::cmp::Reverse(event.create_index));
    let rows = events.iter().map(|(group, event)| {
        let count = event.count.map(|count| count.to_string());
        let error = if event.error { "true" } else { "false" };
        let eval = event.eval_id.as_deref().unwrap_or_default();
        [
            group.clone(),
            count.unwrap_or_else(|| "-".to_owned()),
            event.previous_count.to_string(),
            error.to_owned(),
            event.message.clone(),
            short(eval, false),
            times::to_seconds(Timestamp(event.time)),
        ]
    });
    let shown = match args.verbose {
        true => table(
            [
                "Task Group",
                "Count",
                "PrevCount",
                "Error",
                "Message",
                "Eval ID",
                "Date",
            ],
            rows,
        ),
        false => table(
            ["Task Group", "Count", "PrevCount", "Date"],
            rows.map(|[group, count, before, _, _, _, date]| [group, count, before, date]),
        ),
    };
    cx.screen.print_line(&shown)?;
    Ok(0)
}
