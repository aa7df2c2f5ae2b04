//! `drover node status`.

use drover_core::time::Span;
use serde_json::Value;

use super::args::NodeStatusArgs;
use super::context::{Context, Outcome, no_template};
use super::table::{block, short, table};
use super::{job_status, lookup, node_detail, node_usage};
use crate::http::dto::{Alloc, AllocStub, HostStats, NodeDto};
use crate::times;

/// Runs the command.
///
/// # Errors
/// The node cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: NodeStatusArgs) -> Outcome {
    no_template(&args.template)?;
    let id = match (&args.node, args.this) {
        (Some(prefix), _) => lookup::node(&cx.client, prefix).await?.id,
        (None, true) => own_node(cx).await?,
        (None, false) => return list(cx, &args).await,
    };
    let path = format!("/v1/node/{id}");
    if args.json {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.print_json(&whole);
    }
    let node: NodeDto = cx.client.get(&path, &[]).await?;
    let host = match args.stats {
        true => Some(node_usage::host(cx, &id).await?),
        false => None,
    };
    cx.screen.print_line(&head(&node, host.as_ref()))?;
    let allocs: Vec<Alloc> = cx.client.get(&format!("{path}/allocations"), &[]).await?;
    node_usage::print_allocated(cx, &node, host.as_ref(), &allocs)?;
    if let Some(host) = &host {
        node_usage::print_used(cx, &node, host, &allocs).await?;
    }
    let mut allocs: Vec<AllocStub> = allocs.into_iter().map(|alloc| alloc.stub).collect();
    allocs.sort_by_key(|alloc| core::cmp::Reverse(alloc.create_index));
    cx.screen.title("\nAllocations")?;
    let shown = job_status::allocations(cx, &allocs, args.verbose);
    cx.screen.print_line(&shown)?;
    if args.verbose {
        for (title, text) in node_detail::sections(&node) {
            cx.screen.title(&format!("\n{title}"))?;
            cx.screen.print_line(&text)?;
        }
        let attributes = node.attributes.iter().map(|(k, v)| (k.as_str(), v.clone()));
        cx.screen.title("\nAttributes")?;
        cx.screen.print_line(&block(attributes))?;
    }
    Ok(0)
}

async fn own_node(cx: &Context) -> Result<String, super::failure::Failure> {
    let this: Value = cx.client.get("/v1/agent/self", &[]).await?;
    let id = this
        .pointer("/stats/client/node_id")
        .and_then(Value::as_str);
    Ok(id.unwrap_or_default().to_owned())
}

async fn list(cx: &mut Context, args: &NodeStatusArgs) -> Outcome {
    if args.json {
        let nodes: Value = cx.client.get("/v1/nodes", &[]).await?;
        return cx.print_json(&nodes);
    }
    let nodes: Vec<NodeDto> = cx.client.get("/v1/nodes", &[]).await?;
    let header = [
        "ID",
        "Node Pool",
        "DC",
        "Name",
        "Class",
        "Drain",
        "Eligibility",
        "Status",
    ];
    let row = |node: &NodeDto| {
        let class = if node.node_class.is_empty() {
            "<none>"
        } else {
            &node.node_class
        };
        [
            short(&node.id, args.verbose),
            node.node_pool.clone(),
            node.datacenter.clone(),
            node.name.clone(),
            class.to_owned(),
            node.drain.to_string(),
            node.scheduling_eligibility.clone(),
            node.status.clone(),
        ]
    };
    cx.screen
        .print_line(&table(header, nodes.iter().map(row)))?;
    Ok(0)
}

fn head(node: &NodeDto, host: Option<&HostStats>) -> String {
    let drivers = node.drivers.iter().filter(|(_, driver)| driver.detected);
    let drivers = drivers.map(|(name, driver)| {
        if driver.healthy {
            name.clone()
        } else {
            format!("{name} (unhealthy)")
        }
    });
    let uptime = host.map(|host| Span::secs(i64::try_from(host.uptime).unwrap_or(0)));
    let first = [
        ("ID", node.id.clone()),
        ("Name", node.name.clone()),
        ("Node Pool", node.node_pool.clone()),
        ("Class", node.node_class.clone()),
        ("DC", node.datacenter.clone()),
        ("Drain", node.drain.to_string()),
        ("Eligibility", node.scheduling_eligibility.clone()),
        ("Status", node.status.clone()),
    ];
    let uptime = uptime.map(|span| ("Uptime", times::rough(span)));
    let last = ("Driver Status", drivers.collect::<Vec<_>>().join(","));
    block(first.into_iter().chain(uptime).chain([last]))
}
