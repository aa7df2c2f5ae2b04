//! `drover job status`: all jobs, or one of them with its roll-out and allocations.

use std::collections::BTreeMap;

use drover_core::model::dispatch::{ParameterizedJob, children_of};
use drover_core::model::periodic::launches_of;
use serde_json::Value;

use super::args::JobStatusArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::table::{block, columns, short, table};
use super::{eval_list, eval_status, monitor};
use crate::http::dto::{
    AllocStub, DeploymentDto, EvaluationDto, JobStub, JobSummary, PeriodicLaunches,
};
use crate::json::typed;
use crate::times;

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: JobStatusArgs) -> Outcome {
    match &args.job {
        None => list(cx, &args).await,
        Some(id) => one(cx, &args, id).await,
    }
}

/// `drover status`: what bears the id is a job, or else an allocation.
///
/// # Errors
/// Nothing bears it, or the agent does not answer.
pub(super) async fn anything(cx: &mut Context, args: JobStatusArgs) -> Outcome {
    let Some(id) = args.job.clone() else {
        return run(cx, args).await;
    };
    let not_found = match run(cx, args.clone()).await {
        Err(failure) if failure.status.is_none() && failure.message.starts_with("No job") => {
            failure
        }
        other => return other,
    };
    let alloc = super::args::AllocStatusArgs {
        alloc: Some(id),
        shape: args.shape,
        short: args.short,
        stats: false,
        verbose: args.verbose,
    };
    match super::alloc_status::run(cx, alloc).await {
        Err(failure) if failure.message.starts_with("No alloc") => Err(not_found),
        other => other,
    }
}

async fn list(cx: &mut Context, args: &JobStatusArgs) -> Outcome {
    if args.shape.is_asked() {
        let jobs: Value = cx.client.get("/v1/jobs", &[]).await?;
        return cx.show(&args.shape, &jobs);
    }
    let jobs: Vec<JobStub> = cx.client.get("/v1/jobs", &[]).await?;
    print_jobs(cx, jobs)
}

/// Shows jobs as a list.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn print_jobs(cx: &mut Context, mut jobs: Vec<JobStub>) -> Outcome {
    if jobs.is_empty() {
        cx.screen.print_line("No running jobs")?;
        return Ok(0);
    }
    jobs.sort_by(|a, b| a.id.cmp(&b.id));
    let row = |job: &JobStub| {
        let submitted = times::to_seconds(drover_core::time::Timestamp(job.submit_time));
        [
            job.id.clone(),
            kind(job),
            job.priority.to_string(),
            status(job),
            submitted,
        ]
    };
    let header = ["ID", "Type", "Priority", "Status", "Submit Date"];
    cx.screen.print_line(&table(header, jobs.iter().map(row)))?;
    Ok(0)
}

fn kind(job: &JobStub) -> String {
    let more = match (job.periodic, job.parameterized_job) {
        (true, _) => "/periodic",
        (false, true) => "/parameterized",
        (false, false) => "",
    };
    format!("{}{more}", job.job_type)
}

fn status(job: &JobStub) -> String {
    if job.stop {
        format!("{} (stopped)", job.status)
    } else {
        job.status.clone()
    }
}

async fn one(cx: &mut Context, args: &JobStatusArgs, id: &str) -> Outcome {
    let job = lookup::job(cx, id).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
        return cx.show(&args.shape, &whole);
    }
    let periodic = job.periodic && !job.parameterized_job;
    let launches = match periodic {
        true => Some(launches(cx, &job).await?),
        false => None,
    };
    cx.screen.print_line(&head(&job, launches.as_ref()))?;
    if args.short {
        return Ok(0);
    }
    if job.parameterized_job {
        return parameterized(cx, &job).await;
    }
    if periodic {
        return previously_launched(cx, &job).await;
    }
    cx.screen.title("\nSummary")?;
    cx.screen.print_line(&summary(&job.job_summary))?;
    let path = job_path(&job, "/allocations");
    let all = if args.all_allocs { "true" } else { "false" };
    let query = [namespace[0], ("all", all)];
    let allocs: Vec<AllocStub> = cx.client.get(&path, &query).await?;
    let evals = evals(cx, &job, &allocs, args).await?;
    evaluations(cx, &job, &evals, args)?;
    let path = job_path(&job, "/deployment");
    let deployment: Option<DeploymentDto> = cx.client.get(&path, &namespace).await?;
    if let Some(deployment) = deployment {
        cx.screen.title("\nLatest Deployment")?;
        let lines = block([
            ("ID", short(&deployment.id, args.verbose)),
            ("Status", deployment.status.clone()),
            ("Description", deployment.status_description.clone()),
        ]);
        cx.screen.print_line(&format!(
            "{lines}\n\nDeployed\n{}",
            monitor::groups(&deployment)
        ))?;
    }
    replacements(cx, &allocs, &evals, args.verbose)?;
    cx.screen.title("\nAllocations")?;
    let shown = allocations(cx, &allocs, args.verbose);
    cx.screen.print_line(&shown)?;
    Ok(0)
}

