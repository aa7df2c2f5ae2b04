//! `drover job revert`: an earlier version of a job becomes its latest one.

use hyper::Method;
use serde_json::{Value, json};

use super::args::RevertArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::job_history::number;
use super::lookup::{self, job_path};
use super::monitor;
use crate::http::dto::{JobStub, Registered, Versions};

/// Runs the command.
///
/// # Errors
/// The job or its version cannot be found, or the agent refuses.
pub(super) async fn run(cx: &mut Context, args: RevertArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let version = match args.version.parse::<u64>() {
        Ok(version) => version,
        Err(_) => tagged(cx, &job, &args.version).await?,
    };
    let body = json!({
        "JobID": job.id,
        "JobVersion": version,
        "EnforcePriorVersion": Value::Null,
    });
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/revert");
    let sent = cx
        .client
        .change::<Registered>(Method::PUT, &path, &namespace, Some(&body));
    let reverted = sent
        .await
        .map_err(|failure| failure.answered_within("Error reverting job"))?;
    if reverted.eval_id.is_empty() {
        return Ok(0);
    }
    if args.detach {
        cx.screen
            .print_line(&format!("Evaluation ID: {}", reverted.eval_id))?;
        return Ok(0);
    }
    monitor::eval(cx, &reverted.eval_id, args.verbose).await
}

/// The version of this tag.
async fn tagged(cx: &mut Context, job: &JobStub, tag: &str) -> Result<u64, Failure> {
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(job, "/versions");
    let versions: Versions = cx.client.get(&path, &namespace).await?;
    let mut versions = versions.versions.iter();
    let found = versions.find(|one| one.pointer("/VersionTag/Name") == Some(&tag.into()));
    found.map(number).ok_or_else(|| {
        Failure::new(format!(
            "No version of job \"{}\" has the number or the tag \"{tag}\"",
            job.id
        ))
    })
}
