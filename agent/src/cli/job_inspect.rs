//! `drover job inspect`: a job as the agent keeps it, as JSON.

use serde_json::{Value, json};

use super::args::InspectArgs;
use super::context::{Context, Outcome, no_template};
use super::failure::Failure;
use super::lookup::{self, job_path};
use crate::http::dto::Versions;

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: InspectArgs) -> Outcome {
    no_template(&args.template)?;
    let job = lookup::job(cx, &args.job).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let Some(wanted) = args.version else {
        let whole: Value = cx.client.get(&job_path(&job, ""), &namespace).await?;
        return cx.print_json(&json!({ "Job": whole }));
    };
    let versions: Versions = cx
        .client
        .get(&job_path(&job, "/versions"), &namespace)
        .await?;
    let number = |job: &Value| job.get("Version").and_then(Value::as_u64).unwrap_or(0);
    match versions.versions.iter().find(|job| number(job) == wanted) {
        Some(version) => cx.print_json(&json!({ "Job": version })),
        None => Err(Failure::new(format!(
            "No version {wanted} of job \"{}\" is kept",
            job.id
        ))),
    }
}