/// What a parameterized job wants of a dispatch, and what was made of it.
async fn parameterized(cx: &mut Context, job: &JobStub) -> Outcome {
    let namespace = [("namespace", job.namespace.as_str())];
    let whole: Value = cx.client.get(&job_path(job, ""), &namespace).await?;
    let rules = whole.get("ParameterizedJob").cloned().unwrap_or_default();
    let rules: ParameterizedJob = typed(&rules).unwrap_or_default();
    cx.screen.title("\nParameterized Job")?;
    cx.screen.print_line(&block([
        ("Payload", rules.payload.as_str().to_owned()),
        ("Required Metadata", rules.meta_required.join(", ")),
        ("Optional Metadata", rules.meta_optional.join(", ")),
    ]))?;
    let counts = &job.job_summary.children;
    let counts = [counts.pending, counts.running, counts.dead].map(|count| count.to_string());
    cx.screen.title("\nParameterized Job Summary")?;
    cx.screen
        .print_line(&table(["Pending", "Running", "Dead"], [counts]))?;
    let none = "No instances of parameterized job have been dispatched";
    children(cx, job, &children_of(&job.id), "\nDispatched Jobs", none).await
}

/// When a periodic job is launched.
async fn launches(cx: &mut Context, job: &JobStub) -> Result<PeriodicLaunches, Failure> {
    let namespace = [("namespace", job.namespace.as_str())];
    cx.client.get(&job_path(job, "/periodic"), &namespace).await
}

/// What the clock made of a periodic job.
async fn previously_launched(cx: &mut Context, job: &JobStub) -> Outcome {
    let counts = &job.job_summary.children;
    let counts = [counts.pending, counts.running, counts.dead].map(|count| count.to_string());
    cx.screen.title("\nChildren Job Summary")?;
    cx.screen
        .print_line(&table(["Pending", "Running", "Dead"], [counts]))?;
    let none = "No instances of periodic job found";
    let title = "\nPreviously Launched Jobs";
    children(cx, job, &launches_of(&job.id), title, none).await
}

/// The jobs that were made of one, whose ids begin so.
async fn children(
    cx: &mut Context,
    job: &JobStub,
    prefix: &str,
    title: &str,
    none: &str,
) -> Outcome {
    let query = [("namespace", job.namespace.as_str()), ("prefix", prefix)];
    let mut children: Vec<JobStub> = cx.client.get("/v1/jobs", &query).await?;
    children.retain(|child| child.parent_id == job.id);
    children.sort_by_key(|child| child.create_index);
    cx.screen.title(title)?;
    if children.is_empty() {
        cx.screen.print_line(none)?;
        return Ok(0);
    }
    let row = |child: &JobStub| [child.id.clone(), status(child)];
    cx.screen
        .print_line(&table(["ID", "Status"], children.iter().map(row)))?;
    Ok(0)
}

