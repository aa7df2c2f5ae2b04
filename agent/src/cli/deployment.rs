//! `drover deployment list|promote|fail|pause|resume|unblock` and `drover job promote`.

use hyper::Method;
use serde_json::{Value, json};

use super::args::{ChangeDeploymentArgs, DeploymentListArgs, PromoteArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup::{self, job_path};
use super::table::short;
use super::{eval_status, monitor};
use crate::http::dto::DeploymentDto;

/// Runs `deployment list`.
///
/// # Errors
/// The filter is invalid, or the agent does not answer.
pub(super) async fn list(cx: &mut Context, args: DeploymentListArgs) -> Outcome {
    eval_status::deployments(cx, args.filter.as_deref(), &args.shape, args.verbose).await
}

/// Runs `deployment promote`.
///
/// # Errors
/// The roll-out cannot be found, or has nothing to promote.
pub(super) async fn promote(cx: &mut Context, args: PromoteArgs) -> Outcome {
    let deployment = lookup::deployment(&cx.client, &args.id).await?;
    promote_one(cx, &deployment, &args).await
}

/// Runs `job promote`: the latest roll-out of the job.
///
/// # Errors
/// The job cannot be found, or has nothing to promote.
pub(super) async fn promote_job(cx: &mut Context, args: PromoteArgs) -> Outcome {
    let job = lookup::job(cx, &args.id).await?;
    let namespace = [("namespace", job.namespace.as_str())];
    let path = job_path(&job, "/deployment");
    let latest: Option<DeploymentDto> = cx.client.get(&path, &namespace).await?;
    let none = || Failure::new(format!("Job \"{}\" has no deployment to promote", job.id));
    let latest = latest.ok_or_else(none)?;
    promote_one(cx, &latest, &args).await
}

async fn promote_one(cx: &mut Context, deployment: &DeploymentDto, args: &PromoteArgs) -> Outcome {
    let all = args.group.is_empty();
    let body = json!({ "DeploymentID": deployment.id, "All": all, "Groups": args.group });
    change(cx, deployment, "promote", &body).await?;
    follow(cx, &deployment.id, args.detach, args.verbose).await
}

/// Runs `deployment fail`.
///
/// # Errors
/// The roll-out cannot be found, or is over.
pub(super) async fn fail(cx: &mut Context, args: ChangeDeploymentArgs) -> Outcome {
    let deployment = lookup::deployment(&cx.client, &args.deployment).await?;
    let body = json!({ "DeploymentID": deployment.id });
    let answer = change(cx, &deployment, "fail", &body).await?;
    let id = short(&deployment.id, args.verbose);
    cx.screen
        .print_line(&format!("Deployment \"{id}\" failed"))?;
    if let Some(version) = answer.get("RevertedJobVersion").and_then(Value::as_u64) {
        cx.screen.print_line(&format!(
            "Rolling back to job version {version}, as a new version"
        ))?;
    }
    Ok(0)
}

/// Runs `deployment pause` and `deployment resume`.
///
/// # Errors
/// The roll-out cannot be found, or is over.
pub(super) async fn pause(cx: &mut Context, args: ChangeDeploymentArgs, pause: bool) -> Outcome {
    let deployment = lookup::deployment(&cx.client, &args.deployment).await?;
    let body = json!({ "DeploymentID": deployment.id, "Pause": pause });
    change(cx, &deployment, "pause", &body).await?;
    if pause {
        let id = short(&deployment.id, args.verbose);
        cx.screen
            .print_line(&format!("Deployment \"{id}\" paused"))?;
        return Ok(0);
    }
    follow(cx, &deployment.id, args.detach, args.verbose).await
}

/// Runs `deployment unblock`.
///
/// # Errors
/// Always: nothing is blocked here.
pub(super) async fn unblock(cx: &mut Context, args: ChangeDeploymentArgs) -> Outcome {
    let deployment = lookup::deployment(&cx.client, &args.deployment).await?;
    let body = json!({ "DeploymentID": deployment.id });
    change(cx, &deployment, "unblock", &body).await?;
    Ok(0)
}

async fn change(
    cx: &mut Context,
    deployment: &DeploymentDto,
    action: &str,
    body: &Value,
) -> Result<Value, Failure> {
    let path = format!("/v1/deployment/{action}/{}", deployment.id);
    let namespace = [("namespace", deployment.namespace.as_str())];
    let sent = cx
        .client
        .change::<Value>(Method::PUT, &path, &namespace, Some(body));
    sent.await
        .map_err(|failure| failure.answered_within("Error changing deployment"))
}

async fn follow(cx: &mut Context, id: &str, detach: bool, verbose: bool) -> Outcome {
    if detach {
        return Ok(0);
    }
    monitor::deployment(cx, id, verbose).await
}
