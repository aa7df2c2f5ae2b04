//! `drover job plan`: what submitting a job file would do. It changes nothing.

use drover_core::time::Timestamp;
use hyper::Method;
use serde_json::{Value, json};

use super::args::{PlanArgs, Shape};
use super::client::decoded;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::job_part;
use super::{diff, jobfile, monitor};
use crate::http::dto::{AllocMetric, DesiredUpdates, Planned};
use crate::times;

/// The exit code where the file, the agent or the job is at fault: 1 is that something would start or end.
const ERROR: u8 = 255;

/// Runs the command.
///
/// # Errors
/// The file, the agent or the job is at fault.
pub(super) async fn run(cx: &mut Context, args: PlanArgs) -> Outcome {
    plan(cx, &args).await.map_err(|failure| Failure {
        code: ERROR,
        ..failure
    })
}

async fn plan(cx: &mut Context, args: &PlanArgs) -> Outcome {
    let job = jobfile::admit(&mut cx.screen, &args.file, &args.variables, args.json)?.job;
    let body = json!({ "Job": job, "Diff": args.diff, "PreserveCounts": args.preserve_counts });
    let path = job_part(&job.id, "/plan");
    let query = [("namespace", job.namespace.as_str())];
    let sent = cx
        .client
        .change::<Value>(Method::PUT, &path, &query, Some(&body));
    let answer = sent
        .await
        .map_err(|failure| failure.answered_within("Error during plan"))?;
    let planned: Planned = decoded(&answer)?;
    let mut groups = planned.annotations.desired_updates.values();
    let code = u8::from(groups.any(DesiredUpdates::starts_or_ends));
    if args.json_output || args.template.is_some() {
        let shape = Shape {
            json: args.json_output,
            template: args.template.clone(),
        };
        cx.show(&shape, &answer)?;
        return Ok(code);
    }
    if let Some(differences) = &planned.diff {
        let text = diff::job(differences, args.verbose);
        cx.screen.print_line(&format!("{text}\n"))?;
    }
    cx.screen.title("Scheduler dry-run:")?;
    let result = dry_run(&planned, (cx.clock)());
    cx.screen.print_line(&format!("{result}\n"))?;
    if !planned.warnings.is_empty() {
        cx.screen.title("Job Warnings:")?;
        cx.screen.print_line(&format!("{}\n", planned.warnings))?;
    }
    let index = planned.job_modify_index;
    cx.screen.print_line(&advice(index, args))?;
    Ok(code)
}

fn dry_run(planned: &Planned, now: Timestamp) -> String {
    let none = std::collections::BTreeMap::<String, AllocMetric>::new();
    let failed = planned.failed_groups.as_ref().unwrap_or(&none);
    let mut text = match failed.is_empty() {
        true => "- All tasks successfully allocated.".to_owned(),
        false => {
            let failed = monitor::failed_metrics(failed);
            let lines: Vec<String> = failed.lines().map(|line| format!("  {line}")).collect();
            format!(
                "- WARNING: Failed to place all allocations.\n{}",
                lines.join("\n")
            )
        }
    };
    let preempted = planned.annotations.preempted_allocs.iter().flatten();
    let preempted: Vec<String> = preempted
        .map(|alloc| format!("  * {} of job \"{}\"", alloc.name, alloc.job_id))
        .collect();
    if !preempted.is_empty() {
        text.push_str("\n- Allocations that would be preempted:\n");
        text.push_str(&preempted.join("\n"));
    }
    let next = planned.next_periodic_launch.as_deref();
    if let Some(next) = next.and_then(times::parse) {
        let (at, left) = (times::to_seconds(next), times::rough(next - now));
        text.push_str(&format!("\n- Next periodic launch: {at} ({left} from now)"));
    }
    text
}

fn advice(index: u64, args: &PlanArgs) -> String {
    let mut options = format!("-check-index {index}");
    for given in &args.variables.vars {
        let (name, value) = given.split_once('=').unwrap_or((given, ""));
        options.push_str(&format!(" -var=\"{name}={value}\""));
    }
    for file in &args.variables.var_files {
        options.push_str(&format!(" -var-file={:?}", file.display().to_string()));
    }
    if args.json {
        options.push_str(" -json");
    }
    format!(
        "Job Modify Index: {index}\n\
         To submit the job, provided that nobody changed it meanwhile:\n\n\
         drover job run {options} {}",
        args.file.display()
    )
}
