//! `drover job restart`: restarts the tasks of a job's allocations, or replaces the allocations, batch by batch.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use drover_core::text::parse_duration;
use hyper::Method;
use serde_json::{Value, json};

use super::args::{BatchWait, JobRestartArgs, OnError};
use super::client::Answer;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::table::short;
use super::{confirm, monitor};
use crate::http::dto::{Alloc, AllocStub, EvaluationDto, JobStub, Stopped};

/// Runs the command.
///
/// # Errors
/// The job, a group or a task cannot be found, or a batch fails.
pub(super) async fn run(cx: &mut Context, args: JobRestartArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/allocations");
    let allocs: Vec<AllocStub> = cx.client.get(&path, &namespace).await?;
    check(&args, &job, &allocs)?;
    let wanted = |alloc: &&AllocStub| {
        let group = args.group.is_empty() || args.group.contains(&alloc.task_group);
        let mut tasks = args.task.iter();
        let has_task = args.task.is_empty() || tasks.any(|it| alloc.task_states.contains_key(it));
        group && has_task && alloc.client_status == "running" && alloc.desired_status == "run"
    };
    let allocs: Vec<&AllocStub> = allocs.iter().filter(wanted).collect();
    let count = allocs.len();
    if count == 0 {
        cx.screen.print_line("No allocations to restart")?;
        return Ok(0);
    }
    let size = batch_size(&args.batch_size, count)?;
    let what = if args.reschedule {
        "Rescheduling"
    } else {
        "Restarting"
    };
    let title = format!("==> {}: {what} {}", cx.stamp(), allocations(count));
    cx.screen.title(&title)?;
    let mut pause = args.batch_wait;
    let mut failures: usize = 0;
    let batches = count.div_ceil(size);
    for (number, batch) in allocs.chunks(size).enumerate() {
        if number > 0 {
            pause = wait_for_next(cx, pause, number + 1, batches).await?;
        }
        if batches > 1 {
            let (number, size) = (number + 1, allocations(batch.len()));
            let title = format!("==> {}: Batch {number} of {batches}: {size}", cx.stamp());
            cx.screen.title(&title)?;
        }
        if let Err(failure) = restart_batch(cx, &args, batch).await {
            failures += 1;
            let is_last = number + 1 == batches;
            go_on_after(cx, &args, failure, is_last).await?;
        }
    }
    let stamp = cx.stamp();
    if failures > 0 {
        cx.screen
            .title(&format!("==> {stamp}: Job restart finished with errors"))?;
        return Ok(1);
    }
    cx.screen
        .title(&format!("==> {stamp}: Job restart finished"))?;
    cx.screen.print_line("\nJob restarted successfully!")?;
    Ok(0)
}

fn allocations(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} allocation{plural}")
}

/// Fails for what cannot be meant.
fn check(args: &JobRestartArgs, job: &JobStub, allocs: &[AllocStub]) -> Result<(), Failure> {
    if args.reschedule && job.job_type == "sysbatch" {
        let words = "allocations of jobs of type sysbatch are not replaced: leave -reschedule out";
        return Err(Failure::new(words));
    }
    let groups = &job.job_summary.summary;
    if let Some(group) = args.group.iter().find(|name| !groups.contains_key(*name)) {
        let known: Vec<&str> = groups.keys().map(String::as_str).collect();
        let (id, known) = (&job.id, known.join(", "));
        let words = format!("Job \"{id}\" has no group \"{group}\"; it has: {known}");
        return Err(Failure::new(words));
    }
    let has = |task: &&String| allocs.iter().any(|one| one.task_states.contains_key(*task));
    if let Some(task) = args.task.iter().find(|task| !has(task)) {
        let words = format!("No allocation of job \"{}\" has a task \"{task}\"", job.id);
        return Err(Failure::new(words));
    }
    Ok(())
}

/// A number, or a share of all, which is rounded up.
fn batch_size(text: &str, of: usize) -> Result<usize, Failure> {
    let unusable = || {
        Failure::new(format!(
            "-batch-size={text}: expected a number above 0, or a share such as 25%"
        ))
    };
    let (digits, is_share) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let number: usize = digits.parse().map_err(|_| unusable())?;
    match (is_share, number) {
        (_, 0) | (true, 101..) => Err(unusable()),
        (true, share) => Ok((of * share).div_ceil(100).max(1)),
        (false, number) => Ok(number),
    }
}

