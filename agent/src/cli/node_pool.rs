//! `drover node pool`: the pools of a single node are those that always are.

use drover_io_real::http_client::encoded;
use serde::Deserialize;
use serde_json::Value;

use super::args::{NodePoolArgs, NodePoolCommand, NodePoolListArgs, NodePoolPartArgs};
use super::context::{Context, Outcome};
use super::table::{block, table};
use super::{job_status, node_status};
use crate::http::dto::{JobStub, NodeDto};

/// A pool, as far as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Pool {
    name: String,
    description: String,
}

/// Runs one of the commands.
///
/// # Errors
/// There is no such pool, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: NodePoolCommand) -> Outcome {
    match command {
        NodePoolCommand::List(args) => list(cx, args).await,
        NodePoolCommand::Info(args) => info(cx, args).await,
        NodePoolCommand::Nodes(args) => nodes(cx, args).await,
        NodePoolCommand::Jobs(args) => jobs(cx, args).await,
    }
}

fn path(pool: &str, part: &str) -> String {
    format!("/v1/node/pool/{}{part}", encoded(pool))
}

async fn list(cx: &mut Context, args: NodePoolListArgs) -> Outcome {
    if args.shape.is_asked() {
        let (all, next): (Value, _) = cx.page("/v1/node/pools", &[], &args.page).await?;
        cx.show(&args.shape, &all)?;
        cx.note_next(next.as_deref());
        return Ok(0);
    }
    let (all, next): (Vec<Pool>, _) = cx.page("/v1/node/pools", &[], &args.page).await?;
    let rows = all.into_iter().map(|pool| [pool.name, pool.description]);
    cx.screen
        .print_line(&table(["Name", "Description"], rows))?;
    cx.note_next(next.as_deref());
    Ok(0)
}

async fn info(cx: &mut Context, args: NodePoolArgs) -> Outcome {
    let path = path(&args.pool, "");
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let pool: Pool = cx.client.get(&path, &[]).await?;
    let pairs = [("Name", pool.name), ("Description", pool.description)];
    cx.screen.print_line(&block(pairs))?;
    Ok(0)
}

async fn nodes(cx: &mut Context, args: NodePoolPartArgs) -> Outcome {
    let path = path(&args.pool, "/nodes");
    if args.shape.is_asked() {
        return part(cx, &path, &args).await;
    }
    let (nodes, next): (Vec<NodeDto>, _) = cx.page(&path, &[], &args.page).await?;
    node_status::print_nodes(cx, &nodes, args.verbose, &node_status::Columns::default())?;
    cx.note_next(next.as_deref());
    Ok(0)
}

async fn jobs(cx: &mut Context, args: NodePoolPartArgs) -> Outcome {
    let path = path(&args.pool, "/jobs");
    if args.shape.is_asked() {
        return part(cx, &path, &args).await;
    }
    let (jobs, next): (Vec<JobStub>, _) = cx.page(&path, &[], &args.page).await?;
    job_status::print_jobs(cx, jobs)?;
    cx.note_next(next.as_deref());
    Ok(0)
}

/// A part of a list, in the shape that is asked for.
async fn part(cx: &mut Context, path: &str, args: &NodePoolPartArgs) -> Outcome {
    let (part, next): (Value, _) = cx.page(path, &[], &args.page).await?;
    cx.show(&args.shape, &part)?;
    cx.note_next(next.as_deref());
    Ok(0)
}