/// What stands above everything else.
fn head(job: &JobStub, launches: Option<&PeriodicLaunches>) -> String {
    let mut lines = vec![
        ("ID", job.id.clone()),
        ("Name", job.name.clone()),
        (
            "Submit Date",
            times::to_seconds(drover_core::time::Timestamp(job.submit_time)),
        ),
        ("Type", job.job_type.clone()),
        ("Priority", job.priority.to_string()),
        ("Datacenters", job.datacenters.join(",")),
        ("Namespace", job.namespace.clone()),
        ("Node Pool", job.node_pool.clone()),
        ("Status", status(job)),
        ("Periodic", job.periodic.to_string()),
        ("Parameterized", job.parameterized_job.to_string()),
    ];
    if let Some(launches) = launches {
        lines.extend(launch_lines(job, launches));
    }
    block(lines)
}

/// What stands above of the launches of a periodic job.
fn launch_lines(job: &JobStub, launches: &PeriodicLaunches) -> Vec<(&'static str, String)> {
    let next = match (&launches.next_launch, &launches.awaits_time_zone) {
        (Some(next), _) => {
            let left = times::parse(next).map(|at| times::rough(at - times::now()));
            format!("{next} ({} from now)", left.unwrap_or_default())
        }
        (None, Some(why)) => format!("none: its time zone is not known: {why}"),
        (None, None) if job.stop => "none (job stopped)".to_owned(),
        (None, None) => "none".to_owned(),
    };
    let mut lines = vec![("Next Periodic Launch", next)];
    if let (Some(time), Some(outcome)) = (&launches.last_time, &launches.last_outcome) {
        lines.push(("Last Periodic Time", format!("{time} ({outcome})")));
    }
    if let (Some(id), Some(result)) = (&launches.last_launch_id, &launches.last_result) {
        lines.push(("Last Launch", format!("{result} (job \"{id}\")")));
    }
    lines
}

fn summary(summary: &JobSummary) -> String {
    let header = [
        "Task Group",
        "Queued",
        "Starting",
        "Running",
        "Failed",
        "Complete",
        "Lost",
        "Unknown",
    ];
    let rows = summary.summary.iter().map(|(name, group)| {
        let [a, b, c, d, e, f, g] = [
            group.queued,
            group.starting,
            group.running,
            group.failed,
            group.complete,
            group.lost,
            group.unknown,
        ]
        .map(|count| count.to_string());
        [name.clone(), a, b, c, d, e, f, g]
    });
    table(header, rows)
}

/// The job's evaluations, if something of them is shown.
async fn evals(
    cx: &mut Context,
    job: &JobStub,
    allocs: &[AllocStub],
    args: &JobStatusArgs,
) -> Result<Vec<EvaluationDto>, Failure> {
    let waits = |alloc: &AllocStub| !alloc.followup_eval_id.is_empty();
    if !is_queued(job) && !shows_evals(args) && !allocs.iter().any(waits) {
        return Ok(Vec::new());
    }
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/evaluations");
    cx.client.get(&path, &namespace).await
}

fn shows_evals(args: &JobStatusArgs) -> bool {
    args.evals || args.verbose
}

/// Whether something of the job waits to be placed.
fn is_queued(job: &JobStub) -> bool {
    let mut groups = job.job_summary.summary.values();
    groups.any(|group| group.queued > 0)
}

/// The job's evaluations, if they are asked for, and what the latest one could not place.
fn evaluations(
    cx: &mut Context,
    job: &JobStub,
    evals: &[EvaluationDto],
    args: &JobStatusArgs,
) -> Result<(), Failure> {
    if shows_evals(args) {
        cx.screen.title("\nEvaluations")?;
        cx.screen.print_line(&eval_table(evals, args.verbose))?;
    }
    let waiting = is_queued(job);
    if let Some(eval) = evals
        .iter()
        .filter(|_| waiting)
        .find(|eval| !eval.failed_groups.is_empty())
    {
        cx.screen.title("\nPlacement Failure")?;
        cx.screen.print_line(&monitor::failed_groups(eval))?;
    }
    Ok(())
}

