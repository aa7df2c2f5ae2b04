//! `drover job validate`: checks a job file, with an agent's help where there is one.

use hyper::Method;
use serde_json::json;

use super::args::ValidateArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::jobfile;
use crate::admission;
use crate::http::dto::Validated;

/// Runs the command.
///
/// # Errors
/// The file or the job is at fault.
pub(super) async fn run(cx: &mut Context, args: ValidateArgs) -> Outcome {
    // The rules that hold everywhere need no agent, and know the places in the file.
    let admitted = jobfile::admit(&mut cx.screen, &args.file, &args.variables, args.json)?;
    let body = json!({ "Job": admitted.job });
    let asked = cx
        .client
        .change::<Validated>(Method::PUT, "/v1/validate/job", &[], Some(&body));
    let errors = match asked.await {
        Ok(validated) => {
            // What the file itself says was told already.
            for line in validated.warnings.lines() {
                let warning = line
                    .strip_prefix("* ")
                    .filter(|it| it.contains(".driver: "));
                if let Some(warning) = warning {
                    cx.screen.complain(&format!("Warning: {warning}"));
                }
            }
            let many = validated
                .validation_errors
                .map(|list| admission::Refused(list).list());
            many.unwrap_or(validated.error)
        }
        Err(failure) if failure.status.is_some() => return Err(failure),
        Err(_) => String::new(),
    };
    if !errors.is_empty() {
        return Err(Failure::new(format!(
            "Job validation errors:\n{}",
            errors.trim_end()
        )));
    }
    cx.screen.print_line("Job validation successful")?;
    Ok(0)
}
