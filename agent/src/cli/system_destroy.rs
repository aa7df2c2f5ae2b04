//! `drover system destroy`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drover_core::ids::LaunchId;
use drover_io_real::destroy::{DestroyError, DestroyGuard, Removed};
use drover_io_real::driver::docker::socket_path;
use tokio::task::spawn_blocking;

use super::args::DestroyArgs;
use super::confirm;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use crate::config::CGROUP_PARENT;

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
    let engine = args.docker_endpoint.as_deref().map(socket_path).transpose();
    let engine = engine.map_err(Failure::new)?;
    let open = move || DestroyGuard::open(&dir, CGROUP_PARENT, with_volumes, engine);
    let doomed = blocking(open).await?;
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
    let plugin_tasks = doomed.plugin_tasks().map_err(failed)?;
    let (doomed, containers) = blocking(move || {
        let containers = doomed.containers_out_of_reach()?;
        Ok((doomed, containers))
    })
    .await?;
    refuse_containers(&path, &containers)?;
    refuse_running(&path, &names, &plugin_tasks, &args)?;
    let (doomed, images, missed) = blocking(move || {
        let (images, missed) = (doomed.images()?, doomed.images_out_of_reach()?);
        Ok((doomed, images, missed))
    })
    .await?;
    let asked = question(&path, names.len(), with_volumes, &images);
    if !args.yes && !confirm::ask(cx, &asked).await? {
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
    for engine in missed {
        let line =
            format!("images that tasks used stay, since their engine cannot be asked: {engine}");
        cx.screen.complain(&line);
    }
    Ok(0)
}

/// Fails if there may be containers of an engine that cannot be asked.
fn refuse_containers(path: &Path, launches: &BTreeMap<LaunchId, String>) -> Result<(), Failure> {
    let Some(why) = launches.values().next() else {
        return Ok(());
    };
    let path = path.display();
    let names: Vec<String> = launches.keys().map(ToString::to_string).collect();
    Err(Failure::new(format!(
        "there may be containers of tasks, with these words in their names: {}\n\
         Their engine cannot be asked ({why}). Start it and try again, name it with -docker-endpoint if it is elsewhere; \
         or remove the files of these names in {path}/docker, if it or the container is gone for good. Nothing was removed.",
        names.join(", ")
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
            "tasks that were started from {path} still run; their processes and containers: {}\n\
             Stop their jobs with an agent (drover job stop JOB), or end them with -stop-tasks. \
             Nothing was removed.",
            named.join(", ")
        )));
    }
    Ok(())
}

fn question(path: &Path, running: usize, with_volumes: bool, images: &[String]) -> String {
    let stops = match running {
        0 => String::new(),
        count => format!(" after ending {count} processes and containers of tasks"),
    };
    let volumes = match with_volumes {
        true => " host volumes with what jobs keep,",
        false => "",
    };
    let mut named: Vec<String> = images.iter().take(MOST_NAMED).cloned().collect();
    if let more @ 1.. = images.len().saturating_sub(MOST_NAMED) {
        named.push(format!("{more} more"));
    }
    let images = match named.is_empty() {
        true => String::new(),
        false => format!(
            " and images of containers that it brought ({})",
            named.join(", ")
        ),
    };
    format!(
        "Remove {}{stops}, with all jobs, allocations and their disks,{volumes} variables, keys and \
         recordings in it{images}? This cannot be undone. [y/N]",
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
