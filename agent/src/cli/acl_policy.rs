//! `drover acl policy`: which rights there are, by names.

use drover_io_real::http_client::encoded;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::acl::read;
use super::args::{AclPolicyApplyArgs, AclPolicyArgs, AclPolicyCommand, AclPolicyListArgs};
use super::context::{Context, Outcome};
use super::table::{block, table};

/// What the agent says of a policy. A list has no rules.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Policy {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    rules: String,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
}

/// Runs one of the commands.
///
/// # Errors
/// The policy is wrong or not there, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: AclPolicyCommand) -> Outcome {
    match command {
        AclPolicyCommand::Apply(args) => apply(cx, args).await,
        AclPolicyCommand::Delete(args) => delete(cx, args).await,
        AclPolicyCommand::Info(args) => info(cx, args).await,
        AclPolicyCommand::List(args) => list(cx, args).await,
    }
}

fn path(name: &str) -> String {
    format!("/v1/acl/policy/{}", encoded(name))
}

async fn apply(cx: &mut Context, args: AclPolicyApplyArgs) -> Outcome {
    let body = json!({
        "Name": args.policy,
        "Description": args.description.unwrap_or_default(),
        "Rules": read(&args.file)?,
    });
    let path = path(&args.policy);
    let sent = cx
        .client
        .change::<Value>(Method::PUT, &path, &[], Some(&body))
        .await;
    // The agent says in which line a mistake is, and not of which file.
    sent.map_err(|failure| failure.answered_within(&args.file))?;
    let words = format!("Successfully wrote \"{}\" ACL policy!", args.policy);
    cx.screen.print_line(&words)?;
    Ok(0)
}

async fn delete(cx: &mut Context, args: AclPolicyArgs) -> Outcome {
    cx.client
        .send(Method::DELETE, &path(&args.policy), &[], None)
        .await?;
    let words = format!("Successfully deleted \"{}\" ACL policy!", args.policy);
    cx.screen.print_line(&words)?;
    Ok(0)
}

async fn info(cx: &mut Context, args: AclPolicyArgs) -> Outcome {
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path(&args.policy), &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let policy: Policy = cx.client.get(&path(&args.policy), &[]).await?;
    cx.screen.print_line(&block([
        ("Name", policy.name),
        ("Description", policy.description),
        ("CreateIndex", policy.create_index.to_string()),
        ("ModifyIndex", policy.modify_index.to_string()),
    ]))?;
    cx.screen.title("\nRules")?;
    cx.screen.print_line(policy.rules.trim_end())?;
    Ok(0)
}

async fn list(cx: &mut Context, args: AclPolicyListArgs) -> Outcome {
    let path = "/v1/acl/policies";
    if args.shape.is_asked() {
        let all: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &all);
    }
    let all: Vec<Policy> = cx.client.get(path, &[]).await?;
    if all.is_empty() {
        cx.screen.print_line("No policies found")?;
        return Ok(0);
    }
    let rows = all.into_iter().map(|it| [it.name, it.description]);
    cx.screen
        .print_line(&table(["Name", "Description"], rows))?;
    Ok(0)
}
