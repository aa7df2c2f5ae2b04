//! `drover job validate`: checks a job file, with an agent's help where there is one.

use hyper::Method;
use serde_json::json;

use super::args::ValidateArgs;
use super::context::{Context, Outcome};
use super::failure::Failure;
use super::jobfile;
use crate::admission::Refused;
use crate::http::shapes::Validated;

/// Runs the command.
///
/// # Errors
/// The file or the job is at fault.
pub(super) async fn run(cx: &mut Context, args: ValidateArgs) -> Outcome {
    let loaded = jobfile::read(&mut cx.screen, &args.file, &args.variables, args.json)?;
    let body = json!({ "Job": loaded.job });
    let asked = cx
        .client
        .change::<Validated>(Method::PUT, "/v1/validate/job", &[], Some(&body));
    let (errors, warnings) = match asked.await {
        Ok(validated) => {
            let many = validated.validation_errors.map(Refused);
            let errors = many.map_or(validated.error, |many| many.list());
            (errors, validated.warnings)
        }
        Err(failure) if failure.status.is_some() => return Err(failure),
        // No agent is needed for the rules that hold everywhere.
        Err(_) => (String::new(), String::new()),
    };
    // Our own words know the places in the file.
    let errors = loaded.mistakes().map_or(errors, |own| own.0.join("\n\n"));
    if !errors.is_empty() {
        return Err(Failure::said(format!(
            "Job validation errors:\n{}",
            errors.trim_end()
        )));
    }
    if !warnings.is_empty() {
        cx.screen.say(&format!("Job Warnings:\n{warnings}\n"))?;
    }
    cx.screen.say("Job validation successful")?;
    Ok(0)
}
