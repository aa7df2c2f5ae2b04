//! `drover job allocs` and `drover job deployments`: what there is of one job.

use serde_json::Value;

use super::args::ListOfJobArgs;
use super::context::{Context, Outcome};
use super::lookup::{self, job_path};
use super::{eval_status, job_status, monitor};
use crate::http::dto::{AllocStub, DeploymentDto};

/// Runs `job allocs`.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn allocs(cx: &mut Context, args: ListOfJobArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let all = if args.all { "true" } else { "false" };
    let query = [("namespace", job.namespace.as_str()), ("all", all)];
    let path = job_path(&job, "/allocations");
    if args.shape.is_asked() {
        let list: Value = cx.client.get(&path, &query).await?;
        return cx.show(&args.shape, &list);
    }
    let list: Vec<AllocStub> = cx.client.get(&path, &query).await?;
    let shown = job_status::allocations(cx, &list, args.verbose);
    cx.screen.print_line(&shown)?;
    Ok(0)
}

/// Runs `job deployments`.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn deployments(cx: &mut Context, args: ListOfJobArgs) -> Outcome {
    let job = lookup::job(cx, &args.job).await?;
    let all = if args.all { "true" } else { "false" };
    let query = [("namespace", job.namespace.as_str()), ("all", all)];
    if args.latest {
        let path = job_path(&job, "/deployment");
        if args.shape.is_asked() {
            let whole: Value = cx.client.get(&path, &query).await?;
            return cx.show(&args.shape, &whole);
        }
        let latest: Option<DeploymentDto> = cx.client.get(&path, &query).await?;
        let shown = match latest {
            Some(latest) => monitor::describe(&latest, args.verbose),
            None => "No deployment found".to_owned(),
        };
        cx.screen.print_line(&shown)?;
        return Ok(0);
    }
    let path = job_path(&job, "/deployments");
    if args.shape.is_asked() {
        let list: Value = cx.client.get(&path, &query).await?;
        return cx.show(&args.shape, &list);
    }
    let list: Vec<DeploymentDto> = cx.client.get(&path, &query).await?;
    let shown = match list.is_empty() {
        true => "No deployments found".to_owned(),
        false => eval_status::deployment_table(&list, args.verbose),
    };
    cx.screen.print_line(&shown)?;
    Ok(0)
}