/// When the first failed allocation of each group is replaced that waits for it.
fn replacements(
    cx: &mut Context,
    allocs: &[AllocStub],
    evals: &[EvaluationDto],
    verbose: bool,
) -> Result<(), Failure> {
    let evals: BTreeMap<&str, &EvaluationDto> =
        evals.iter().map(|eval| (eval.id.as_str(), eval)).collect();
    // Of very many copies the first one says enough.
    let mut first: BTreeMap<&str, &EvaluationDto> = BTreeMap::new();
    for alloc in allocs {
        let Some(eval) = evals.get(alloc.followup_eval_id.as_str()) else {
            continue;
        };
        let known = first.entry(&alloc.task_group).or_insert(eval);
        if times::parse(&eval.wait_until) < times::parse(&known.wait_until) {
            *known = eval;
        }
    }
    let row = |(group, eval): (&&str, &&EvaluationDto)| {
        let time = eval_status::wait(eval)?;
        Some([(*group).to_owned(), short(&eval.id, verbose), time])
    };
    let rows: Vec<_> = first.iter().filter_map(row).collect();
    if !rows.is_empty() {
        cx.screen.title("\nFuture Rescheduling Attempts")?;
        let header = ["Task Group", "Eval ID", "Eval Time"];
        cx.screen.print_line(&table(header, rows))?;
    }
    Ok(())
}

fn eval_table(evals: &[EvaluationDto], verbose: bool) -> String {
    let row = |eval: &EvaluationDto| {
        [
            short(&eval.id, verbose),
            eval.priority.to_string(),
            eval.triggered_by.clone(),
            eval.status.clone(),
            eval_list::failures(eval),
        ]
    };
    let header = [
        "ID",
        "Priority",
        "Triggered By",
        "Status",
        "Placement Failures",
    ];
    table(header, evals.iter().map(row))
}

/// The table of allocations.
pub(super) fn allocations(cx: &Context, allocs: &[AllocStub], verbose: bool) -> String {
    if allocs.is_empty() {
        return "No allocations placed".to_owned();
    }
    // On a node of a cluster somebody has to be told whom to ask about it.
    let shows_whose = allocs.iter().any(|alloc| alloc.local.is_some());
    let mut header = vec!["ID", "Node ID", "Task Group", "Version"];
    header.extend(shows_whose.then_some("Placed By"));
    header.extend(["Desired", "Status", "Created", "Modified"]);
    let row = |alloc: &AllocStub| {
        let mut row = vec![
            short(&alloc.id, verbose),
            short(&alloc.node_id, verbose),
            alloc.task_group.clone(),
            alloc.job_version.to_string(),
        ];
        row.extend(shows_whose.then(|| placed_by(alloc).to_owned()));
        row.extend([
            alloc.desired_status.clone(),
            alloc.client_status.clone(),
            cx.time(alloc.create_time, verbose),
            cx.time(alloc.modify_time, verbose),
        ]);
        row
    };
    let header = header.into_iter().map(str::to_owned).collect();
    columns(core::iter::once(header).chain(allocs.iter().map(row)))
}

/// Who placed an allocation, on a node of a cluster, in a word.
fn placed_by(alloc: &AllocStub) -> &'static str {
    match alloc.local {
        Some(false) => "servers",
        Some(true) | None => "node",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, run};
    use crate::testing::{Rig, job};

    /// What the status of a job says that was launched once, and whose task ends so.
    async fn status_after_launch(exit: Option<i64>) -> String {
        let rig = Rig::start().await;
        let mut cron = job("cron", "batch", exit);
        // Of the times of the tests' world only this one is to come.
        cron["Periodic"] = serde_json::json!({ "Spec": "0 50 4 21 11 * 2026", "Enabled": true });
        let cron = file(&cron);
        run(&rig, &["job", "run", cron.path().to_str().unwrap()]).await;
        let (code, out, err) = run(&rig, &["job", "status", "cron"]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let last = "Last Periodic Time   = 2026-11-21T04:50:00Z (launched)\n";
        assert!(out.contains(last), "{out}");
        out
    }

    #[tokio::test]
    async fn periodic_job_says_how_its_last_launch_ended() {
        let wanted = [
            (Some(0), "succeeded"),
            (Some(1), "failed"),
            (None, "running"),
        ];
        for (exit, result) in wanted {
            let out = status_after_launch(exit).await;
            let line = format!("Last Launch          = {result} (job \"cron/periodic-");
            assert!(out.contains(&line), "{line}: {out}");
        }
    }
}