/// Waits for the time of the next batch, or for somebody who says so. How long to wait from then on.
async fn wait_for_next(
    cx: &mut Context,
    pause: BatchWait,
    next: usize,
    of: usize,
) -> Result<BatchWait, Failure> {
    let pause = match pause {
        BatchWait::For(pause) => pause,
        BatchWait::Ask => {
            let question = format!(
                "Go on with batch {next} of {of}? [y/N, or a duration to wait between all that follow]"
            );
            let answer = confirm::line(cx, &question).await?;
            match answer.as_str() {
                "y" | "Y" | "yes" => return Ok(BatchWait::Ask),
                other => match parse_duration(other).map(|span| u64::try_from(span.0)) {
                    Ok(Ok(nanos)) => Duration::from_nanos(nanos),
                    _ => return Err(Failure::new("Job restart canceled")),
                },
            }
        }
    };
    if !pause.is_zero() {
        let line = format!("==> {}: Waiting {pause:?} for the next batch", cx.stamp());
        cx.screen.title(&line)?;
        tokio::time::sleep(pause).await;
    }
    Ok(BatchWait::For(pause))
}

/// Whether the batches that follow are begun though one failed: as the options say, or whoever is asked.
///
/// # Errors
/// They are not.
async fn go_on_after(
    cx: &mut Context,
    args: &JobRestartArgs,
    failure: Failure,
    is_last: bool,
) -> Result<(), Failure> {
    let asks = match args.on_error {
        Some(OnError::Fail) => return Err(failure),
        Some(OnError::Ask) => true,
        None if args.yes => false,
        None => std::io::stdin().is_terminal(),
    };
    if !asks && !args.yes {
        return Err(failure);
    }
    cx.screen.complain(&failure.message);
    if asks && !is_last && !confirm::ask(cx, "Go on with the next batch? [y/N]").await? {
        return Err(Failure::new("Job restart canceled"));
    }
    Ok(())
}

/// Restarts or replaces the allocations of a batch, and waits until all of them run again.
async fn restart_batch(
    cx: &mut Context,
    args: &JobRestartArgs,
    batch: &[&AllocStub],
) -> Result<(), Failure> {
    let mut begun = Vec::new();
    for alloc in batch {
        begun.push(match args.reschedule {
            true => stop(cx, args, alloc).await?,
            false => restart(cx, args, alloc).await?,
        });
    }
    for one in begun {
        match one {
            Begun::Restart { alloc, started } => await_tasks(cx, args, &alloc, &started).await?,
            Begun::Stop { alloc, eval } => await_replacement(cx, args, &alloc, &eval).await?,
        }
    }
    Ok(())
}

/// What was begun with an allocation.
enum Begun {
    /// Its tasks are restarted; when those that ran had been started.
    Restart {
        alloc: String,
        started: BTreeMap<String, Option<String>>,
    },
    /// It is stopped, and this evaluation replaces it.
    Stop { alloc: String, eval: String },
}

async fn restart(
    cx: &mut Context,
    args: &JobRestartArgs,
    alloc: &AllocStub,
) -> Result<Begun, Failure> {
    let (id, group) = (short(&alloc.id, args.verbose), &alloc.task_group);
    let tasks = match (args.all_tasks, args.task.as_slice()) {
        (true, _) => "all tasks".to_owned(),
        (false, []) => "running tasks".to_owned(),
        (false, tasks) => format!("task {}", tasks.join(", ")),
    };
    cx.screen.print_line(&format!(
        "    {}: Restarting {tasks} in allocation \"{id}\" for group \"{group}\"",
        cx.stamp()
    ))?;
    let of_alloc = args
        .task
        .iter()
        .filter(|it| alloc.task_states.contains_key(*it));
    let mut names: Vec<&str> = of_alloc.map(String::as_str).collect();
    let runs = alloc.task_states.iter().filter(|(name, task)| {
        let is_meant = args.task.is_empty() || args.task.contains(name);
        is_meant && task.state == "running"
    });
    let started = runs.map(|(name, task)| (name.clone(), task.started_at.clone()));
    let started = started.collect();
    if names.is_empty() {
        names.push("");
    }
    let path = format!("/v1/client/allocation/{}/restart", alloc.id);
    for name in names {
        let body = json!({ "TaskName": name, "AllTasks": args.all_tasks });
        let sent = cx
            .client
            .change::<Value>(Method::PUT, &path, &[], Some(&body));
        sent.await
            .map_err(|failure| failure.within(&format!("Error restarting allocation \"{id}\"")))?;
    }
    let alloc = alloc.id.clone();
    Ok(Begun::Restart { alloc, started })
}

