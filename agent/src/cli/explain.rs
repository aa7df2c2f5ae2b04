//! `drover explain`: what a job or an allocation is doing, since when, what it waits for and who holds that,
//! until when, what happens then, what is left of its restarts, and what happened last.

use drover_core::time::{Span, Timestamp};
use serde_json::Value;

use super::args::ExplainArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;
use super::screen::clean;
use super::table::short;
use crate::http::dto::{
    AllocExplanationDto, JobExplanationDto, RestartsLeftDto, TaskExplanationDto, WaitingDto,
};
use crate::times;

const DAY: Span = Span::secs(24 * 3600);

/// Runs the command.
///
/// # Errors
/// There is neither a job nor an allocation of this id, no such task, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: ExplainArgs) -> Outcome {
    let job = match lookup::job(cx, &args.id).await {
        Err(failure) if failure.status.is_none() && failure.message.starts_with("No job") => {
            return alloc(cx, &args, failure).await;
        }
        other => other?,
    };
    let query = [("namespace", job.namespace.as_str())];
    let path = lookup::job_path(&job, "/explain");
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &query).await?;
        return cx.show(&args.shape, &whole);
    }
    let job: JobExplanationDto = cx.client.get(&path, &query).await?;
    let mut lines = job_lines(cx, &job);
    for alloc in &job.allocations {
        lines.push(String::new());
        lines.extend(alloc_lines(cx, &args, alloc)?);
    }
    cx.screen.print_line(&lines.join("\n"))?;
    Ok(0)
}

/// The same, of an allocation; `no_job` says that the id is no job's.
async fn alloc(cx: &mut Context, args: &ExplainArgs, no_job: Failure) -> Outcome {
    let stub = match lookup::alloc(&cx.client, &args.id).await {
        Err(failure) if failure.message.starts_with("No alloc") => return Err(no_job),
        other => other?,
    };
    let path = format!("/v1/allocation/{}/explain", stub.id);
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let alloc: AllocExplanationDto = cx.client.get(&path, &[]).await?;
    let lines = alloc_lines(cx, args, &alloc)?;
    cx.screen.print_line(&lines.join("\n"))?;
    Ok(0)
}

fn job_lines(cx: &Context, job: &JobExplanationDto) -> Vec<String> {
    let submitted = cx.time(job.submit_time, false);
    let mut lines = vec![format!(
        "Job \"{}\" is {}: version {}, submitted {submitted}",
        clean(&job.id),
        job.status,
        job.version
    )];
    if !job.deployment.is_empty() {
        lines.push(format!("  deployment  {}", clean(&job.deployment)));
    }
    lines.extend(job.waiting.iter().flat_map(|one| waiting(cx, one)));
    if job.waiting.is_empty() {
        lines.push(format!("  next        {}", job.next));
    }
    lines
}

fn alloc_lines(
    cx: &Context,
    args: &ExplainArgs,
    alloc: &AllocExplanationDto,
) -> Result<Vec<String>, Failure> {
    let wanted = |task: &&TaskExplanationDto| args.task.as_ref().is_none_or(|t| *t == task.name);
    let tasks: Vec<&TaskExplanationDto> = alloc.tasks.iter().filter(wanted).collect();
    if let (true, Some(task)) = (tasks.is_empty(), &args.task) {
        let known: Vec<&str> = alloc.tasks.iter().map(|task| task.name.as_str()).collect();
        return Err(Failure::new(format!(
            "Could not find task named: {task}, found: {}",
            known.join(", ")
        )));
    }
    let mut lines = vec![format!(
        "Allocation {} {} (version {}) is {}, as of {}",
        short(&alloc.id, args.verbose),
        clean(&alloc.name),
        alloc.job_version,
        alloc.client_status,
        cx.time(alloc.since, args.verbose)
    )];
    let reasons = [
        ("reason      ", &alloc.client_description),
        ("wanted      ", &wanted_words(alloc)),
        ("placed by   ", &alloc.placed_by),
    ];
    let reasons = reasons.into_iter().filter(|(_, words)| !words.is_empty());
    lines.extend(reasons.map(|(label, words)| format!("  {label}{}", clean(words))));
    if !alloc.next_allocation.is_empty() {
        let next = short(&alloc.next_allocation, args.verbose);
        lines.push(format!("  replaced by {next}"));
    }
    lines.extend(alloc.waiting.iter().flat_map(|one| waiting(cx, one)));
    if alloc.waiting.is_empty() {
        lines.push(format!("  next        {}", alloc.next));
    }
    let obstacles = alloc.obstacles.iter();
    lines.extend(obstacles.map(|words| format!("  obstacle    {}", clean(words))));
    for task in tasks {
        lines.extend(task_lines(cx, task).into_iter().map(indented));
    }
    Ok(lines)
}

