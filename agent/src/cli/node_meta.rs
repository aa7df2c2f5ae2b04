//! `drover node meta`: the operator's own keys of a node.

use std::collections::BTreeMap;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{NodeMetaApplyArgs, NodeMetaCommand, NodeMetaReadArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;
use super::table::block;

const PATH: &str = "/v1/client/metadata";

/// What the agent says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Metadata {
    meta: BTreeMap<String, String>,
    dynamic: BTreeMap<String, String>,
    #[serde(rename = "Static")]
    configured: BTreeMap<String, String>,
}

/// Runs one of the commands.
///
/// # Errors
/// The node cannot be found, or the agent refuses.
pub(super) async fn run(cx: &mut Context, command: NodeMetaCommand) -> Outcome {
    match command {
        NodeMetaCommand::Apply(args) => apply(cx, args).await,
        NodeMetaCommand::Read(args) => read(cx, args).await,
    }
}

async fn id_of(cx: &Context, node: Option<&String>) -> Result<String, Failure> {
    match node {
        Some(prefix) => Ok(lookup::node(&cx.client, prefix).await?.id),
        None => Ok(String::new()),
    }
}

async fn apply(cx: &mut Context, args: NodeMetaApplyArgs) -> Outcome {
    let mut meta: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for pair in &args.pairs {
        let Some((key, value)) = pair.split_once('=') else {
            let words = format!("{pair:?} is not of the form KEY=VALUE");
            return Err(Failure::new(words));
        };
        meta.insert(key, Some(value));
    }
    let unset = args.unset.iter().flat_map(|keys| keys.split(','));
    meta.extend(unset.filter(|key| !key.is_empty()).map(|key| (key, None)));
    if meta.is_empty() {
        return Err(Failure::new("Name keys as KEY=VALUE, or with -unset."));
    }
    let id = id_of(cx, args.node_id.as_ref()).await?;
    let body = json!({ "Meta": meta, "NodeID": id });
    let sent = cx
        .client
        .change::<Value>(Method::POST, PATH, &[], Some(&body));
    sent.await
        .map_err(|failure| failure.answered_within("Error applying dynamic node metadata"))?;
    cx.screen.print_line("Node metadata applied")?;
    Ok(0)
}

async fn read(cx: &mut Context, args: NodeMetaReadArgs) -> Outcome {
    let id = id_of(cx, args.node_id.as_ref()).await?;
    let query = [("node_id", id.as_str())];
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(PATH, &query).await?;
        return cx.show(&args.shape, &whole);
    }
    let known: Metadata = cx.client.get(PATH, &query).await?;
    let mut dynamic = known.dynamic;
    let unset = known
        .configured
        .keys()
        .filter(|key| !known.meta.contains_key(*key));
    dynamic.extend(unset.map(|key| (key.clone(), "<unset>".to_owned())));
    for (title, pairs) in [
        ("All Meta", known.meta),
        ("Dynamic Meta", dynamic),
        ("Static Meta", known.configured),
    ] {
        let first = if title == "All Meta" { "" } else { "\n" };
        cx.screen.title(&format!("{first}{title}"))?;
        cx.screen.print_line(&match pairs.is_empty() {
            true => "<none>".to_owned(),
            false => block(
                pairs
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.clone())),
            ),
        })?;
    }
    Ok(0)
}
