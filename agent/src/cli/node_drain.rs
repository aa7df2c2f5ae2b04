//! `drover node drain`: empties a node and follows how.

use std::collections::BTreeMap;

use drover_core::text::parse_duration;
use drover_core::time::Span;
use hyper::Method;
use serde_json::{Value, json};

use super::args::NodeDrainArgs;
use super::client::Answer;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{confirm, monitor, node_eligibility};
use crate::http::dto::{Alloc, NodeDto};

/// When what is left is stopped, unless told otherwise; as in Nomad.
const DEADLINE: Span = Span::secs(3600);

/// Runs the command.
///
/// # Errors
/// The node cannot be found, the options make no sense, or the agent refuses.
pub(super) async fn run(cx: &mut Context, args: NodeDrainArgs) -> Outcome {
    if !args.enable && !args.disable && !args.monitor {
        return Err(Failure::new("Use one of -enable, -disable and -monitor."));
    }
    let body = body(&args)?;
    let id = node_eligibility::id_of(cx, &args.of).await?;
    if args.monitor {
        return follow(cx, &id).await;
    }
    if args.enable && !args.yes {
        let question = format!("Drain node \"{id}\", which stops what runs there? [y/N]");
        if !confirm::ask(cx, &question).await? {
            cx.screen.print_line("Nothing was done")?;
            return Ok(0);
        }
    }
    let path = format!("/v1/node/{id}/drain");
    let sent = cx
        .client
        .change::<Value>(Method::PUT, &path, &[], Some(&body));
    sent.await
        .map_err(|failure| failure.answered_within("Error updating drain specification"))?;
    let done = if args.enable { "set" } else { "unset" };
    note(cx, &format!("Node \"{id}\" drain strategy {done}"))?;
    match args.enable && !args.detach {
        true => follow(cx, &id).await,
        false => Ok(0),
    }
}

fn body(args: &NodeDrainArgs) -> Result<Value, Failure> {
    let deadline = match &args.deadline {
        _ if args.force => -1,
        _ if args.no_deadline => 0,
        None => DEADLINE.0,
        Some(text) => {
            let span = parse_duration(text).ok().filter(|span| !span.is_zero());
            let wrong = || {
                Failure::new(format!(
                    "the deadline {text:?} is no time, as \"30m\" is; use -force or -no-deadline for none"
                ))
            };
            span.ok_or_else(wrong)?.0
        }
    };
    let mut meta = BTreeMap::new();
    for pair in &args.meta {
        let Some((key, value)) = pair.split_once('=') else {
            let words = format!("-meta {pair:?} is not of the form KEY=VALUE");
            return Err(Failure::new(words));
        };
        meta.insert(key.to_owned(), value.to_owned());
    }
    if let Some(message) = &args.message {
        meta.insert("message".to_owned(), message.clone());
    }
    let spec = json!({ "Deadline": deadline, "IgnoreSystemJobs": args.ignore_system });
    Ok(json!({
        "DrainSpec": args.enable.then_some(spec),
        "MarkEligible": args.disable && !args.keep_ineligible,
        "Meta": meta,
    }))
}

/// What was last shown of an allocation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    marked: bool,
    draining: bool,
    status: String,
}

/// Follows a drain to its end.
async fn follow(cx: &mut Context, id: &str) -> Outcome {
    note(
        cx,
        "Ctrl-C to stop monitoring: will not cancel the node drain",
    )?;
    let path = format!("/v1/node/{id}");
    let allocs_path = format!("{path}/allocations");
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut index = 0_u64;
    loop {
        let after = index.to_string();
        let query = [("index", after.as_str())];
        let node: Answer<NodeDto> = monitor::follow(cx, &path, &query).await?;
        index = node.index;
        let allocs: Answer<Vec<Alloc>> = monitor::follow(cx, &allocs_path, &[]).await?;
        for alloc in &allocs.value {
            show(cx, &mut seen, alloc)?;
        }
        if node.value.drain {
            continue;
        }
        let last = node.value.last_drain.unwrap_or_default();
        let words = match last.status.as_str() {
            "complete" => format!("All allocations on node \"{id}\" have stopped"),
            "canceled" => format!("The drain of node \"{id}\" was called off"),
            _ => format!("Node \"{id}\" does not drain"),
        };
        note(cx, &words)?;
        return Ok(u8::from(last.status != "complete"));
    }
}

fn show(cx: &mut Context, seen: &mut BTreeMap<String, Seen>, alloc: &Alloc) -> Result<(), Failure> {
    let stub = &alloc.stub;
    let now = Seen {
        marked: stub.desired_transition.migrate == Some(true),
        draining: stub.desired_status != "run",
        status: stub.client_status.clone(),
    };
    let is_over = |status: &str| matches!(status, "complete" | "failed" | "lost");
    let Some(before) = seen.get(&stub.id) else {
        if now.marked && !is_over(&now.status) {
            note(cx, &format!("Alloc \"{}\" marked for migration", stub.id))?;
        }
        seen.insert(stub.id.clone(), now);
        return Ok(());
    };
    let id = &stub.id;
    if now.marked && !before.marked {
        note(cx, &format!("Alloc \"{id}\" marked for migration"))?;
    }
    if now.draining && !before.draining {
        note(cx, &format!("Alloc \"{id}\" draining"))?;
    }
    if now.status != before.status {
        let (from, to) = (&before.status, &now.status);
        note(cx, &format!("Alloc \"{id}\" status {from} -> {to}"))?;
    }
    seen.insert(id.clone(), now);
    Ok(())
}

fn note(cx: &mut Context, text: &str) -> Result<(), Failure> {
    let line = format!("{}: {text}", cx.stamp());
    cx.screen.print_line(&line)
}
