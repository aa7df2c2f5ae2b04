//! `drover job tag`: names of a job's versions.

use drover_io_real::http_client::encoded;
use hyper::Method;
use serde_json::{Value, json};

use super::args::{TagApplyArgs, TagCommand, TagUnsetArgs};
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};

/// Runs the command.
///
/// # Errors
/// The job or its version cannot be found, or the agent refuses.
pub(super) async fn run(cx: &mut Context, command: TagCommand) -> Outcome {
    match command {
        TagCommand::Apply(args) => apply(cx, args).await,
        TagCommand::Unset(args) => unset(cx, args).await,
    }
}

async fn apply(cx: &mut Context, args: TagApplyArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let version = match args.version {
        Some(version) => version,
        None => {
            let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
            super::job_history::number(&whole)
        }
    };
    let body = json!({ "Version": version, "Description": args.description });
    let path = job_path(&job, &format!("/versions/{}/tag", encoded(&args.name)));
    cx.client
        .change::<Value>(Method::PUT, &path, &namespace, Some(&body))
        .await
        .map_err(|failure| failure.within("Error tagging job version"))?;
    let name = &args.name;
    cx.screen.print_line(&format!(
        "Job version {version} tagged with name \"{name}\""
    ))?;
    Ok(0)
}

async fn unset(cx: &mut Context, args: TagUnsetArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, &format!("/versions/{}/tag", encoded(&args.name)));
    cx.client
        .change::<Value>(Method::DELETE, &path, &namespace, None)
        .await
        .map_err(|failure| failure.within("Error untagging job version"))?;
    cx.screen.print_line(&format!(
        "Tag \"{}\" removed from job \"{}\"",
        args.name, job.id
    ))?;
    Ok(0)
}