async fn stop(
    cx: &mut Context,
    args: &JobRestartArgs,
    alloc: &AllocStub,
) -> Result<Begun, Failure> {
    let (id, group) = (short(&alloc.id, args.verbose), &alloc.task_group);
    cx.screen.print_line(&format!(
        "    {}: Rescheduling allocation \"{id}\" for group \"{group}\"",
        cx.stamp()
    ))?;
    let path = format!("/v1/allocation/{}/stop", alloc.id);
    let query = args
        .no_shutdown_delay
        .then_some(("no_shutdown_delay", "true"));
    let sent = cx
        .client
        .change::<Stopped>(Method::PUT, &path, query.as_slice(), None);
    let stopped = sent
        .await
        .map_err(|failure| failure.within(&format!("Error stopping allocation \"{id}\"")))?;
    Ok(Begun::Stop {
        alloc: alloc.id.clone(),
        eval: stopped.eval_id,
    })
}

/// Waits until the tasks that ran before run again.
async fn await_tasks(
    cx: &mut Context,
    args: &JobRestartArgs,
    alloc: &str,
    started: &BTreeMap<String, Option<String>>,
) -> Result<(), Failure> {
    let mut index = 0;
    loop {
        let now = read_after(cx, alloc, &mut index).await?;
        if now.client_status != "running" && now.client_status != "pending" {
            let (id, status) = (short(alloc, args.verbose), &now.client_status);
            let words = format!("Allocation \"{id}\" does not run again: its status is {status}");
            return Err(Failure::new(words));
        }
        let mut again = started.iter().map(|(name, before)| {
            let task = now.task_states.get(name);
            task.is_some_and(|task| task.state == "running" && task.started_at != *before)
        });
        if again.all(|again| again) {
            return Ok(());
        }
    }
}

/// Waits until what replaces a stopped allocation runs.
async fn await_replacement(
    cx: &mut Context,
    args: &JobRestartArgs,
    alloc: &str,
    eval: &str,
) -> Result<(), Failure> {
    let next = replacement_of(cx, args, alloc, eval).await?;
    let (old, id) = (short(alloc, args.verbose), short(&next, args.verbose));
    cx.screen.print_line(&format!(
        "    {}: Allocation \"{old}\" is replaced by \"{id}\"",
        cx.stamp()
    ))?;
    let mut index = 0;
    loop {
        let now = read_after(cx, &next, &mut index).await?;
        match now.client_status.as_str() {
            "running" | "complete" => return Ok(()),
            "failed" | "lost" => {
                let words = format!("Allocation \"{id}\", the replacement, failed");
                return Err(Failure::new(words));
            }
            _ => {}
        }
    }
}

/// The allocation that replaces a stopped one.
async fn replacement_of(
    cx: &mut Context,
    args: &JobRestartArgs,
    alloc: &str,
    eval: &str,
) -> Result<String, Failure> {
    let mut index = 0;
    loop {
        let now = read_after(cx, alloc, &mut index).await?;
        if !now.next_allocation.is_empty() {
            return Ok(now.next_allocation);
        }
        if eval.is_empty() {
            continue;
        }
        let path = format!("/v1/evaluation/{eval}");
        let evaluation: EvaluationDto = cx.client.get(&path, &[]).await?;
        if !evaluation.failed_groups.is_empty() {
            let (id, failed) = (
                short(alloc, args.verbose),
                monitor::failed_groups(&evaluation),
            );
            let words = format!("Allocation \"{id}\" cannot be replaced now\n{failed}");
            return Err(Failure::new(words));
        }
    }
}

/// An allocation when it changed after this index, which becomes that of the change.
async fn read_after(cx: &mut Context, alloc: &str, index: &mut u64) -> Result<AllocStub, Failure> {
    let after = index.to_string();
    let query = [("index", after.as_str())];
    let path = format!("/v1/allocation/{alloc}");
    let answer: Answer<Alloc> = monitor::follow(cx, &path, &query).await?;
    *index = answer.index;
    Ok(answer.value.stub)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_size_is_a_number_or_a_share_rounded_up() {
        let of = |text| batch_size(text, 7).ok();
        assert_eq!(of("1"), Some(1));
        assert_eq!(of("20"), Some(20));
        assert_eq!(of("25%"), Some(2));
        assert_eq!(of("1%"), Some(1));
        assert_eq!(of("100%"), Some(7));
        for bad in ["0", "0%", "101%", "-1", "x", "", "%"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
