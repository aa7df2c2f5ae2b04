//! `drover node status`.

use std::collections::BTreeMap;

use drover_core::time::Span;
use serde_json::Value;

use super::args::NodeStatusArgs;
use super::context::{Context, Outcome};
use super::table::{block, columns, short};
use super::{job_status, lookup, node_detail, node_eligibility, node_usage};
use crate::http::dto::{Alloc, AllocStub, HostStats, NodeDto};
use crate::times;

/// Runs the command.
///
/// # Errors
/// The node cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: NodeStatusArgs) -> Outcome {
    let id = match (&args.node, args.this) {
        (Some(prefix), _) => lookup::node(&cx.client, prefix).await?.id,
        (None, true) => node_eligibility::own_node(cx).await?,
        (None, false) => return list(cx, &args).await,
    };
    let path = format!("/v1/node/{id}");
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let node: NodeDto = cx.client.get(&path, &[]).await?;
    let host = match args.stats {
        true => Some(node_usage::host(cx, &id).await?),
        false => None,
    };
    cx.screen.print_line(&head(&node, host.as_ref()))?;
    let allocs: Vec<Alloc> = cx.client.get(&format!("{path}/allocations"), &[]).await?;
    if !args.short {
        node_usage::print_allocated(cx, &node, host.as_ref(), &allocs)?;
    }
    if let Some(host) = &host {
        node_usage::print_used(cx, &node, host, &allocs).await?;
    }
    let mut allocs: Vec<AllocStub> = allocs.into_iter().map(|alloc| alloc.stub).collect();
    allocs.sort_by_key(|alloc| core::cmp::Reverse(alloc.create_index));
    cx.screen.title("\nAllocations")?;
    let shown = job_status::allocations(cx, &allocs, args.verbose);
    cx.screen.print_line(&shown)?;
    if args.verbose && !args.short {
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

async fn list(cx: &mut Context, args: &NodeStatusArgs) -> Outcome {
    let query = args.os.then_some(("os", "true"));
    if args.shape.is_asked() {
        let (nodes, next): (Value, _) = cx.page("/v1/nodes", query.as_slice(), &args.page).await?;
        cx.show(&args.shape, &nodes)?;
        cx.note_next(next.as_deref());
        return Ok(0);
    }
    let (nodes, next): (Vec<NodeDto>, _) =
        cx.page("/v1/nodes", query.as_slice(), &args.page).await?;
    if args.quiet {
        for node in &nodes {
            cx.screen.print_line(&node.id)?;
        }
        return Ok(0);
    }
    let mut more = Columns {
        os: args.os,
        running: BTreeMap::new(),
    };
    if args.allocs {
        for node in &nodes {
            let path = format!("/v1/node/{}/allocations", node.id);
            let allocs: Vec<AllocStub> = cx.client.get(&path, &[]).await?;
            let running = allocs.iter().filter(|one| one.client_status == "running");
            more.running.insert(node.id.clone(), running.count());
        }
    }
    print_nodes(cx, &nodes, args.verbose, &more)?;
    cx.note_next(next.as_deref());
    Ok(0)
}

/// What a list of nodes shows besides.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The operating systems.
    os: bool,
    /// How many allocations run on which node; none to show no such column.
    running: BTreeMap<String, usize>,
}

/// Shows nodes as a list.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn print_nodes(
    cx: &mut Context,
    nodes: &[NodeDto],
    verbose: bool,
    more: &Columns,
) -> Outcome {
    let shows_running = !more.running.is_empty();
    let mut header = vec!["ID", "Node Pool", "DC", "Name", "Class"];
    header.extend(more.os.then_some("OS"));
    header.extend(["Drain", "Eligibility", "Status"]);
    header.extend(shows_running.then_some("Running Allocs"));
    let or_none = |text: &str| match text {
        "" => "<none>".to_owned(),
        text => text.to_owned(),
    };
    let row = |node: &NodeDto| {
        let mut row = vec![
            short(&node.id, verbose),
            node.node_pool.clone(),
            node.datacenter.clone(),
            node.name.clone(),
            or_none(&node.node_class),
        ];
        let os = node.attributes.get("os.name").map_or("", String::as_str);
        row.extend(more.os.then(|| or_none(os)));
        row.extend([
            node.drain.to_string(),
            node.scheduling_eligibility.clone(),
            node.status.clone(),
        ]);
        let running = more.running.get(&node.id).copied().unwrap_or(0);
        row.extend(shows_running.then(|| running.to_string()));
        row
    };
    let header = header.into_iter().map(str::to_owned).collect();
    let rows = core::iter::once(header).chain(nodes.iter().map(row));
    cx.screen.print_line(&columns(rows))?;
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
        ("Drain", drain(node)),
        ("Eligibility", node.scheduling_eligibility.clone()),
        ("Status", node.status.clone()),
    ];
    let uptime = uptime.map(|span| ("Uptime", times::rough(span)));
    let volumes: Vec<&str> = node.host_volumes.keys().map(String::as_str).collect();
    let volumes = match volumes.as_slice() {
        [] => "<none>".to_owned(),
        some => some.join(","),
    };
    let last = [
        ("Host Volumes", volumes),
        ("Driver Status", drivers.collect::<Vec<_>>().join(",")),
    ];
    let last_drain = node.last_drain.as_ref().map(|last| {
        let notes = last.meta.iter().flatten();
        let notes: Vec<String> = notes.map(|(key, value)| format!("{key}={value}")).collect();
        let words = format!("{} {} {}", last.status, last.updated_at, notes.join(" "));
        ("Last Drain", words.trim_end().to_owned())
    });
    block(
        (first.into_iter())
            .chain(uptime)
            .chain(last_drain)
            .chain(last),
    )
}

/// Whether a node drains, and how.
fn drain(node: &NodeDto) -> String {
    let Some(drain) = &node.drain_strategy else {
        return node.drain.to_string();
    };
    let deadline = match drain.force_at() {
        Some(at) => format!("{} deadline", times::to_seconds(at)),
        None if drain.deadline < 0 => "force drain".to_owned(),
        None => "no deadline".to_owned(),
    };
    let ignored = match drain.ignore_system_jobs {
        true => "; ignoring system jobs",
        false => "",
    };
    format!("true; {deadline}{ignored}")
}
