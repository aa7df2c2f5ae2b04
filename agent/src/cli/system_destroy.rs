//! `drover system destroy`.

use std::path::Path;
use std::time::Duration;

use drover_io_real::destroy::{DestroyError, DestroyGuard, Removed};
use tokio::task::spawn_blocking;

use super::args::DestroyArgs;
use super::confirm;
use super::context::{Context, Outcome};
use super::failure::Failure;
use crate::runtime::CGROUP_PARENT;

/// How long tasks have to end by themselves.
const GRACE: Duration = Duration::from_secs(10);

/// More processes than this are not named.
const MOST_NAMED: usize = 10;

/// Runs the command. It asks no agent: none may run there.
///
/// # Errors
/// An agent runs there, tasks run and are not to be stopped, or something resists.
pub(super) async fn run(cx: &mut Context, args: DestroyArgs) -> Outcome {
    let (dir, with_volumes) = (args.data_dir.clone(), args.volumes);
    let doomed = blocking(move || DestroyGuard::open(&dir, CGROUP_PARENT, with_volumes)).await?;
    let path = doomed.path().to_owned();
    let (doomed, running) = blocking(move || {
        let running = doomed.running()?;
        Ok((doomed, running))
    })
    .await?;
    let names: Vec<String> = running
        .iter()
        .map(|process| format!("{} ({})", process.name, process.program))
        .collect();
    refuse_containers(&path, &doomed.containers().map_err(failed)?)?;
    refuse_running(
        &path,
        &names,
        &doomed.plugin_tasks().map_err(failed)?,
        &args,
    )?;
    if !args.yes && !confirm::ask(cx, &question(&path, names.len(), with_volumes)).await? {
        return Err(Failure::new("nothing was removed"));
    }
    let removed = blocking(move || {
        if args.stop_tasks {
            doomed.stop_tasks(GRACE)?;
        }
        doomed.remove()
    });
    let words = match removed.await? {
        Removed::Whole => "removed",
        Removed::Emptied => "emptied; it is a mount point and stays",
    };
    cx.screen
        .print_line(&format!("{}: {words}", path.display()))?;
    Ok(0)
}

/// Fails if there are containers, which only an agent can end.
fn refuse_containers(path: &Path, launches: &[String]) -> Result<(), Failure> {
    if launches.is_empty() {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::new(format!(
        "there are containers of tasks, with these words in their names: {}\n\
         Start the agent in {path} again, stop their jobs, stop the agent; or remove them with docker rm -f, and the \
         files of these names in {path}/docker. Nothing was removed.",
        launches.join(", ")
    )))
}

/// Fails if tasks run that are not to be ended, or that nobody here can end.
fn refuse_running(
    path: &Path,
    running: &[String],
    plugin_tasks: &[String],
    args: &DestroyArgs,
) -> Result<(), Failure> {
    let path = path.display();
    if !plugin_tasks.is_empty() {
        return Err(Failure::new(format!(
            "tasks run that a driver's plugin started: {}\n\
             Only their plugin can end them. Start the agent in {path} again, stop their jobs, stop \
             the agent; or end them yourself, and remove the files of these names in \
             {path}/plugin-tasks. Nothing was removed.",
            plugin_tasks.join(", ")
        )));
    }
    if !running.is_empty() && !args.stop_tasks {
        let named = running.iter().take(MOST_NAMED).cloned();
        let mut named: Vec<String> = named.collect();
        if let more @ 1.. = running.len().saturating_sub(MOST_NAMED) {
            named.push(format!("{more} more"));
        }
        return Err(Failure::new(format!(
            "tasks that were started from {path} still run; their processes: {}\n\
             Stop their jobs with an agent (drover job stop JOB), or end them with -stop-tasks. \
             Nothing was removed.",
            named.join(", ")
        )));
    }
    Ok(())
}

fn question(path: &Path, running: usize, with_volumes: bool) -> String {
    let stops = match running {
        0 => String::new(),
        count => format!(" after ending {count} processes of tasks"),
    };
    let volumes = match with_volumes {
        true => " host volumes with what jobs keep,",
        false => "",
    };
    format!(
        "Remove {}{stops}, with all jobs, allocations and their disks,{volumes} variables, keys and \
         recordings in it? This cannot be undone. [y/N]",
        path.display()
    )
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DestroyError> + Send + 'static,
) -> Result<T, Failure> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(failed),
        Err(lost) => Err(Failure::new(format!("the work was lost: {lost}"))),
    }
}

fn failed(error: DestroyError) -> Failure {
    Failure::new(error.to_string())
}
