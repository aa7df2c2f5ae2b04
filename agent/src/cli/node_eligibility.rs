//! `drover node eligibility`, and how commands name a node.

use hyper::Method;
use serde_json::{Value, json};

use super::args::{NodeEligibilityArgs, OfNode};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;

/// Runs the command.
///
/// # Errors
/// The node cannot be found, or it drains.
pub(super) async fn run(cx: &mut Context, args: NodeEligibilityArgs) -> Outcome {
    let id = id_of(cx, &args.of).await?;
    let (eligibility, words) = match args.enable {
        true => ("eligible", "eligible for scheduling"),
        false => ("ineligible", "ineligible for scheduling"),
    };
    let path = format!("/v1/node/{id}/eligibility");
    let body = json!({ "NodeID": id, "Eligibility": eligibility });
    let sent = cx
        .client
        .change::<Value>(Method::PUT, &path, &[], Some(&body));
    sent.await
        .map_err(|failure| failure.answered_within("Error updating scheduling eligibility"))?;
    cx.screen.print_line(&format!(
        "Node \"{id}\" scheduling eligibility set: {words}"
    ))?;
    Ok(0)
}

/// The id of the node that is meant.
///
/// # Errors
/// None is named, or it cannot be found.
pub(super) async fn id_of(cx: &Context, of: &OfNode) -> Result<String, Failure> {
    match (&of.node, of.this) {
        (Some(prefix), _) => Ok(lookup::node(&cx.client, prefix).await?.id),
        (None, true) => own_node(cx).await,
        (None, false) => Err(Failure::new(
            "Name the node, or use -self for the node of the agent that is asked.",
        )),
    }
}

/// The node of the agent that is asked.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn own_node(cx: &Context) -> Result<String, Failure> {
    let this: Value = cx.client.get("/v1/agent/self", &[]).await?;
    let id = this
        .pointer("/stats/client/node_id")
        .and_then(Value::as_str);
    Ok(id.unwrap_or_default().to_owned())
}
