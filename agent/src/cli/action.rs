//! `drover action`: a command that a job's author wrote down for whoever operates it.

use super::args::ActionArgs;
use super::context::{Context, Outcome};
use super::exec::{self, Interaction};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use crate::http::actions::JobAction;

/// Runs the command.
///
/// # Errors
/// The job or action cannot be found, the program cannot be run, or the connection breaks.
pub(super) async fn run(cx: &mut Context, args: ActionArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = ("namespace", job.namespace.as_str());
    let path = job_path(&job, "/actions");
    let actions: Vec<JobAction> = cx.client.get(&path, &[namespace]).await?;
    if !actions.iter().any(|action| action.name == args.name) {
        let (id, name) = (&job.id, &args.name);
        let mut known: Vec<&str> = actions.iter().map(|action| &*action.name).collect();
        known.dedup();
        let known = match known.as_slice() {
            [] => "it has none".to_owned(),
            known => format!("it has {}", known.join(", ")),
        };
        let words = format!("Job \"{id}\" has no action \"{name}\": {known}");
        return Err(Failure::new(words));
    }
    let alloc = match &args.allocation {
        Some(prefix) => Some(lookup::alloc(&cx.client, prefix).await?.id),
        None => None,
    };
    let mut query = vec![namespace, ("action", args.name.as_str())];
    let given = [
        ("group", &args.group),
        ("task", &args.task),
        ("allocID", &alloc),
    ];
    for (name, value) in given {
        query.extend(value.as_deref().map(|value| (name, value)));
    }
    let how = Interaction {
        input: args.input,
        tty: args.tty,
        escape: args.escape.clone(),
    };
    exec::open(cx, &job_path(&job, "/action"), &query, &how).await
}