/// What is wanted of an allocation, unless it is simply to run.
fn wanted_words(alloc: &AllocExplanationDto) -> String {
    match (alloc.desired_status.as_str(), &*alloc.desired_description) {
        ("run", _) => String::new(),
        (status, "") => status.to_owned(),
        (status, why) => format!("{status}: {why}"),
    }
}

fn task_lines(cx: &Context, task: &TaskExplanationDto) -> Vec<String> {
    let failed = if task.failed { " and failed" } else { "" };
    let since = match task.since {
        0 => String::new(),
        since => format!(", since {}", cx.time(since, false)),
    };
    let mut lines = vec![format!(
        "Task \"{}\" is {}{failed}{since}",
        clean(&task.name),
        task.state
    )];
    match &task.waiting {
        Some(one) => lines.extend(waiting(cx, one)),
        None => lines.push(format!("  next        {}", task.next)),
    }
    if let Some(left) = &task.restarts {
        lines.push(format!("  restarts    {}", restarts(cx, left)));
    }
    let shown = [("last event", &task.last_event), ("because", &task.cause)];
    for (label, event) in shown {
        if let Some(event) = event {
            let event = event.fields();
            lines.push(format!(
                "  {label:<10}  {}: {} ({})",
                event.kind,
                clean(&event.display_message),
                cx.time(event.time, false)
            ));
        }
    }
    lines
}

fn waiting(cx: &Context, one: &WaitingDto) -> Vec<String> {
    let words = match one.what.strip_prefix("Waiting for ") {
        Some(words) => words,
        None => &one.what,
    };
    let until = match one.until {
        None => ", for as long as it takes".to_owned(),
        Some(at) => format!(", until {} ({})", clock(cx, at), left(cx, at)),
    };
    vec![
        format!("  waits for   {}{until}", clean(words)),
        format!("  then        {}", one.then),
    ]
}

fn restarts(cx: &Context, left: &RestartsLeftDto) -> String {
    let interval = Span(left.interval);
    let then = match left.mode.as_str() {
        "delay" => "waits for the next interval",
        _ => "fails",
    };
    match (left.attempts, left.renewed_at) {
        (0, _) => "none allowed: when it fails, it is not started again".to_owned(),
        (attempts, None) => format!(
            "{attempts} of {attempts} left in {interval}; after the last one the task {then}"
        ),
        (attempts, Some(at)) => format!(
            "{} of {attempts} left, all again in {}; after the last one the task {then}",
            left.left,
            self::left(cx, at)
        ),
    }
}

/// How long it takes until then.
fn left(cx: &Context, at: i64) -> String {
    times::rough(Timestamp(at) - (cx.clock)())
}

/// The time of day, with its date where it is not soon.
fn clock(cx: &Context, at: i64) -> String {
    let at = Timestamp(at);
    match at - (cx.clock)() < DAY {
        true => format!("{} UTC", times::clock(at)),
        false => times::to_seconds(at),
    }
}

fn indented(line: String) -> String {
    format!("  {line}")
}
